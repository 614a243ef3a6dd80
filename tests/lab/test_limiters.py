"""The limiters against brute force: each verdict recomputed from the whole history by the definition of its kind."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.lab.errors import LabError
from swarmgate.lab.limiters import ConcurrencyCap, FixedWindow, Gcra, Limiter, SlidingLog, TokenBucket

limits = st.integers(1, 12)
windows = st.integers(1, 60)
# (gap to the event before, cost, whether it is an arrival): departures of cost 0 to 5 are charged unasked
events = st.lists(st.tuples(st.integers(0, 25), st.integers(1, 14), st.booleans()), max_size=40)


def replay(limiter: Limiter, history, expected) -> None:
    """Runs the events; `expected(past, now, cost)` is the brute-force question whether an arrival may pass."""
    now, past = 0, []
    for gap, cost, is_arrival in history:
        now += gap
        if is_arrival:
            verdict = limiter.arrive(now, cost)
            assert verdict.ok == expected(past, now, cost)
            if verdict.ok:
                past.append((now, cost))
            assert verdict.wait_ms == shortest_wait(past, now, cost, expected, verdict.ok)
        else:
            limiter.depart(now, cost - 1)
            past.append((now, cost - 1))


def shortest_wait(past, now, cost, expected, ok):
    if ok:
        return 0
    # all kinds here forget everything within this horizon: 40 events of at most 14 units at 1 unit per 60 ms, and a window
    return next((wait for wait in range(41 * 14 * 60 + 120) if expected(past, now + wait, cost)), None)


@given(limits, windows, st.integers(0, 200), events)
def test_fixed_window_counts_what_came_since_the_last_boundary(limit, window_ms, phase_ms, history):
    def passes(past, now, cost):
        window = {
            t for t in range(now, now - window_ms, -1) if (t - phase_ms) // window_ms == (now - phase_ms) // window_ms
        }
        return cost + sum(c for t, c in past if t in window) <= limit

    bounded = [(gap, min(cost, limit), is_arrival) for gap, cost, is_arrival in history]
    replay(FixedWindow(limit, window_ms, phase_ms), bounded, passes)


@given(limits, windows, events)
def test_sliding_log_counts_what_came_within_one_window(limit, window_ms, history):
    def passes(past, now, cost):
        return cost + sum(c for t, c in past if now - window_ms < t) <= limit

    bounded = [(gap, min(cost, limit), is_arrival) for gap, cost, is_arrival in history]
    replay(SlidingLog(limit, window_ms), bounded, passes)


def fill(past, now, rate):
    level, last = Fraction(0), 0
    for t, cost in past:
        level = max(Fraction(0), level - rate * (t - last)) + cost
        last = t
    return max(Fraction(0), level - rate * (now - last))


@pytest.mark.parametrize("kind", [TokenBucket, Gcra])
@given(limits, windows, st.integers(1, 10), events)
def test_bucket_and_gcra_are_a_leaking_level_in_exact_fractions(kind, limit, window_ms, burst, history):
    limiter, rate = kind(limit, window_ms, burst), Fraction(limit, window_ms)
    now, past = 0, []
    for gap, cost, is_arrival in history:
        now += gap
        level = fill(past, now, rate)
        if is_arrival:
            verdict = limiter.arrive(now, cost)
            assert verdict.ok == (level + cost <= burst)
            if verdict.ok:
                past.append((now, cost))
            elif cost > burst:
                assert verdict.wait_ms is None
            else:
                assert verdict.wait_ms == ceil((level + cost - burst) / rate)
        else:
            limiter.depart(now, cost - 1)
            past.append((now, cost - 1))


@given(limits, st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=60))
def test_cap_is_the_number_in_progress(limit, history):
    cap, busy, now = ConcurrencyCap(limit), 0, 0
    for gap, is_arrival in history:
        now += gap
        if is_arrival:
            verdict = cap.arrive(now, 7)
            assert verdict == ((True, 0) if busy < limit else (False, None))
            busy += verdict.ok
        elif busy:
            cap.depart(now, 7)
            busy -= 1
        else:
            with pytest.raises(LabError) as caught:
                cap.depart(now)
            assert caught.value.field == "depart"


KINDS = [
    lambda: FixedWindow(3, 10, 4),
    lambda: SlidingLog(3, 10),
    lambda: TokenBucket(3, 10, 3),
    lambda: Gcra(3, 10, 3),
    lambda: ConcurrencyCap(3),
]


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize(
    ("now_ms", "cost", "field"), [(4, 1, "now_ms"), (5, 0, "cost"), (9, -1, "cost"), (5, 1.5, "cost")]
)
def test_nonsense_is_refused_and_changes_nothing(make, now_ms, cost, field):
    limiter, untouched = make(), make()
    assert limiter.arrive(5).ok
    assert untouched.arrive(5).ok
    with pytest.raises(LabError) as caught:
        limiter.arrive(now_ms, cost)
    assert caught.value.field == field
    assert [limiter.arrive(6) for _ in range(4)] == [untouched.arrive(6) for _ in range(4)]


@pytest.mark.parametrize("kind", [FixedWindow, SlidingLog])
@pytest.mark.parametrize(("limit", "window_ms", "field"), [(0, 1, "limit"), (1, 0, "window_ms"), (True, 1, "limit")])
def test_impossible_limits_are_refused(kind, limit, window_ms, field):
    with pytest.raises(LabError) as caught:
        kind(limit, window_ms)
    assert caught.value.field == field


def test_what_never_fits_names_no_wait():
    for make in KINDS[:4]:
        assert make().arrive(0, 4) == (False, None)
