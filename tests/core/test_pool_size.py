import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.errors import BadInput
from swarmgate.core.pool_size import FEWEST, MOST, pool_size, with_spare

amounts = st.integers(0, 10**12)


@pytest.mark.parametrize(
    ("peak_per_minute", "response_ms", "size"),
    [(6_000, 2_000, 260), (6_000, 4_200, 546), (60, 1_000, 2), (120, 1_600, 5), (0, 0, FEWEST), (10**9, 10**6, MOST)],
)
def test_the_users_own_numbers(peak_per_minute, response_ms, size):
    assert pool_size(peak_per_minute, response_ms) == size


@given(amounts, amounts, st.integers(0, 100), st.integers(100, 10_000))
def test_bounded_and_just_enough(peak_per_minute, response_ms, fewest, most):
    size = pool_size(peak_per_minute, response_ms, fewest, most)
    assert fewest <= size <= most
    needed = peak_per_minute * response_ms * 13
    assert size == most or size * 600_000 >= needed
    assert size == fewest or (size - 1) * 600_000 < needed


@pytest.mark.parametrize(
    ("arguments", "field"),
    [((-1, 1), "peak_per_minute"), ((1, -1), "response_ms"), ((1, 1, -1), "fewest"), ((1, 1, 5, 4), "most")],
)
def test_nonsense_is_refused(arguments, field):
    with pytest.raises(BadInput) as refusal:
        pool_size(*arguments)
    assert refusal.value.field == field


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_factors_or_their_product_lead_to_the_same(peak_per_minute, response_ms):
    assert pool_size(peak_per_minute, response_ms) == with_spare(peak_per_minute * response_ms, 60_000, FEWEST, MOST)
