"""
A budget store seen as a function: operations at an instant, and their replies.

What the conformance kit asks of a store, and the reference that every store is compared with: the Python kernel on a
book in memory.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from swarmgate.core.book import Book, BudgetCell
from swarmgate.core.line import Line
from swarmgate.core.operations import Operation, Reply, apply


class Decider(Protocol):
    """The store under test; it starts empty, and its clock shows what `decide` is told."""

    def decide(self, operations: Sequence[Operation], now_ms: int) -> list[Reply]:
        """Run these operations in order at one instant."""
        ...

    def lose(self) -> None:
        """Forget everything, as a flushed server does; the next operation is its birth."""
        ...


class BookDecider:
    """The reference: the kernel of core/ on a book in memory."""

    def __init__(self) -> None:
        self.book: Book | None = None

    def decide(self, operations: Sequence[Operation], now_ms: int) -> list[Reply]:
        """Run these operations in order at one instant."""
        if self.book is None:
            self.book = Book(now_ms)
        return [apply(self.book, operation, now_ms) for operation in operations]

    def lose(self) -> None:
        """Forget everything."""
        self.book = None


def state_of(book: Book | None) -> dict[str, Any]:
    """Everything a book knows, as plain values that compare and print; a line nobody stands in does not exist."""
    if book is None:
        return {}
    return {
        "clock": (book.birth_ms, book.now_ms, book.offset_ms, book.clock_steps, book.sequence),
        "budgets": {name: _budget(cell) for name, cell in book.cells.items()},
        "lines": {name: _line(line) for name, line in book.lines.items() if line.order},
    }


def _budget(cell: BudgetCell) -> dict[str, Any]:
    return {
        "limits": cell.limits,
        "state": (cell.level, cell.pending, cell.at_ms, cell.due_ms, cell.promised_ms),
        "leases": {key: (held.amount, held.expires_ms, held.firm) for key, held in cell.leases.items()},
        "slices": cell.slices,
    }


def _line(line: Line) -> list[tuple[Any, ...]]:
    entries = [(score, line.entries[ticket]) for score, ticket in line.order]
    return [
        (score, it.ticket, it.ready_ms, it.due_ms, it.expires_ms, it.kind, it.need, it.at, it.tier)
        for score, it in entries
    ]
