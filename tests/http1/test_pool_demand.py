from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.pool_size import pool_size
from swarmgate.http1.pool_demand import FEWEST, MEANS, SAMPLES, PoolDemand

MOST = 2_600
in_use = st.lists(st.integers(0, 4_000), max_size=SAMPLES * MEANS * 2)


def measured(samples, most=MOST):
    demand = PoolDemand(most)
    for sample in samples:
        demand.sample(sample)
    return demand


def test_the_users_own_numbers():
    """100 a second that take 2 s are 200 in use, and so 260 connections, however they are spread over a period."""
    demand = measured([150, 250] * (SAMPLES // 2))
    assert demand.mean_permille == 200_000
    assert demand.size == 260 == pool_size(6_000, 2_000)


def test_nothing_is_known_before_the_first_period_is_over():
    demand = measured([500] * (SAMPLES - 1))
    assert (demand.size, demand.mean_permille, demand.is_least) == (FEWEST, 0, True)
    demand.sample(500)
    assert (demand.size, demand.mean_permille, demand.is_least) == (650, 500_000, False)


@given(in_use, st.integers(1, 3_000))
def test_between_the_least_and_the_bound_and_just_enough_for_the_busiest_period(samples, most):
    demand = measured(samples, most)
    sums = [sum(samples[at : at + SAMPLES]) for at in range(0, len(samples) - SAMPLES + 1, SAMPLES)]
    busiest = max(sums[-MEANS:], default=0)
    assert min(FEWEST, most) <= demand.size <= most
    assert demand.size == most or demand.size * SAMPLES * 10 >= busiest * 13
    assert demand.is_least or (demand.size - 1) * SAMPLES * 10 < busiest * 13


@given(in_use, st.data())
def test_who_has_more_in_use_keeps_no_fewer(samples, data):
    more = data.draw(st.lists(st.integers(0, 500), min_size=len(samples), max_size=len(samples)))
    together = [one + other for one, other in zip(samples, more, strict=True)]
    assert measured(samples).size <= measured(together).size


@given(in_use)
def test_what_idles_shrinks_to_the_least(samples):
    demand = measured(samples)
    sizes = []
    for _ in range(SAMPLES * (MEANS + 1)):
        demand.sample(0)
        sizes.append(demand.size)
    first_idle = sizes[SAMPLES:]  # the period that was under way when it fell idle is the last that may raise it
    assert first_idle == sorted(first_idle, reverse=True)
    assert demand.is_least
    assert demand.mean_permille == 0
