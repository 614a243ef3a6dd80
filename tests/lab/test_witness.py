"""The witness against brute force over every window, and against limiters that it must find innocent."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.lab.errors import LabError
from swarmgate.lab.limiters import ConcurrencyCap, SlidingLog, TokenBucket
from swarmgate.lab.witness import Arrival, Departure, Witness

# (gap, cost, ok, whether it is an arrival)
histories = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9), st.booleans(), st.booleans()), max_size=30)
units = st.sampled_from(["requests", "tokens"])


def witness_of(history) -> Witness:
    witness, now = Witness(), 0
    for number, (gap, cost, ok, is_arrival) in enumerate(history):
        now += gap
        if is_arrival:
            witness.arrived(Arrival(now, f"c{number}", 1, f"k{number % 2}", cost, ok))
        else:
            witness.departed(Departure(now, f"c{number}", 1, cost))
    return witness


def amounts_of(history, unit):
    """What the witness should know, from the history alone."""
    now, amounts = 0, []
    for gap, cost, _, is_arrival in history:
        now += gap
        if unit == "requests" and is_arrival:
            amounts.append((now, 1))
        elif unit == "tokens" and cost:
            amounts.append((now, cost))
    return amounts


@given(histories, st.integers(1, 40), st.integers(1, 20), units)
def test_windows_by_brute_force(history, window_ms, limit, unit):
    witness = witness_of(history)
    amounts = amounts_of(history, unit)
    starts = range(-window_ms, max((t for t, _ in amounts), default=0) + 1)
    sums = [sum(n for t, n in amounts if start <= t < start + window_ms) for start in starts]
    assert witness.most_in_window(window_ms, unit) == max(sums)
    beyond = {
        index
        for start in starts
        for index in range(len(amounts))
        if start <= amounts[index][0] < start + window_ms
        and sum(n for t, n in amounts[: index + 1] if start <= t < start + window_ms) > limit
    }
    assert witness.over_limit(limit, window_ms, unit) == len(beyond)
    assert (witness.over_limit(limit, window_ms, unit) == 0) == (max(sums) <= limit)


@given(histories, st.integers(0, 9), st.integers(0, 9), st.integers(1, 9), units)
def test_excess_by_brute_force(history, burst, rate, per_ms, unit):
    witness = witness_of(history)
    amounts = amounts_of(history, unit)
    worst = -burst * per_ms
    for first in range(len(amounts)):
        for last in range(first, len(amounts)):
            total = sum(n for _, n in amounts[first : last + 1])
            allowed = burst * per_ms + rate * (amounts[last][0] - amounts[first][0])
            worst = max(worst, total * per_ms - allowed)
    assert witness.excess(burst, rate, per_ms, unit) == worst


@given(histories, st.integers(0, 200), st.integers(1, 200), units)
def test_series_and_shares_add_up(history, from_ms, length_ms, unit):
    witness = witness_of(history)
    assert sum(witness.per_second(unit).values()) == sum(n for _, n in amounts_of(history, unit))
    assert witness.sent == sum(witness.by_key().values()) == len(witness.arrivals)
    assert witness.refused == witness.sent - witness.passed(0, 10_000)
    charged = sum(row.cost for row in witness.arrivals if row.ok)
    charged += sum(cost for _, cost, _, is_arrival in history if not is_arrival)
    assert witness.passed(0, 10_000, "tokens") == charged
    split = from_ms + length_ms // 2
    until_ms = from_ms + length_ms
    assert witness.passed(from_ms, until_ms, unit) == witness.passed(from_ms, split, unit) + witness.passed(
        split, until_ms, unit
    )
    assert witness.utilisation(from_ms, until_ms, 5, length_ms, unit) * 5 == pytest.approx(
        witness.passed(from_ms, until_ms, unit)
    )


@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 500), st.integers(1, 8))
def test_a_bucket_that_admits_keeps_its_bound(seed, limit, window_ms, burst):
    rng, bucket, witness, now = Random(seed), TokenBucket(limit, window_ms, burst), Witness(), 0
    for number in range(200):
        now += rng.randint(0, 2 * window_ms // limit + 1)
        cost = rng.randint(1, burst)
        if bucket.arrive(now, cost).ok:
            witness.arrived(Arrival(now, f"c{number}", 1, "k", cost, ok=True))
    assert witness.excess(burst, limit, window_ms, "tokens") <= 0


def test_one_arrival_too_many_is_seen():
    bucket, witness = TokenBucket(1, 100, 2), Witness()
    for now in (0, 0, 99):
        witness.arrived(Arrival(now, "c", 1, "k", 1, bucket.arrive(now).ok))
    assert witness.refused == 1
    assert witness.excess(2, 1, 100) == 1
    assert witness.over_limit(2, 100) == 1
    assert witness.over_limit(2, 99) == 0


@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 50))
def test_what_a_sliding_log_passes_is_never_over_its_limit(seed, limit, window_ms):
    rng, log, witness, now = Random(seed), SlidingLog(limit, window_ms), Witness(), 0
    for number in range(200):
        now += rng.randint(0, window_ms // limit + 1)
        if log.arrive(now).ok:
            witness.arrived(Arrival(now, f"c{number}", 1, "k", 1, ok=True))
    assert witness.over_limit(limit, window_ms) == 0


def test_time_in_progress_is_the_use_of_a_cap():
    witness, cap = Witness(), ConcurrencyCap(1)
    for now, call in ((0, "a"), (40, "b")):
        witness.arrived(Arrival(now, call, 1, "k", 0, cap.arrive(now).ok))
    witness.departed(Departure(60, "a", 1, 0))
    assert witness.refused == 1
    assert witness.in_progress_ms(0, 100) == 60
    assert witness.in_progress_ms(50, 55) == 5
    assert witness.in_progress_ms(60, 100) == 0


@pytest.mark.parametrize(("t_ms", "cost", "field"), [(9, 0, "t_ms"), (10, -1, "cost")])
def test_a_row_out_of_order_or_below_nothing_is_refused_and_not_written(t_ms, cost, field):
    witness = Witness()
    witness.arrived(Arrival(10, "a", 1, "k", 5, ok=True))
    for append in (
        lambda: witness.arrived(Arrival(t_ms, "b", 1, "k", cost, ok=True)),
        lambda: witness.departed(Departure(t_ms, "b", 1, cost)),
    ):
        with pytest.raises(LabError) as caught:
            append()
        assert caught.value.field == field
    assert list(witness.amounts("tokens")) == [(10, 5)]
    assert witness.sent == 1
