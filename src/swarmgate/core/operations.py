"""
Everything a budget store can be told, as values: what crosses a wire, is replayed, and is compared.

`apply` runs one on a book. Whatever another store does with the same operations at the same instants must give the same
replies and the same state (design 2: P13).
"""

from typing import NamedTuple

from swarmgate.core import kernel, line
from swarmgate.core.answers import Denied, Granted, Revised
from swarmgate.core.book import Book, Take
from swarmgate.core.commands import Release, Renew, Settle
from swarmgate.core.limits import Limits


class Withdraw(NamedTuple):
    """Give up a ticket's place in these lines."""

    ticket: str
    lines: tuple[str, ...]


class Define(NamedTuple):
    """Make a budget known; of one that is, a newer revision of its limits comes into force."""

    budget: str
    limits: Limits


class Revise(NamedTuple):
    """Replace a budget's limits if their revision is still `expected`."""

    budget: str
    expected: int
    limits: Limits


Operation = Take | Settle | Release | Renew | Withdraw | Define | Revise


class Done(NamedTuple):
    """It was done at `now_ms`; `debt` = units used beyond their reservation."""

    now_ms: int
    debt: int = 0


class Undefined(NamedTuple):
    """A take names a budget that the store does not know; nothing was taken. Define it, then ask again."""

    now_ms: int
    budget: str


Reply = Granted | Denied | Revised | Done | Undefined


def apply(book: Book, operation: Operation, raw_ms: int) -> Reply:
    """The reply of this book, whose clock shows `raw_ms`."""
    match operation:
        case Take():
            return _take(book, operation, raw_ms)
        case Settle(lease, usage, last):
            return Done(*kernel.settle(book, lease, usage, raw_ms, last=last))
        case Release(lease, budgets):
            return Done(kernel.release(book, lease, budgets, raw_ms))
        case Renew(lease, budgets, lease_ms):
            return Done(kernel.renew(book, lease, budgets, lease_ms, raw_ms))
        case Withdraw(ticket, lines):
            now_ms = kernel.advance(book, raw_ms)
            for name in lines:
                line.leave(book.line(name), ticket)
            return Done(now_ms)
        case Define(budget, limits):
            now_ms = kernel.advance(book, raw_ms)
            kernel.define(book, budget, limits)
            return Done(now_ms)
        case Revise(budget, expected, limits):
            return kernel.revise(book, budget, expected, limits, raw_ms)


def _take(book: Book, request: Take, raw_ms: int) -> Granted | Denied | Undefined:
    try:
        return kernel.take(book, request, raw_ms)
    except KeyError as error:
        name = error.args[0]
        if name in book.cells:
            raise
        return Undefined(book.now_ms, name)
