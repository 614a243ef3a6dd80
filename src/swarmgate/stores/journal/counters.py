"""
What counters hold, over a crash: a budget of a day or of money is never granted anew because a gate died (design 4: Cold start).

Every 30 s the journal gets a row with what each counter holds, reservations included; attempts after it say what they took
and reserved, and their ends how much more was used. Together they are at least what was used. Units stand by the last instant
at which they may have been used, so that a counter whose slices have changed meanwhile does not forget them too early.

Rows outlive the process, not a loss of power. So a counter may use a fiftieth of itself (`ahead`) beyond what the disk was
told, and then the disk is told first. After such a loss it holds that part too: nothing is granted anew (design 2: P10). Where
half of that part is used, the disk is told beside the loop, and more may be used once it knows.

A line that is damaged without a loss of power may have said that more was used, or was to be. For each one a counter holds such a part, or the most that
a line which is left took of it: a damaged file grants nothing anew either (reliability LG-08), and it is told.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from swarmgate.core.book import Book, BudgetCell
from swarmgate.core.kernel import define
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.passage import charge, touch
from swarmgate.engine.disk import DISK
from swarmgate.ports import Disk
from swarmgate.stores.journal import reader, rows
from swarmgate.stores.journal.said import part_of
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


class Restored(NamedTuple):
    """How many counters hold something again, and how many lines of those that tell of them are damaged."""

    counters: int
    damaged: int


class _Told(NamedTuple):
    """
    Rows in their order, and damaged lines among them.

    `ahead` may have been used in rows that a loss of power took; `largest` is the most that one row took of a counter.
    """

    held: Held
    ahead: dict[str, int]
    largest: dict[str, int]
    damaged: int


def restore(
    folder: Path,
    book: Book,
    limits_of: Callable[[str], Limits | None],
    now_ms: int,
    disk: Disk = DISK,
    *,
    named: Collection[str] = (),
) -> Restored:
    """
    Let a book that starts after a crash hold what its counters held, or what it remembers itself if that is more.

    `limits_of` gives the limits in force of a budget by name, None if there are none any more. `named` are those that a
    damaged line may have told of, though none that is left does. Errors: OSError.
    """
    told = Book(now_ms)
    last = _last(folder, disk)
    restored = 0
    for name in dict.fromkeys([*last.held, *last.ahead, *(named if last.damaged else ())]):
        limits = limits_of(name)
        if limits is None or limits.kind is not BudgetKind.COUNTER:
            continue
        slices = dict(last.held.get(name, {}))
        unknown = last.damaged * max(part_of(limits), last.largest.get(name, 0))
        slices[now_ms] = slices.get(now_ms, 0) + last.ahead.get(name, 0) + min(unknown, limits.burst)
        for one in (book, told):
            define(one, name, limits)
        heard = told.cells[name]
        for at_ms, units in sorted(slices.items()):
            charge(heard, units, min(at_ms, now_ms))
        _take_most(book.cells[name], heard)
        touch(book.cells[name], now_ms)
        restored += 1
    return Restored(restored, last.damaged)


def use_up(book: Book, budgets: Mapping[str, Limits], now_ms: int) -> int:
    """Let every counter hold all that it may, for nothing is left that tells what was used of it; how many there are."""
    named = {name: limits for name, limits in budgets.items() if limits.kind is BudgetKind.COUNTER}
    for name, limits in named.items():
        define(book, name, limits)
        charge(book.cells[name], limits.burst, now_ms)
    return len(named)


def _take_most(cell: BudgetCell, heard: BudgetCell) -> None:
    """Of each slice the larger count: both saw only what they saw."""
    slices, others = dict(cell.slices or {}), heard.slices or {}
    cell.level, cell.slices = 0, {}
    for index in sorted({*slices, *others}):
        charge(cell, max(slices.get(index, 0), others.get(index, 0)), cell.anchor_ms + index * cell.slice_ms)


def last(folder: Path, disk: Disk = DISK) -> Held:
    """What counters held when the last gate stopped writing this journal, as far as its rows are there. Errors: OSError."""
    return _last(folder, disk).held


def _last(folder: Path, disk: Disk) -> _Told:
    """The same, and what is not known for sure."""
    after: list[Telling] = []
    damaged = 0
    for segment in reversed(listed(folder, disk)):
        found, is_whole, bad = _in(folder, segment.number, disk)
        after, damaged = found + after, damaged + bad
        if is_whole:
            break
    held, ahead, boot = _held(after)
    largest: dict[str, int] = {}
    for row in after:
        for name, units in () if isinstance(row, rows.Counters) else row.charges:
            largest[name] = max(largest.get(name, 0), units)
    if boot and boot != disk.boot_id():  # a loss of power tears lines: what they may have told is bounded by `ahead`
        return _Told(held, ahead, largest, 0)
    return _Told(held, ahead if damaged else {}, largest, damaged)


def _in(folder: Path, number: int, disk: Disk) -> tuple[list[Telling], bool, int]:
    """From the last whole row of counters in a segment on, if there is one: what tells of counters; and its damaged lines."""
    found: list[Telling] = []
    is_whole, at, damaged = False, reader.Position(number), 0
    while at.segment == number:
        batch = reader.read(folder, at, disk, is_over=True)
        damaged += batch.damaged
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
    return found, is_whole, damaged


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
