"""What attempts take from counters is what they asked the book for, and what may be used ahead of the disk."""

import pytest
from disk import Desk, everything
from hypothesis import given
from hypothesis import strategies as st

from life import rung
from swarmgate.core import kernel
from swarmgate.core.book import Book
from swarmgate.core.caps import ANY_TARGET
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.record import Call, Route
from swarmgate.core.waiting import Room
from swarmgate.stores.journal import said
from swarmgate.stores.journal.said import Said

DAY = Limits(BudgetKind.COUNTER, burst=1_000, window_ms=86_400_000, slices=24)
NAMES = tuple("abcdefghijkl")
sizes = st.integers(0, 10**6)
routes = st.lists(
    st.tuples(st.sampled_from(["fixed", "metered", "weighed", "money", "inputs", "outputs"]), sizes, sizes), max_size=6
)


def made(wanted, names):
    """A route that takes from so many budgets in so many ways."""
    found = {"fixed": [], "metered": [], "weighed": [], "money": [], "inputs": [], "outputs": []}
    for (how, cost, reserve), name in zip(wanted, names, strict=False):
        found[how].append((name, cost, reserve) if how == "fixed" else name)
    return Route("k", **{how: tuple(taken) for how, taken in found.items()})


@given(
    routes, routes, st.sets(st.sampled_from(NAMES)), st.lists(st.tuples(sizes, sizes, sizes), min_size=1, max_size=4)
)
def test_the_charges_of_an_attempt_are_its_demands_of_counters(own, caps, counters, calls):
    own, caps = made(own, NAMES[:6]), made(caps, NAMES[6:])
    book, told, both = Book(1), Said(), own.plus(caps)
    book.counters.update(counters)
    for prompt, reserve, money in calls:
        call = Call("c", (rung(),), Room(), rank=1, arrived_ms=1)
        call.prompt, call.reserve, call.money = prompt, reserve, money
        asked = {name: cost + held for name, cost, held in both.demands(prompt, reserve, money) if name in counters}
        parts = told.parts(own, book.counters) + told.of_caps(caps, book.counters)
        assert dict(told.take(call, parts)) == asked


@pytest.mark.interpreted  # replaces a constant
def test_routes_are_bounded_and_none_is_taken_for_another(monkeypatch):
    monkeypatch.setattr(said, "MOST_ROUTES", 2)
    book, told, call = Book(1), Said(), Call("c", (rung(),), Room(), rank=1, arrived_ms=1)
    book.counters.update(NAMES)
    for _ in range(3):
        for number, name in enumerate(NAMES):  # each route is gone before the next is made, which may have its place
            parts = told.of_caps(Route("k", ((name, number, 0),)), book.counters)
            assert told.take(call, parts) == ((name, number),)


def test_a_call_of_a_capped_agent_says_what_both_routes_take(tmp_path):

    desk = Desk(tmp_path)
    book = desk.journal.book = Book(desk.loop.ms)
    for name in ("agent a17: requests", "elsewhere"):
        kernel.define(book, name, DAY)
    call = desk.call(
        "c1", caps={ANY_TARGET: Route("", (("agent a17: requests", 1, 0),)), "u": Route("", (("elsewhere", 1, 0),))}
    )
    desk.leaves(call)
    (intent,) = [row for row in everything(tmp_path)[0] if type(row).__name__ == "Intent"]
    assert intent.charges == (("agent a17: requests", 1),)


def test_a_counter_that_was_forgotten_and_came_back_is_not_behind():
    book, told, call = Book(1), Said(), Call("c", (rung(),), Room(), rank=1, arrived_ms=1)
    kernel.define(book, "day", DAY)
    book.cells["day"].level = 40
    parts = told.parts(Route("k", (("day", 40, 0),)), book.counters)
    told.take(call, parts)
    assert told.is_low  # the disk was told nothing
    assert told.tell(book, ["day"]) == ({"day": 20}, True)
    del book.cells["day"]
    assert told.beyond(book, parts) == ()
    kernel.define(book, "day", DAY)
    assert told.beyond(book, parts) == ()
    book.cells["day"].level = 3
    assert told.behind(book, [parts[0][0]]) == ["day"]
    assert told.beyond(book, parts) == (("day", 3),)
