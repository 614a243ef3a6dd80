from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.lab.errors import LabError
from swarmgate.lab.quantiles import Quantiles, table

samples = st.lists(st.integers(0, 10**6), min_size=1, max_size=300)


@given(samples, st.integers(1, 200))
def test_knots_are_values_of_the_sample_from_its_least_to_its_most(values, steps):
    quantiles = Quantiles.of(values, steps)
    assert len(quantiles.knots) == steps + 1
    assert set(quantiles.knots) <= set(values)
    assert (quantiles.knots[0], quantiles.knots[-1]) == (min(values), max(values))


@given(samples, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_the_quantile_function_rises_and_stays_inside(values, one, other):
    quantiles = Quantiles.of(values)
    low, high = quantiles.at(min(one, other)), quantiles.at(max(one, other))
    assert min(values) <= low <= high <= max(values)


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=50).map(sorted), st.data())
def test_each_knot_is_reached_at_its_share(knots, data):
    step = data.draw(st.integers(0, len(knots) - 2))
    share = -(-step * 2**32 // (len(knots) - 1))
    assert knots[step] <= Quantiles(knots).at(share) <= knots[step] + (knots[step + 1] - knots[step]) // 2**30 + 1


def test_values_between_knots_are_rounded_down():
    assert [Quantiles((0, 2)).at(share) for share in (0, 2**31 - 1, 2**31, 2**32 - 1)] == [0, 0, 1, 1]
    assert Quantiles((0, 1)).at(2**32 - 1) == 0


def test_samples_follow_the_quantiles():
    quantiles, rng = Quantiles.of([n * n for n in range(1000)]), Random(7)
    drawn = sorted(quantiles.sample(rng) for _ in range(20_000))
    assert sum(drawn) / len(drawn) == pytest.approx(quantiles.mean(), rel=0.02)
    for share in (0.1, 0.5, 0.9, 0.99):
        assert drawn[int(share * 20_000)] == pytest.approx((share * 999) ** 2, rel=0.06)


@pytest.mark.parametrize("knots", [(), (1,), (2, 1), (1, 1.5), (True, True)])
def test_what_is_no_quantile_function_is_refused(knots):
    with pytest.raises(LabError):
        Quantiles(knots)


def test_an_empty_sample_is_refused():
    with pytest.raises(LabError):
        Quantiles.of([])


@pytest.mark.parametrize("name", ["latency_fit", "lengths"])
def test_shipped_tables_name_source_and_licence(name):
    read = table(name)
    rows = [read] if "source" in read else [row for row in read.values() if isinstance(row, dict)]
    assert rows
    assert all(row["source"] and row["licence"] for row in rows)
