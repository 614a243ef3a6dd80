"""
What attempts take from counters, what the journal said of it, and how much may be used before the disk is told more.

The rules stand in `counters.py`, which reads what is written by these.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from swarmgate.core.book import Book, BudgetCell
from swarmgate.core.limits import Limits
from swarmgate.core.record import Call, Route

AHEAD_PARTS: Final = 50  # of a counter: what it may use beyond what the disk was told
MOST_ROUTES: Final = 20_000

Charges = tuple[tuple[str, int], ...]  # counters, and units of each


class Tally:
    """
    One counter, in units since it began, those that it forgot included: what was `said` of it, and what may be said `until`
    the disk must be told first. From `soon` on it should be told.
    """

    __slots__ = ("asked", "name", "part", "said", "soon", "until")

    def __init__(self, name: str, said: int = 0) -> None:
        self.name = name
        self.said = said
        self.until = self.soon = said - 1  # the disk was told nothing
        self.asked = self.part = 0  # the row on its way to the disk that lets it use so much more; 0 = none

    def move(self, units: int) -> None:
        """Of what it may use ahead nothing changes, but for where it stands."""
        self.said += units
        self.until += units
        self.soon += units


Sizes = tuple[int, int, int]  # units for each of a call's prompt, its reserve and its money
Part = tuple[Tally, int, Sizes | None]  # what a route takes from one counter, and what a call's size adds
Parts = tuple[Part, ...]
NONE: Final = ()


class Said:
    """
    What the journal lets a reader believe of the counters of a book, and what may be used before the disk is told more.

    `is_low` = a counter of the last attempt that was asked about should be told to the disk, or must be.
    """

    __slots__ = ("_caps", "_tallies", "is_low")

    def __init__(self) -> None:
        self._tallies: dict[str, Tally] = {}
        self._caps: dict[int, tuple[Route, Parts]] = {}  # by identity of the route, which is kept with it
        self.is_low = False

    def parts(self, route: Route, counters: set[str]) -> Parts:
        """What calls take from counters by a route."""
        sizes = (0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)
        demands = zip(*(route.demands(*size) for size in sizes), strict=True)  # they are linear in a call's size
        found: list[Part] = []
        for name, (least, *more) in [(each[0][0], [cost + held for _, cost, held in each]) for each in demands]:
            if name in counters:
                prompt, reserve, money = (units - least for units in more)
                tally = self._tallies.setdefault(name, Tally(name))
                found.append((tally, least, (prompt, reserve, money) if prompt or reserve or money else None))
        return tuple(found)

    def of_caps(self, caps: Route, counters: set[str]) -> Parts:
        """The same for what a caller takes from beside its key's route, found once."""
        known = self._caps.get(id(caps))
        if known is None:
            if len(self._caps) >= MOST_ROUTES:
                self._caps.clear()
            known = self._caps[id(caps)] = caps, self.parts(caps, counters)
        return known[1]

    def take(self, call: Call, parts: Parts) -> Charges:
        """An attempt takes from these, reservations included, and says so now."""
        charges, self.is_low = [], False
        for tally, units, each in parts:
            if each is not None:
                prompt, reserve, money = each
                units += prompt * call.prompt + reserve * call.reserve + money * call.money  # noqa: PLW2901  most have no such part
            tally.said = said = tally.said + units
            if said > tally.soon:
                self.is_low = True
            charges.append((tally.name, units))
        return tuple(charges)

    def beyond(self, book: Book, parts: Parts) -> Charges:
        """
        An attempt ended that took from these: what was used of them beyond what was said. It is as good as said.

        What was said and not used is not set off against what others use later: it stands at an earlier instant.
        """
        found: Charges = NONE
        cells, self.is_low = book.cells, False
        for tally, _, _ in parts:
            cell = cells.get(tally.name)
            if cell is not None:
                more = cell.level + cell.pending + cell.dropped - tally.said
                if more > 0:
                    tally.said = said = tally.said + more
                    if said > tally.soon:
                        self.is_low = True
                    found += ((tally.name, more),)
                elif more:
                    tally.move(more)
        return found

    def behind(self, book: Book, tallies: Iterable[Tally]) -> list[str]:
        """Those of which more is used than was said."""
        cells = ((tally, book.cells.get(tally.name)) for tally in tallies)
        return [tally.name for tally, cell in cells if cell is not None and _used(cell) > tally.said]

    def ask(self, book: Book, counters: list[str], row: int) -> tuple[dict[str, int], Callable[[], None]]:
        """
        The row of this number is to say what these hold, and what they may use ahead once it is on the disk.

        That, and what to call then.
        """
        ahead = {}
        for name in counters:
            tally = self._met(book.cells[name])
            tally.asked, tally.part = row, _part(book.cells[name])
            ahead[name] = tally.until - tally.said + tally.part
        return ahead, partial(self._granted, counters, row)

    def _granted(self, counters: list[str], row: int) -> None:
        """That row is on the disk: they may use more, but for those of which a later row spoke."""
        for name in counters:
            tally = self._tallies[name]
            if tally.asked == row:
                tally.asked = 0
                tally.until += tally.part
                tally.soon += tally.part

    def tell(self, book: Book, counters: Iterable[str]) -> tuple[dict[str, int], bool]:
        """A row is to say what these hold: what they may use ahead from now on, and whether the disk must be told."""
        ahead, is_more = {}, False
        for name in counters:
            cell = book.cells[name]
            tally = self._met(cell)
            tally.asked = 0  # this row says less than the one that is on its way
            if tally.said > tally.until:
                tally.until, is_more = tally.said + _part(cell), True
            tally.soon = tally.until - _part(cell) // 2
            ahead[name] = tally.until - tally.said
        return ahead, is_more

    def _met(self, cell: BudgetCell) -> Tally:
        """Its tally, with what was used beyond what attempts said."""
        used = _used(cell)
        tally = self._tallies.get(cell.name)
        if tally is None:
            tally = self._tallies[cell.name] = Tally(cell.name, used)
        elif used < tally.said:
            tally.move(used - tally.said)
        else:
            tally.said = used
        return tally


def _used(cell: BudgetCell) -> int:
    """Since it began, reservations included."""
    return cell.level + cell.pending + cell.dropped


def _part(cell: BudgetCell) -> int:
    return part_of(cell.limits)


def part_of(limits: Limits) -> int:
    """What a counter may use beyond what the disk was told."""
    return max(1, limits.burst // AHEAD_PARTS)
