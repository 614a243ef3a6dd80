"""A copy of a store's book as it is at one instant: what a replica has of it."""

from collections.abc import Iterable

from swarmgate.core.book import Book, BudgetCell, Lease
from swarmgate.core.calm import Calm
from swarmgate.core.line import Entry, Line

_OF_CELL = ("level", "pending", "promised_ms", "dropped", "forget_ms", "due_ms")
_OF_ENTRY = ("at", "need", "ready_ms", "due_ms", "expires_ms", "kind", "tier")
_OF_CALM = ("looks", "best", "room", "event_room", "start", "ready_ms", "expires_ms")


def replica(book: Book) -> Book:
    """A book that knows the same, and shares nothing that changes with this one."""
    twin = Book(book.birth_ms)
    _copy(book, twin, ("now_ms", "offset_ms", "clock_steps", "sequence"))
    twin.counters = set(book.counters)
    twin.lines = {name: _line(line) for name, line in book.lines.items()}
    twin.cells = {name: _cell(cell, twin) for name, cell in book.cells.items()}
    return twin


def _cell(cell: BudgetCell, book: Book) -> BudgetCell:
    twin = BudgetCell(cell.name, cell.limits, book.line(cell.line.name), cell.at_ms)
    _copy(cell, twin, _OF_CELL)
    twin.slices = None if cell.slices is None else dict(cell.slices)
    for key, held in cell.leases.items():
        twin.leases[key] = lease = Lease()
        _copy(held, lease, ("amount", "expires_ms", "firm"))
    return twin


def _line(line: Line) -> Line:
    twin = Line(line.name)
    twin.order = list(line.order)
    for ticket, entry in line.entries.items():
        twin.entries[ticket] = other = Entry(entry.ticket, entry.score)
        _copy(entry, other, _OF_ENTRY)
    for shape, calm in line.calms.items():
        twin.calms[shape] = like = Calm(shape)
        _copy(calm, like, _OF_CALM)
    return twin


def _copy(one: object, other: object, names: Iterable[str]) -> None:
    for name in names:
        setattr(other, name, getattr(one, name))
