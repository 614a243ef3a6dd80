from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.lab.baselines import Direct, OneBudget
from swarmgate.lab.errors import LabError
from swarmgate.lab.limiters import Gcra

hints = st.none() | st.integers(0, 200_000)


@given(st.integers(0, 10**9), st.integers(0, 5), hints, st.integers(0, 2**32))
def test_direct_sends_at_once_and_repeats_twice(now_ms, sends, hint_ms, seed):
    at_ms = Direct(Random(seed)).next_send(now_ms, sends, hint_ms)
    if sends == 0:
        assert at_ms == now_ms
    elif sends > 2 or (hint_ms or 0) > 120_000:
        assert at_ms is None
    elif hint_ms:
        assert at_ms == now_ms + hint_ms


@given(st.integers(1, 10_000), st.integers(0, 2**32))
def test_direct_doubles_half_a_second_up_to_eight_less_a_quarter(sends, seed):
    delay_ms = Direct(Random(seed), retries=10_000).next_send(0, sends)
    longest_ms = min(500 * 2 ** min(sends - 1, 10), 8_000)
    assert longest_ms * 3 // 4 <= delay_ms <= longest_ms


@given(
    st.integers(1, 50),
    st.integers(1, 5_000),
    st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 2), hints), max_size=60),
)
def test_one_budget_never_exceeds_its_rate_and_never_sends_early(limit, window_ms, asked):
    baseline, now, sends_at = OneBudget(limit, window_ms, Random(1)), 0, []
    for gap, sends, hint_ms in asked:
        now += gap
        at_ms = baseline.next_send(now, sends, hint_ms)
        if at_ms is not None:
            assert at_ms >= now + (hint_ms or 0 if sends else 0)
            sends_at.append(at_ms)
    spacing = Gcra(limit, window_ms, max(2, 1 + -(-limit // window_ms)))  # instants are whole ms: one place of rounding
    assert all(spacing.arrive(at_ms).ok for at_ms in sorted(sends_at))


@pytest.mark.parametrize(("hint_ms", "at_ms"), [(1, 1), (119_999, 119_999), (120_000, 120_000), (120_001, None)])
def test_a_hint_of_two_minutes_is_obeyed_and_a_longer_one_ends_the_call(hint_ms, at_ms):
    assert Direct(Random(1)).next_send(0, 1, hint_ms) == at_ms


def test_one_budget_forgets_places_that_have_gone_by():
    baseline = OneBudget(1, 100, Random(1))
    for now in range(0, 100_000, 250):
        baseline.next_send(now, now // 250 % 2)
    assert len(baseline._taken) < 10


def test_one_budget_fills_the_places_before_a_waiting_repeat():
    baseline = OneBudget(1, 100, Random(1))
    assert baseline.next_send(0, 0) == 0
    assert baseline.next_send(0, 1, hint_ms=250) == 300
    assert [baseline.next_send(0, 0) for _ in range(3)] == [100, 200, 400]


@given(st.integers(1, 20), st.integers(1, 1_000))
def test_one_budget_is_used_up_when_all_ask_at_once(limit, window_ms):
    baseline = OneBudget(limit, window_ms, Random(1))
    assert [baseline.next_send(0, 0) for _ in range(40)] == [-(-place * window_ms // limit) for place in range(40)]


def test_nonsense_is_refused():
    with pytest.raises(LabError):
        Direct(Random(1)).next_send(0, -1)
    with pytest.raises(LabError):
        OneBudget(0, 1, Random(1))
