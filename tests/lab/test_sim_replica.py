"""A replica knows what its book knew, to the last field, and what happens to one afterwards does not change the other."""

from hypothesis import given
from hypothesis import strategies as st

from records import fields_of
from swarmgate.core.book import Take, first_score
from swarmgate.core.commands import Settle
from swarmgate.core.operations import Define
from swarmgate.lab.sim.replica import replica
from swarmgate.testing.decider import BookDecider
from swarmgate.testing.twins import START_MS, WORLD, alternatives, leases, tickets, usage

takes = st.builds(
    lambda lease, ticket, rank, ways: Take(lease, ticket, rank, first_score(rank), ways, 2_000),
    leases, tickets, st.integers(0, 2), alternatives,
)  # fmt: skip
pasts = st.lists(
    st.tuples(st.one_of(takes, takes, st.builds(Settle, leases, usage, st.booleans())), st.integers(0, 400)),
    max_size=25,
)


def known(one):
    """All that an object of core's remembers, as plain values."""
    if isinstance(one, dict):
        return {key: known(value) for key, value in one.items()}
    if isinstance(one, list | set | tuple | frozenset) or not type(one).__module__.startswith("swarmgate.core"):
        return type(one)(one) if isinstance(one, list | set) else one
    mutable = type(one).__name__ in {"Book", "BudgetCell", "Lease", "Line", "Entry", "Calm"}
    return {name: known(getattr(one, name)) for name in fields_of(type(one))} if mutable else one


def lived(past):
    world, now_ms = BookDecider(), START_MS
    world.decide([Define(*pair) for pair in WORLD.items()], now_ms)
    for operation, after_ms in past:
        now_ms += after_ms
        world.decide([operation], now_ms)
    return world, now_ms


@given(pasts, pasts)
def test_it_knows_the_same_and_shares_nothing(past, more):
    world, now_ms = lived(past)
    other = BookDecider()
    other.book = replica(world.book)
    before = known(world.book)
    assert known(other.book) == before
    told = [other.decide([operation], now_ms + after_ms) for operation, after_ms in more]
    assert known(world.book) == before
    assert [world.decide([operation], now_ms + after_ms) for operation, after_ms in more] == told
    assert known(world.book) == known(other.book)
