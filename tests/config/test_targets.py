"""A limit on tokens leaves room beside its largest call, where it is large enough for that."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.config.targets import with_room
from swarmgate.core.compiler import Published, Unit, compile_limit

LARGEST = 16_384


def limit(amount, unit=Unit.TOKENS, largest=LARGEST, window_ms=10_000):
    return Published(amount, window_ms, unit, largest=(largest,) * 3)


def compiled(published):
    return compile_limit(with_room(published)).limits


@pytest.mark.parametrize("calls", [12, 13, 20, 26, 60])
def test_beside_a_largest_call_there_is_room_for_half_of_one(calls):
    found = compiled(limit(calls * LARGEST))
    assert found.burst >= LARGEST * 3 // 2
    assert found.quota


@pytest.mark.parametrize(
    "published", [limit(6 * LARGEST), limit(14, Unit.REQUESTS, 1), limit(10**6, Unit.OUTPUT_TOKENS)]
)
def test_small_limits_and_other_units_stay_as_they_are(published):
    assert with_room(published) is published


def test_what_has_room_already_stays_as_it_is():
    published = limit(60 * LARGEST)
    assert with_room(published) is published


@given(st.integers(4 * LARGEST, 40 * LARGEST), st.integers(1, LARGEST), st.sampled_from([1_000, 10_000, 60_000]))
def test_who_is_allowed_more_may_send_more(amount, more, window_ms):
    less, larger = (compiled(limit(one, window_ms=window_ms)) for one in (amount, amount + more))
    assert less.quota <= larger.quota + 3 * 1_000  # in thousandths: a unit more of burst takes three of the rate
    assert less.burst <= larger.burst + 1
