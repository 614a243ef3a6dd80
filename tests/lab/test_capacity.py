import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.price import Price
from swarmgate.lab.capacity import (
    CLASSES,
    MINUTE_MS,
    Key,
    Minute,
    calls_of,
    capacity,
    keys_for,
    recorded,
    scaled,
    steady,
)
from swarmgate.lab.errors import LabError
from swarmgate.lab.traces.mix import workload

KEY = Key(0, 4_000_000)
minutes = st.builds(Minute, st.integers(0, 10_000), st.integers(0, 10**8), st.integers(0, 10**7))


@pytest.mark.parametrize(("context", "tokens", "keys"), [(8_000, 48_000_000, 15), (32_000, 192_000_000, 60)])
def test_the_users_own_arithmetic(context, tokens, keys):
    """Essay A: 2,000 agents x 3 a minute; 8K and 32K of context; 100 x 2 s x 1.3."""
    needed = capacity(steady(2_000, 3, context, 0), KEY, 2_000)
    assert (needed.calls_per_s, needed.peak_calls, needed.peak_tokens) == (100, 6_000, tokens)
    assert needed.pool == 260
    assert needed.keys == keys


@given(
    st.lists(st.tuples(minutes, minutes, minutes), min_size=1, max_size=8), st.integers(1, 10**6), st.integers(1, 100)
)
def test_tiers_lie_between_mean_and_peak(rows, tpm, headroom):
    load = {rank: list(column) for rank, column in zip(CLASSES, zip(*rows, strict=True), strict=True)}
    needed = capacity(load, Key(0, tpm, headroom), 2_000)
    assert needed.mean_tokens <= needed.tiered_tokens <= needed.peak_tokens + 2
    assert needed.keys_by_mean <= needed.keys <= max(needed.keys_by_peak, needed.keys_by_mean)
    urgent = max(one.tokens + other.tokens for one, other, _ in rows)
    assert needed.keys * tpm * headroom >= urgent * 100


@given(minutes, st.integers(1, 10**6), st.integers(1, 10**9), st.integers(1, 100))
def test_keys_carry_what_is_needed_and_one_less_does_not(need, rpm, tpm, headroom):
    keys = keys_for(need, Key(rpm, tpm, headroom))

    def fits(count):
        return need.calls * 100 <= count * rpm * headroom and need.tokens * 100 <= count * tpm * headroom

    assert fits(keys)
    assert keys == 1 or not fits(keys - 1)


def test_a_trace_is_counted_minute_by_minute():
    found = workload("mix", agents=200, calls_per_s=10, seconds=120)
    load = recorded(found.players, 2, 2_000)
    total = sum(minute.calls for minutes in load.values() for minute in minutes)
    assert 2 * 60 * 8 <= total <= 2 * 60 * 12
    assert all(load[rank][0].calls for rank in CLASSES)
    assert all(len(minutes) == 2 for minutes in load.values())
    assert MINUTE_MS == 60_000


def test_a_trace_keeps_its_peaks_at_any_size_and_no_part_of_it_comes_twice():
    small, large = (scaled("azure-conversation", agents, 3, 2_000)[0]["P1"] for agents in (20, 2_000))
    assert len(large) == 60
    peaks = [
        max(minute.calls for minute in found) * 60 / sum(minute.calls for minute in found) for found in (small, large)
    ]
    assert peaks == pytest.approx([peaks[0]] * 2, rel=0.02)
    assert peaks[0] > 1.2
    assert sum(minute.calls for minute in large) == pytest.approx(2_000 * 3 * 60, rel=0.01)
    assert calls_of("azure-conversation") == 6_000
    assert calls_of("mix") == 6_000 * 100 // 32


def test_money_by_the_hour_and_none_where_no_price_is():
    load = steady(100, 6, 1_000, 500)
    price = Price(((0, 1_000_000),), ((0, 2_000_000),))
    assert capacity(load, KEY, 1_000, price).cost_micro_per_hour == 600 * 60 * (1_000 + 1_000)
    assert capacity(load, KEY, 1_000).cost_micro_per_hour is None


@pytest.mark.parametrize(
    ("act", "field"),
    [
        (lambda: steady(0, 3, 1, 1), "agents"),
        (lambda: steady(1, 0, 1, 1), "rate"),
        (lambda: steady(1, float("nan"), 1, 1), "rate"),
        (lambda: steady(1, float("inf"), 1, 1), "rate"),
        (lambda: scaled("mix", 0, 3, 2_000), "agents"),
        (lambda: steady(1, 1, -1, 1), "prompt_tokens"),
        (lambda: capacity(steady(1, 1, 1, 1), Key(1, 1, 0), 1), "headroom_percent"),
    ],
)
def test_bad_input_names_its_field(act, field):
    with pytest.raises(LabError) as caught:
        act()
    assert caught.value.field == field
