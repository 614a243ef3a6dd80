"""A quantile of what is seen: exact to an eighth, in bounded memory, and the rare large ones are not forgotten first."""

from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.histogram import HALVE_AT, STEPS, Histogram

values = st.lists(st.integers(1, 1 << 22), min_size=1, max_size=HALVE_AT - 1)


def seen(percent, them, **given):
    histogram = Histogram(percent, 7, **given)
    for one in them:
        histogram.seen(one)
    return histogram


@given(values, st.integers(1, 100))
def test_it_is_the_quantile_rounded_up_by_at_most_an_eighth(them, percent):
    exact = sorted(them)[-(-len(them) * percent // 100) - 1]
    assert exact <= seen(percent, them).at(percent) <= exact + exact // STEPS + 1


@given(values, st.integers(1, 40))
def test_few_values_say_nothing(them, few):
    assert (seen(99, them, few=few).likely == 7) == (len(them) < few)


@given(st.lists(st.integers(1, 1 << 22), max_size=3 * HALVE_AT))
def test_it_stays_small(them):
    histogram = seen(99, them)
    assert sum(histogram._counts.values()) == histogram._total < HALVE_AT


def test_rare_large_values_outlive_a_halving():
    """Each of them alone in its bucket: halved down they would all be gone at once."""
    rare = [1 << power for power in range(13, 21)]
    histogram = seen(99, [1] * (HALVE_AT - len(rare)) + rare)
    assert histogram._total < HALVE_AT
    assert histogram.at(99) >= 1 << 15
