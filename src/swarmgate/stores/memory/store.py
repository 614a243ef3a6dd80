"""
Budgets of one process: the kernel called directly, answers fired at once.

Nothing can be lost here but by the end of the process; a clean stop saves the book (stores/memory/snapshot.py).
"""

from collections.abc import Callable

from mypy_extensions import mypyc_attr

from swarmgate.core import kernel
from swarmgate.core.answers import Revised
from swarmgate.core.book import Book, Take, Used
from swarmgate.core.limits import Limits
from swarmgate.core.line import leave
from swarmgate.core.passage import touch
from swarmgate.core.record import Call
from swarmgate.ports import Clock, Fire


@mypyc_attr(allow_interpreted_subclasses=True)
class MemoryStore:
    """The budget store of one process; bind `fire` before the first take."""

    __slots__ = ("_clock", "book", "debt_units", "fire")

    def __init__(self, clock: Clock, fire: Fire, book: Book | None = None) -> None:
        self._clock = clock
        self.fire = fire
        self.book = book or Book(clock.now_ms())
        self.debt_units = 0

    def take(self, call: Call, request: Take) -> None:
        """Fire Granted or Denied before returning."""
        self.fire(call, kernel.take(self.book, request, self._clock.now_ms()))

    def settle(self, lease: str, usage: tuple[Used, ...], *, last: bool) -> None:
        """Tell what was used; units beyond the reservation are counted as debt."""
        _, debt = kernel.settle(self.book, lease, usage, self._clock.now_ms(), last=last)
        self.debt_units += debt

    def release(self, lease: str, budgets: tuple[str, ...]) -> None:
        """End reservations of which nothing left."""
        kernel.release(self.book, lease, budgets, self._clock.now_ms())

    def renew(self, lease: str, budgets: tuple[str, ...], lease_ms: int) -> None:
        """Keep living reservations for `lease_ms` more."""
        kernel.renew(self.book, lease, budgets, lease_ms, self._clock.now_ms())

    def leave(self, ticket: str, lines: tuple[str, ...]) -> None:
        """Give up a place in line."""
        kernel.advance(self.book, self._clock.now_ms())
        for name in lines:
            leave(self.book.line(name), ticket)

    def define(self, budget: str, limits: Limits) -> None:
        """Make the budget known; as cold as the book's birth demands."""
        kernel.advance(self.book, self._clock.now_ms())
        kernel.define(self.book, budget, limits)

    def forget(self, budget: str) -> bool:
        """Let an idle budget go, for a fresh one is the same; False if something in it still counts."""
        cell = self.book.cells.get(budget)
        if cell is None:
            return True
        touch(cell, kernel.advance(self.book, self._clock.now_ms()))
        if cell.level or cell.leases or cell.order or cell.slices or cell.limits.paused:
            return False
        del self.book.cells[budget]
        self.book.counters.discard(budget)
        self.book.lines.pop(budget, None)
        return True

    def revise(self, budget: str, expected: int, limits: Limits, done: Callable[[Revised], None]) -> None:
        """Replace limits if their revision is still `expected`."""
        done(kernel.revise(self.book, budget, expected, limits, self._clock.now_ms()))
