"""
Down a ladder: which rungs can serve a call at all, and what was tried on the way.

A rung that does not speak as the caller does, or whose window is smaller than the call, is passed over with its reason
before anything is sent there. An error at the end lists every attempt and every rung that was passed over, also where the
ladder ends there. A rung that never can, as is found only by standing on it, is as if it were not there: the answer is
the one that the rung above it deserves.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from swarmgate.core.circuit import Circuit
from swarmgate.core.reasons import Reason
from swarmgate.core.retry import MOST_RETRIES

if TYPE_CHECKING:
    from swarmgate.core.book import BudgetCell
    from swarmgate.core.record import Call, Rung

MOST_TOLD: Final = 16  # a call that waits may meet many refusals; the newest are told
UNSENT: Final = -1
_CLOSED: Final = Circuit.CLOSED


class Tried(NamedTuple):
    """One attempt that failed, or one rung that was passed over: `key` is empty and `ms` UNSENT if nothing was sent."""

    rung: int
    reason: Reason
    key: str = ""
    status: int = 0
    ms: int = UNSENT


def unfit(rung: "Rung", call: "Call", tokens: int) -> Reason | None:
    """Why a rung can never serve a call of so many tokens, 0 = not known; None if it may."""
    if rung.serves is not None and call.surface and call.surface not in rung.serves:
        return Reason.POLICY_OTHER_DIALECT
    if tokens and rung.window is not None and 0 < rung.window(call.model) < tokens:
        return Reason.POLICY_WINDOW_TOO_SMALL
    return None


def _unfit_at(index: int, call: "Call") -> Reason | None:
    """
    The same of the rung at that place; where money is capped, one without a price would cost nobody knows what.

    The first is what the caller asked for: only what is certain speaks against it, below it an estimate does.
    """
    if call.costs and call.costs[index] < 0:
        return Reason.POLICY_PRICE_UNKNOWN
    return unfit(call.rungs[index], call, call.context_tokens if index else call.least_tokens)


def may_serve(index: int, call: "Call") -> bool:
    """Whether the rung at that place may serve the call, for all that is known."""
    return index not in call.barred and _unfit_at(index, call) is None


def count_fit(call: "Call", first: int) -> int:
    """How many rungs at or below `first` may serve the call."""
    return sum([may_serve(index, call) for index in range(first, len(call.rungs))])


def is_last(call: "Call", now_ms: int) -> bool:
    """
    Whether none below its rung may serve the call now.

    Nor may one whose keys only a person can bring back, or whose budgets were too small when the call came: such a rung is
    stood on nevertheless, since either may change.
    """
    return not any(
        may_serve(index, call) and index not in call.too_small and call.rungs[index].ring.back_at_ms(now_ms) is not None
        for index in range(call.rung + 1, len(call.rungs))
    )


def too_small(call: "Call", cell_of: Callable[[str], "BudgetCell | None"]) -> tuple[int, ...]:
    """The rungs below the first of which no key's budgets can ever hold the call, as far as those are known here."""
    return tuple([index for index in range(1, len(call.rungs)) if not _holds(index, call, cell_of)])


def _holds(index: int, call: "Call", cell_of: Callable[[str], "BudgetCell | None"]) -> bool:
    money = max(0, call.costs[index]) if call.costs else 0
    for route in call.rungs[index].routes.values():
        demands = route.demands(call.prompt, call.reserve, money)
        cells = [(cell_of(name), cost + reserve) for name, cost, reserve in demands]
        if not any(cell is not None and 0 <= cell.caps[call.rank] < need * cell.scale for cell, need in cells):
            return True  # a paused budget has a cap below 0, and no size
    return False


def step_to(call: "Call", first: int) -> bool:
    """Stand on the first rung at or below `first` that may serve the call; what lies between is passed over."""
    for index in range(first, len(call.rungs)):
        reason = _unfit_at(index, call)
        if reason is not None:
            remember(call, Tried(index, reason))
        elif index not in call.barred:  # why it is was told when it was barred
            stand_on(call, index)
            return True
    return False


def is_broken(call: "Call", now_ms: int) -> bool:
    """Whether the rung on which it stands mostly failed prompts of its size lately, and one below that is well may serve the call."""
    breaker = call.rungs[call.rung].breaker
    return breaker is not None and breaker.by_size[call.size].is_open(now_ms) and _is_well_below(call)


def pass_over_broken(call: "Call", now_ms: int) -> None:
    """Step down from such rungs; where one may be back, the call is the probe that finds out (core/circuit.py)."""
    while True:
        breaker = call.rungs[call.rung].breaker
        if breaker is None:
            return
        rest = breaker.by_size[call.size]
        if rest.state is _CLOSED or not _is_well_below(call) or rest.admits(now_ms):
            return
        remember(call, Tried(call.rung, Reason.TARGET_BROKEN))
        step_to(call, call.rung + 1)


def _is_well_below(call: "Call") -> bool:
    return not call.written and any(_is_well(index, call) for index in range(call.rung + 1, len(call.rungs)))


def _is_well(index: int, call: "Call") -> bool:
    breaker = call.rungs[index].breaker
    return may_serve(index, call) and (breaker is None or breaker.by_size[call.size].state is _CLOSED)


def stand_on(call: "Call", index: int) -> None:
    """Have the call at that rung, and at what it costs there."""
    call.rung = index
    if call.costs:
        call.money = call.costs[index]


def pass_over_rest(call: "Call") -> None:
    """The ladder ends here since none below can serve: each stands among what was tried, once."""
    for index in range(call.rung + 1, len(call.rungs)):
        reason = _unfit_at(index, call)
        if reason is not None and (told := Tried(index, reason)) not in call.trail:
            remember(call, told)


def untried(call: "Call") -> tuple[int, ...]:
    """The rungs below its own that could have served a call, had it not been sent as often as a call may be."""
    if call.retries < MOST_RETRIES:
        return ()
    return tuple([index for index in range(call.rung + 1, len(call.rungs)) if may_serve(index, call)])


def bar(call: "Call", why: Reason) -> None:
    """The rung on which the call stands can never serve it, as was found there."""
    call.barred = (*call.barred, call.rung)
    if len(call.rungs) > 1:
        remember(call, Tried(call.rung, why))


def last_able(call: "Call") -> Tried | None:
    """What was met last at a rung that may serve the call."""
    return next((one for one in reversed(call.trail) if may_serve(one.rung, call)), None)


def remember(call: "Call", tried: Tried) -> None:
    """Add to what was tried."""
    call.trail = (*call.trail[1 - MOST_TOLD :], tried)


def sent_for(trail: tuple[Tried, ...]) -> int:
    """For how long the attempts in a trail ran: the call was not in line then."""
    return sum([max(0, one.ms) for one in trail])
