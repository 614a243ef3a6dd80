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
Telling = rows.Counters | rows.Intent | rows.Done


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
