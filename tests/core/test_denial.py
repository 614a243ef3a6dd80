"""The denial of many alternatives is that of the one that will fit first, however few of them were looked at."""

from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core import denial
from swarmgate.core.answers import Denied
from swarmgate.core.book import Book, Take, first_score
from swarmgate.core.kernel import define, take
from swarmgate.core.limits import BudgetKind, Limits

NAMES = "abcdef"
LIMITS = {
    "a": Limits(BudgetKind.LEVEL, burst=10, quota=10, window_ms=1_000),
    "b": Limits(BudgetKind.LEVEL, burst=6, quota=1, window_ms=1_000),
    "c": Limits(BudgetKind.LEASES, burst=3),
    "d": Limits(BudgetKind.LEASES, burst=3, hold_ms=500),
    "e": Limits(BudgetKind.COUNTER, burst=5, window_ms=2_400, slices=24),
    "f": Limits(BudgetKind.LEVEL, burst=8, quota=8, window_ms=1_000, line="shared"),
}
slots = frozenset("cd")
demand = st.sampled_from(NAMES).flatmap(
    lambda name: st.tuples(st.just(name), st.just(0) if name in slots else st.integers(0, 4), st.integers(0, 4))
)
alternative = st.lists(demand, min_size=1, max_size=4, unique_by=lambda one: one[0]).map(tuple)
asks = st.lists(
    st.tuples(st.integers(0, 2), st.lists(alternative, min_size=1, max_size=5), st.booleans(), st.integers(0, 400)),
    max_size=40,
)


def everything(book, request, now_ms):
    """The case to answer with, if each alternative is looked at for itself."""
    every = [denial._examine(book, request, index, now_ms, {}) for index in range(len(request.alternatives))]
    return min(every, key=denial._order)


@given(asks)
def test_it_is_the_one_that_fits_first(calls):
    book, now_ms = Book(), 0
    for name, limits in LIMITS.items():
        define(book, name, limits)
    for number, (rank, alternatives, waits, later_ms) in enumerate(calls):
        now_ms += later_ms
        request = Take(str(number), f"{number}.1", rank, first_score(rank), tuple(alternatives), 60_000, (), waits)
        answer = take(book, request, now_ms)
        if isinstance(answer, Denied):
            again = request._replace(ticket="other", waits=False)
            best = everything(book, again, now_ms)
            assert min(denial._cases(book, again, now_ms), key=denial._order) == best
