"""
What counters hold, over a crash: a budget of a day or of money is never granted anew because a gate died (design 4: Cold start).

Every 30 s the journal gets a row with what each counter holds, reservations included; attempts after it say what they took
and reserved, and their ends how much more was used. Together they are at least what was used. Units stand by the last instant
at which they may have been used, so that a counter whose slices have changed meanwhile does not forget them too early.

Rows outlive the process, not a loss of power. So a counter may use a fiftieth of itself (`ahead`) beyond what the disk was
told, and then the disk is told first. After such a loss it holds that part too: nothing is granted anew (design 2: P10). Where
half of that part is used, the disk is told beside the loop, and more may be used once it knows.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from swarmgate.core.book import Book, BudgetCell
from swarmgate.core.kernel import define
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.passage import charge, touch
from swarmgate.engine.disk import DISK
from swarmgate.ports import Disk
from swarmgate.stores.journal import reader, rows
from swarmgate.stores.journal.segments import listed

Held = dict[str, dict[int, int]]  # units by instant, by budget
Charges = tuple[tuple[str, int], ...]  # budgets, and units of each
Telling = rows.Counters | rows.Intent | rows.Done

AHEAD_PARTS = 50


class Said:
    """What the journal lets a reader believe of counters, in units, and what may be used before the disk is told more."""

    def __init__(self) -> None:
        self._units: dict[str, int] = {}  # since the counter began, what it forgot included
        self._ahead: dict[str, int] = {}
        self._half: dict[str, int] = {}  # of what each may use ahead
        self._asked: dict[str, tuple[int, int]] = {}  # what is on its way to the disk: the row that says so, units more

    def took(self, charges: Charges) -> tuple[list[str], list[str]]:
        """
        An attempt said what it takes.

        The counters for which the disk must be told before it leaves; those that have used half of what they may, and for which
        nothing is on its way to the disk.
        """
        short, low, ahead, said = [], [], self._ahead, self._units
        for name, units in charges:
            said[name] = said.get(name, 0) + units
            left = ahead[name] = ahead.get(name, 0) - units
            if left < 0:
                short.append(name)
            elif left < self._half.get(name, 0) and name not in self._asked:
                low.append(name)
        return short, low

    def ask(self, book: Book, counters: Iterable[str], row: int) -> dict[str, int]:
        """The row of this number is to say what these hold, and what they may use ahead once it is on the disk."""
        ahead = {}
        for name in counters:
            part = _part(book.cells[name])
            self._asked[name] = row, part
            ahead[name] = self._left(book.cells[name]) + part
        return ahead

    def granted(self, row: int, counters: Iterable[str]) -> None:
        """That row is on the disk: they may use more, but for those of which a later row spoke."""
        for name in counters:
            asked, part = self._asked.get(name, (0, 0))
            if asked == row:
                del self._asked[name]
                self._ahead[name] += part

    def beyond(self, book: Book, charges: Charges) -> Charges:
        """
        An attempt ended that took from these: what was used of them beyond what was said. It is as good as said.

        What was said and not used is not set off against what others use later: it stands at an earlier instant.
        """
        found, said = [], self._units
        for name, _ in charges:
            cell = book.cells.get(name)
            if cell is not None:
                units = cell.level + cell.pending + cell.dropped
                more = units - said.get(name, 0)
                said[name] = units
                if more > 0:
                    self._ahead[name] = self._ahead.get(name, 0) - more
                    found.append((name, more))
        return tuple(found)

    def overdrawn(self, charges: Charges) -> list[str]:
        """Those that used more than they may before the disk is told."""
        return [name for name, _ in charges if self._ahead[name] < 0]

    def behind(self, book: Book, counters: Iterable[str]) -> list[str]:
        """Those of which more is used than was said."""
        cells, said = book.cells, self._units
        return [name for name in counters if name in cells and _used(cells[name]) > said.get(name, 0)]

    def tell(self, book: Book, counters: Iterable[str]) -> tuple[dict[str, int], bool]:
        """A row is to say what these hold: what they may use ahead from now on, and whether the disk must be told."""
        ahead, is_more = {}, False
        for name in counters:
            self._asked.pop(name, None)  # this row says less than the one that is on its way
            left = self._left(book.cells[name])
            if left < 0:
                left, is_more = _part(book.cells[name]), True
            ahead[name] = self._ahead[name] = left
        return ahead, is_more

    def _left(self, cell: BudgetCell) -> int:
        """What it may use before the disk is told more; what was used beyond what attempts said counts."""
        units = _used(cell)
        before = self._units.get(cell.name, units)
        left = self._ahead[cell.name] = self._ahead.get(cell.name, -1) - max(0, units - before)
        self._units[cell.name] = units
        self._half[cell.name] = _part(cell) // 2
        return left


def _used(cell: BudgetCell) -> int:
    """Since it began, reservations included."""
    return cell.level + cell.pending + cell.dropped


def _part(cell: BudgetCell) -> int:
    """What a counter may use beyond what the disk was told."""
    return max(1, cell.limits.burst // AHEAD_PARTS)


def held(book: Book, counters: Iterable[str]) -> Held:
    """What these counters hold now; what is reserved counts as used in the present slice."""
    found: Held = {}
    for name in counters:
        cell = book.cells[name]
        limits, slices = cell.limits, dict(cell.slices or {})
        if cell.pending:
            now = limits.slice_at(book.now_ms)
            slices[now] = slices.get(now, 0) + cell.pending
        if slices:
            ends_ms = {limits.anchor_ms + (index + 1) * limits.slice_ms - 1: units for index, units in slices.items()}
            found[name] = {min(end_ms, book.now_ms): units for end_ms, units in ends_ms.items()}
    return found


def restore(folder: Path, book: Book, limits_of: Callable[[str], Limits | None], now_ms: int, disk: Disk = DISK) -> int:
    """
    Let a book that starts after a crash hold what its counters held, or what it remembers itself if that is more; how many did.

    `limits_of` gives the limits in force of a budget by name, None if there are none any more. Errors: OSError.
    """
    told = Book(now_ms)
    found, ahead = _last(folder, disk)
    for name, units in ahead.items():
        slices = found.setdefault(name, {})
        slices[now_ms] = slices.get(now_ms, 0) + units
    restored = 0
    for name, slices in found.items():
        limits = limits_of(name)
        if limits is None or limits.kind is not BudgetKind.COUNTER:
            continue
        for one in (book, told):
            define(one, name, limits)
        heard = told.cells[name]
        for at_ms, units in sorted(slices.items()):
            charge(heard, units, min(at_ms, now_ms))
        _take_most(book.cells[name], heard)
        touch(book.cells[name], now_ms)
        restored += 1
    return restored


def _take_most(cell: BudgetCell, heard: BudgetCell) -> None:
    """Of each slice the larger count: both saw only what they saw."""
    slices, others = dict(cell.slices or {}), heard.slices or {}
    cell.level, cell.slices = 0, {}
    for index in sorted({*slices, *others}):
        charge(cell, max(slices.get(index, 0), others.get(index, 0)), cell.anchor_ms + index * cell.slice_ms)


def last(folder: Path, disk: Disk = DISK) -> Held:
    """What counters held when the last gate stopped writing this journal, as far as its rows are there. Errors: OSError."""
    return _last(folder, disk)[0]


def _last(folder: Path, disk: Disk) -> tuple[Held, dict[str, int]]:
    """The same, and what may have been used in rows that a loss of power took."""
    after: list[Telling] = []
    for segment in reversed(listed(folder, disk)):
        found, is_whole = _in(folder, segment.number, disk)
        after = found + after
        if is_whole:
            break
    held, ahead, boot = _held(after)
    return held, ahead if boot != disk.boot_id() else {}


def _in(folder: Path, number: int, disk: Disk) -> tuple[list[Telling], bool]:
    """From the last whole row of counters in a segment on, if there is one: what tells of counters."""
    found: list[Telling] = []
    is_whole, at = False, reader.Position(number)
    while at.segment == number:
        batch = reader.read(folder, at, disk)
        for row in batch.rows:
            if isinstance(row, rows.Counters):
                if row.whole:
                    is_whole = True
                    found.clear()
                found.append(row)
            elif isinstance(row, rows.Intent | rows.Done) and row.charges:
                found.append(row)
        if batch.is_end or batch.position == at:
            break
        at = batch.position
    return found, is_whole


def _held(told: Iterable[Telling]) -> tuple[Held, dict[str, int], str]:
    """What follows from rows in their order: what is held, what may be used ahead, at which start of the machine."""
    found: Held = {}
    ahead: dict[str, int] = {}
    boot = ""
    for row in told:
        if isinstance(row, rows.Counters):
            found.update({name: dict(slices) for name, slices in row.held.items()})
            ahead.update(row.ahead)
            boot = row.boot
            continue
        for name, units in row.charges:
            slices = found.setdefault(name, {})
            slices[row.at_ms] = slices.get(row.at_ms, 0) + units
            if name in ahead:
                ahead[name] = max(0, ahead[name] - units)
    return found, ahead, boot
