"""What is known of a whole line says the same as a look at each ticket (design 2: P14)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from swarmgate.core import kernel
from swarmgate.core.book import Book, Take, first_score
from swarmgate.core.calm import LOOKS_SHARE
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.line import FEW, holds_back

SHARED = {"line": "pool", "sharing": 2}
LIMITS = {
    "a": Limits(BudgetKind.LEVEL, burst=40, quota=10, window_ms=1_000, floors=(0, 4, 8), **SHARED),
    "b": Limits(BudgetKind.LEVEL, burst=30, quota=7, window_ms=1_000, **SHARED),
    "slots": Limits(BudgetKind.LEASES, burst=12, hold_ms=300),
    "gate": Limits(BudgetKind.LEVEL, burst=2, quota=1, window_ms=2_000),
}
needs = st.sampled_from(["a", "b", "slots"])
asks = st.lists(
    st.tuples(needs, st.integers(1, 12), st.integers(0, 2), st.booleans(), st.integers(0, 900)),
    min_size=FEW,
    max_size=60,
)


def want(number, name, units, rank, *, gated):
    demand = (name, 0, units) if name == "slots" else (name, units, 0)
    demands = (demand, ("gate", 1, 0)) if gated else (demand,)
    return Take(f"t{number}", f"t{number}.1", rank, first_score(rank), (demands,), 5_000)


@settings(max_examples=300, deadline=None)
@given(asks, st.lists(st.tuples(needs, st.integers(1, 12), st.integers(0, 2), st.integers(0, 6_000)), min_size=4))
def test_what_is_known_of_a_line_says_what_a_look_says(waiting, callers):
    book = Book(-(2**40))
    book.now_ms = 0
    for name, limits in LIMITS.items():
        kernel.define(book, name, limits)
    now_ms = 0
    for number, (name, units, rank, gated, gap_ms) in enumerate(waiting):
        now_ms += gap_ms // 10
        kernel.take(book, want(number, name, units, rank, gated=gated), now_ms)
    for name, units, rank, gap_ms in callers:
        now_ms += gap_ms // 4
        kernel.release(book, "nobody", tuple(LIMITS), now_ms)  # brings everything to now
        cell = book.cells[name]
        request = want(9_999, name, units, rank, gated=False)
        need = request.alternatives[0][0][1:]
        known = holds_back(cell, request, need, now_ms)
        calms, cell.line.calms = cell.line.calms, {}
        assert holds_back(cell, request, need, now_ms) is known
        cell.line.calms = calms


def test_three_hundred_who_wait_elsewhere_are_not_looked_at_one_by_one():
    book = Book(-(2**40))
    book.now_ms = 0
    for name, limits in LIMITS.items():
        kernel.define(book, name, limits)
    book.cells["gate"].level = book.cells["gate"].caps[0]
    book.cells["a"].level = book.cells["a"].caps[0]
    for number in range(300):
        kernel.take(book, want(number, "a", 1, 1, gated=True), 0)
    cell = book.cells["b"]
    request = want(9_999, "b", 1, 1, gated=False)
    assert holds_back(cell, request, (1, 0), 0) is None
    cell.line.entries = {}  # from here on a look would fail
    assert holds_back(cell, request, (1, 0), 0) is None


def test_bounds_that_do_not_help_are_not_made_anew_by_every_look():
    book = Book(-(2**40))
    book.now_ms = 0
    for name, limits in LIMITS.items():
        kernel.define(book, name, limits)
    for name in ("gate", "a"):
        book.cells[name].level = book.cells[name].caps[0]
    for number in range(160):
        kernel.take(book, want(number, "a", 1, 1, gated=True), 0)
    cell = book.cells["b"]
    request = want(9_999, "b", 1, 1, gated=False)
    assert holds_back(cell, request, (1, 0), 0) is None
    made = cell.line.calms[cell.shape]
    made.room = made.start = -1  # as low as after tickets that have left
    for _ in range(160 // LOOKS_SHARE - 1):
        assert holds_back(cell, request, (1, 0), 0) is None
        assert cell.line.calms[cell.shape] is made
    assert holds_back(cell, request, (1, 0), 0) is None
    assert cell.line.calms[cell.shape] is not made
