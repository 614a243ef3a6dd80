"""
How the limits of a target went, as its traffic must be read beside them.

Each of twenty keys has a limit of its own, and what was sent is the sum over all of them: so limits that nothing takes from
together are added up. A limit that others are taken with, of all keys or of a learned pace, stands for itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from swarmgate.control.tally import Ruling
from swarmgate.stores.sql.reading import Span


class Course(NamedTuple):
    """Limits of one unit and window that add up: their names, and the sum with the times in which it held."""

    budgets: tuple[str, ...]
    unit: str
    window_ms: int
    steps: tuple[tuple[Span, int], ...]

    @property
    def name(self) -> str:
        """For the head of a column."""
        first, *others = self.budgets
        return f"limits of {first}, and {len(others)} more, together" if others else f"limit of {first}"

    def at(self, at_ms: int) -> int | None:
        """What they were together at an instant; None where none held."""
        return next((amount for span, amount in self.steps if span.from_ms <= at_ms < span.to_ms), None)


def courses(found: Iterable[Ruling]) -> list[Course]:
    """The courses of these revisions, in order of their first budgets."""
    groups: list[dict[str, list[Ruling]]] = []
    by_budget: dict[str, list[Ruling]] = {}
    for one in found:
        by_budget.setdefault(one.budget, []).append(one)
    for budget, revisions in by_budget.items():
        home = next((group for group in groups if _adds_up(group, revisions[0])), None)
        if home is None:
            home = {}
            groups.append(home)
        home[budget] = revisions
    return [_course(group) for group in groups]


def _adds_up(group: dict[str, list[Ruling]], one: Ruling) -> bool:
    """Whether it counts the same, and nothing takes from it that takes from another of the group."""
    return all(
        (other[0].unit, other[0].window_ms) == (one.unit, one.window_ms)
        and one.takers
        and one.takers.isdisjoint(other[0].takers)
        for other in group.values()
    )


def _course(group: dict[str, list[Ruling]]) -> Course:
    first = next(iter(group.values()))[0]
    return Course(tuple(group), first.unit, first.window_ms, tuple(_steps([*group.values()])))


def _steps(revisions: Sequence[Sequence[Ruling]]) -> Iterator[tuple[Span, int]]:
    """The sum over the budgets from each change to the next."""
    spans = [(one.span, one.amount) for budget in revisions for one in budget]
    edges = sorted({edge for span, _ in spans for edge in span})
    for from_ms, to_ms in pairwise(edges):
        held = [amount for span, amount in spans if span.from_ms <= from_ms < span.to_ms]
        if held:
            yield Span(from_ms, to_ms), sum(held)
