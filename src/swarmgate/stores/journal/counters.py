"""
What counters hold, over a crash: a budget of a day or of money is never granted anew because a gate died (design 4: Cold start).

Every 30 s the journal gets a row with what each counter holds, reservations included; attempts after it say what they took.
Together they are at least what was used. Units stand by the last instant at which they may have been used, so that a counter
whose slices have changed meanwhile does not forget them too early.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from swarmgate.core.book import Book
from swarmgate.core.kernel import define
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.passage import charge, touch
from swarmgate.stores.journal import reader, rows
from swarmgate.stores.journal.segments import listed

Held = dict[str, dict[int, int]]  # units by instant, by budget


def names(book: Book) -> frozenset[str]:
    """The counters of a book."""
    return frozenset(name for name, cell in book.cells.items() if cell.slices is not None)


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


def restore(folder: Path, book: Book, limits_of: Callable[[str], Limits | None], now_ms: int) -> int:
    """
    Let a book that starts after a crash hold what its counters held; how many did.

    `limits_of` gives the limits in force of a budget by name, None if there are none any more. Errors: OSError.
    """
    found = last(folder)
    restored = 0
    for name, slices in found.items():
        limits = limits_of(name)
        if limits is None or limits.kind is not BudgetKind.COUNTER:
            continue
        define(book, name, limits)
        cell = book.cells[name]
        for at_ms, units in sorted(slices.items()):
            charge(cell, units, min(at_ms, now_ms))
        touch(cell, now_ms)
        restored += 1
    return restored


def last(folder: Path) -> Held:
    """What counters held when the last gate stopped writing this journal. Errors: OSError."""
    charges: list[rows.Intent] = []
    for segment in reversed(listed(folder)):
        found, after = _in(folder, segment.number)
        charges += after
        if found is not None:
            return _with(found.held, charges)
    return _with({}, charges)


def _in(folder: Path, number: int) -> tuple[rows.Counters | None, list[rows.Intent]]:
    """The last row of counters in a segment, and the attempts after it that took from any."""
    found: rows.Counters | None = None
    after: list[rows.Intent] = []
    at = reader.Position(number)
    while at.segment == number:
        batch = reader.read(folder, at)
        for row in batch.rows:
            if isinstance(row, rows.Counters):
                found = row
                after.clear()
            elif isinstance(row, rows.Intent) and row.charges:
                after.append(row)
        if batch.is_end or batch.position == at:
            break
        at = batch.position
    return found, after


def _with(before: Held, charges: Iterable[rows.Intent]) -> Held:
    found = {name: dict(slices) for name, slices in before.items()}
    for intent in charges:
        for name, units in intent.charges:
            slices = found.setdefault(name, {})
            slices[intent.at_ms] = slices.get(intent.at_ms, 0) + units
    return found
