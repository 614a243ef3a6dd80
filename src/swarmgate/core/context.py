"""
Which turns of a conversation may give way to a summary, and how many must (design 4: Context).

The system's turns, the last turns and signed ones stay as they are. A tool's call never leaves without its result, nor the
other way round: turns that share the name of a call go together or not at all. The oldest go first, so that a summary
stands where the story began, and one that was made once serves many turns.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

KEPT_TURNS: Final = 4
SUMMARY_TOKENS: Final = 512  # what a summary may take
# of the ceiling: what a new summary brings the prompt down to, so that it lasts for some turns
GOAL_PERCENT: Final = 50
_FIXED_ROLES: Final = frozenset({"system", "developer"})


class Turn(NamedTuple):
    """One message: its size, and the names of the tool calls that it makes or answers; `signed` = must stay as it is."""

    role: str
    tokens: int
    calls: frozenset[str] = frozenset()
    signed: bool = False


class Cut(NamedTuple):
    """Turns that a summary would stand for, in order, and the tokens of the prompt then."""

    dropped: tuple[int, ...]
    tokens: int


def cuts(turns: Sequence[Turn], beside_tokens: int) -> list[Cut]:
    """Every cut, the smallest first; `beside_tokens` are those of the prompt that stand in no turn."""
    first_kept = len(turns) - KEPT_TURNS
    total = beside_tokens + SUMMARY_TOKENS + sum(turn.tokens for turn in turns)
    dropped: tuple[int, ...] = ()
    found = []
    for unit in _units(turns):
        if unit[-1] >= first_kept or any(turns[at].signed or turns[at].role in _FIXED_ROLES for at in unit):
            continue
        dropped = tuple(sorted((*dropped, *unit)))
        total -= sum(turns[at].tokens for at in unit)
        found.append(Cut(dropped, total))
    return found


def choose(found: Sequence[Cut], ceiling_tokens: int, is_known: Callable[[Cut], bool]) -> Cut | None:
    """
    The cut to make; None if none brings the prompt below its ceiling.

    One whose summary is known serves if it fits; a new one goes down to half of the ceiling, or as far as there are turns.
    """
    for cut in found:
        if cut.tokens <= ceiling_tokens and is_known(cut):
            return cut
    for cut in found:
        if cut.tokens * 100 <= ceiling_tokens * GOAL_PERCENT:
            return cut
    return found[-1] if found and found[-1].tokens <= ceiling_tokens else None


def _units(turns: Sequence[Turn]) -> list[list[int]]:
    """Turns that belong together by the tool calls that they share, each unit and all of them in order."""
    unit_of: dict[str, list[int]] = {}
    units: dict[int, list[int]] = {}
    for at, turn in enumerate(turns):
        joined = [at]
        for other in {id(unit): unit for call in turn.calls if (unit := unit_of.get(call)) is not None}.values():
            del units[id(other)]
            joined += other
        joined.sort()
        units[id(joined)] = joined
        for place in joined:
            unit_of.update(dict.fromkeys(turns[place].calls, joined))
    return sorted(units.values())
