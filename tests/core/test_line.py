"""Properties of the lines at the level of the kernel (design 2: P5, P6; design 4: Line)."""

from swarmgate.core import kernel
from swarmgate.core.answers import Denied, Granted
from swarmgate.core.book import Book, Take, first_score
from swarmgate.core.limits import BudgetKind, Limits

START_MS = 1_000_000
LEVEL = Limits(BudgetKind.LEVEL, burst=20, quota=10, window_ms=1_000)
SLOTS = Limits(BudgetKind.LEASES, burst=1)


def book(**limits):
    made = Book(0)
    made.now_ms = START_MS
    for name, one in limits.items():
        kernel.define(made, name, one)
    return made


def ask(ticket, *demands, rank=1, lease="", **rest):
    rest.setdefault("score", first_score(rank))
    return Take(ticket, lease or ticket, rank, alternatives=(demands,), lease_ms=600_000, **rest)


def test_a_ticket_whose_denial_was_lost_does_not_wait_for_itself():
    made = book(s=SLOTS)
    kernel.take(made, ask("holder", ("s", 0, 1)), START_MS)
    lost = kernel.take(made, ask("x", ("s", 0, 1)), START_MS)
    kernel.take(made, ask("y", ("s", 0, 1)), START_MS)
    again = kernel.take(made, ask("x", ("s", 0, 1)), START_MS + 100)
    assert isinstance(lost, Denied)
    assert isinstance(again, Denied)
    assert again.score == lost.score
    kernel.release(made, "holder", ("s",), START_MS + 200)
    assert isinstance(kernel.take(made, ask("x", ("s", 0, 1)), START_MS + 250), Granted)
