"""When one host may be called: pauses that it asks for or that we choose, a breaker besides, and what people are shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.backoff import LONGEST_PAUSE_MS
from swarmgate.core.circuit import FEWEST_RESULTS, Circuit
from swarmgate.core.outcome import Ending, QuotaLeft, Signal, classify
from swarmgate.core.reasons import Reason
from swarmgate.core.target_ring import ONLY_KEY, TargetRing
from swarmgate.core.view import STALLED_MS, BudgetState

OK = classify(Signal(200))
NOT_FOUND = classify(Signal(404))
RATE = classify(Signal(429))
RATE_5S = classify(Signal(429, hint_ms=5_000))
UNAVAILABLE_9S = classify(Signal(503, hint_ms=9_000))
DOWN = classify(Signal(ending=Ending.CONNECT_FAILED))
KEY_REFUSED = classify(Signal(401))


def refused(ring, at_ms, outcome=RATE):
    ring.observe(ONLY_KEY, outcome, at_ms, at_ms)
    return ring.back_at_ms(at_ms) - at_ms


def test_a_fresh_host_may_be_called():
    ring = TargetRing()
    assert ring.candidates(0) == (ONLY_KEY,)
    assert ring.state(0) is BudgetState.READY


def test_a_hint_is_kept_and_only_ever_gets_longer():
    ring = TargetRing()
    assert refused(ring, 1_000, RATE_5S) == 5_000
    ring.observe(ONLY_KEY, classify(Signal(429, hint_ms=1_000)), 1_000, 1_500)
    assert ring.back_at_ms(1_500) == 6_000
    assert ring.candidates(5_999) == ()
    assert ring.why(5_999) is Reason.TARGET_BACKOFF
    assert ring.candidates(6_000) == (ONLY_KEY,)


def test_without_a_hint_pauses_double_until_something_is_accepted():
    ring, now_ms, pauses = TargetRing(), 0, []
    for _ in range(8):
        now_ms = ring.back_at_ms(now_ms) + 1
        pauses.append(refused(ring, now_ms))
    assert pauses == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, LONGEST_PAUSE_MS, LONGEST_PAUSE_MS]
    now_ms = ring.back_at_ms(now_ms) + 1
    ring.observe(ONLY_KEY, NOT_FOUND, now_ms, now_ms)
    assert refused(ring, now_ms + 1) == 1_000


@given(st.integers(2, 60))
def test_any_number_of_refusals_at_once_is_one_event(count):
    ring = TargetRing()
    for _ in range(count):
        ring.observe(ONLY_KEY, RATE, 10, 20)
    assert ring.back_at_ms(20) == 20 + 1_000


def test_a_503_with_a_hint_pauses_and_counts_for_the_breaker():
    ring = TargetRing()
    assert refused(ring, 1, UNAVAILABLE_9S) == 9_000
    assert ring.circuit is Circuit.CLOSED


def test_nobodys_key_is_ejected():
    ring = TargetRing()
    ring.observe(ONLY_KEY, KEY_REFUSED, 1, 1)
    assert ring.candidates(2) == (ONLY_KEY,)


def test_a_host_that_is_down_is_probed_and_comes_back():
    ring = TargetRing()
    for _ in range(FEWEST_RESULTS):
        ring.observe(ONLY_KEY, DOWN, 1, 1)
    assert ring.circuit is Circuit.OPEN
    assert ring.why(2) is Reason.TARGET_BROKEN
    back_ms = ring.back_at_ms(2)
    assert ring.candidates(back_ms - 1) == ()
    assert ring.candidates(back_ms) == (ONLY_KEY,)
    assert not ring.ready(back_ms)  # the probe is out
    assert ring.observe(ONLY_KEY, OK, back_ms, back_ms + 5)
    assert ring.candidates(back_ms + 5) == (ONLY_KEY,)


def test_refusals_never_open_the_breaker():
    ring = TargetRing()
    for at_ms in range(1, 10 * FEWEST_RESULTS):
        ring.observe(ONLY_KEY, RATE, at_ms, at_ms)
    assert ring.circuit is Circuit.CLOSED


def test_a_host_that_says_nothing_is_left_rests_until_its_reset():
    ring = TargetRing()
    ring.report(ONLY_KEY, QuotaLeft(3, 9_000), 1, 2)
    assert ring.ready(2)
    ring.report(ONLY_KEY, QuotaLeft(0, 9_000), 1, 2)
    assert ring.back_at_ms(2) == 9_000


@pytest.mark.parametrize("hint_ms", [STALLED_MS, STALLED_MS + 1])
def test_a_long_pause_is_stalled(hint_ms):
    ring = TargetRing()
    refused(ring, 1, classify(Signal(429, hint_ms=hint_ms)))
    assert ring.state(1) is BudgetState.STALLED
    assert ring.why(1) is Reason.TARGET_STALLED


def test_a_person_can_try_a_host_that_asked_for_a_month():
    ring = TargetRing()
    assert not ring.revive()
    refused(ring, 1, classify(Signal(429, hint_ms=31 * 86_400_000)))
    assert ring.state(2) is BudgetState.STALLED
    assert ring.revive()
    assert ring.state(2) is BudgetState.READY
    assert ring.candidates(2) == (ONLY_KEY,)
    refused(ring, 3)  # it learns as ever
    assert not ring.ready(4)


def test_who_only_ever_refuses_is_stalled_until_it_accepts():
    ring, now_ms = TargetRing(), 1
    first_ms = now_ms
    while now_ms - first_ms < STALLED_MS:
        refused(ring, now_ms)
        now_ms = ring.back_at_ms(now_ms) + 1
    assert ring.state(now_ms) is BudgetState.STALLED
    assert ring.ready(now_ms)  # probes go on
    ring.observe(ONLY_KEY, OK, now_ms, now_ms)
    assert ring.state(now_ms) is BudgetState.READY


@given(
    st.lists(st.tuples(st.integers(0, 5_000), st.sampled_from([OK, RATE, RATE_5S, DOWN, UNAVAILABLE_9S])), max_size=60)
)
def test_ready_and_candidates_agree_and_time_heals(steps):
    ring, now_ms = TargetRing(), 1
    for wait_ms, outcome in steps:
        now_ms += wait_ms
        ready = ring.ready(now_ms)
        assert bool(ring.candidates(now_ms)) == ready
        ring.observe(ONLY_KEY, outcome, now_ms, now_ms)
    assert ring.candidates(ring.back_at_ms(now_ms)) == (ONLY_KEY,)
