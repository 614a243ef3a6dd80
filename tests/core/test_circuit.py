import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.circuit import FIRST_OPEN_MS, LONGEST_OPEN_MS, PROBE_LOST_MS, Breaker, Circuit
from swarmgate.core.outcome import Ending, Signal, classify

OK = classify(Signal(200))
BROKEN = classify(Signal(500))
UNREACHABLE = classify(Signal(ending=Ending.CONNECT_FAILED))
RATE = classify(Signal(429))
BAD_REQUEST = classify(Signal(400))


def broken_at(now_ms):
    breaker = Breaker()
    for _ in range(20):
        breaker.observe(UNREACHABLE, now_ms, now_ms)
    assert breaker.state is Circuit.OPEN
    return breaker


def test_opens_at_half_of_at_least_twenty_results():
    breaker = Breaker()
    for number in range(10):
        breaker.observe(OK, number, number)
    changes = [breaker.observe(BROKEN, number, number) for number in range(10, 20)]
    assert changes == [False] * 9 + [True]
    assert not breaker.admits(20)


@pytest.mark.parametrize("neutral", [RATE, classify(Signal(ending=Ending.DEADLINE)), classify(Signal(401))])
def test_llm_gateways_81_what_says_nothing_about_the_target_changes_nothing(neutral):
    breaker = Breaker()
    for number in range(1_000):
        breaker.observe(neutral, number, number)
    for number in range(19):
        assert not breaker.observe(BROKEN, 1_000 + number, 1_000 + number)
    assert breaker.observe(BROKEN, 1_019, 1_019)


def test_old_failures_are_forgotten():
    breaker = Breaker()
    for number in range(100):
        breaker.observe(BROKEN, number * 1_000, number * 1_000)
    assert breaker.state is Circuit.CLOSED


def test_one_probe_closes_it():
    breaker = broken_at(1_000)
    assert breaker.opens_at_ms(1_000) == 1_000 + FIRST_OPEN_MS
    assert [breaker.admits(now_ms) for now_ms in (1_000, 5_999, 6_000, 6_000, 7_000)] == [
        False,
        False,
        True,
        False,
        False,
    ]
    assert breaker.observe(BAD_REQUEST, 6_000, 7_000)
    assert breaker.state is Circuit.CLOSED
    assert breaker.admits(7_000)


def test_failing_probes_wait_longer_and_longer():
    breaker, now_ms, waits = broken_at(0), 0, []
    for _ in range(6):
        waits.append(breaker.opens_at_ms(now_ms) - now_ms)
        now_ms = breaker.opens_at_ms(now_ms)
        assert breaker.admits(now_ms)
        assert breaker.observe(BROKEN, now_ms, now_ms)
    assert waits == [5_000, 10_000, 20_000, 40_000, 60_000, 60_000]


def test_a_refused_or_lost_probe_is_followed_by_another():
    breaker = broken_at(0)
    assert breaker.admits(5_000)
    assert not breaker.observe(RATE, 5_000, 5_100)
    assert breaker.admits(5_100)
    assert not breaker.admits(5_100 + PROBE_LOST_MS - 1)
    assert breaker.admits(5_100 + PROBE_LOST_MS)


def test_results_from_before_the_last_change_are_ignored():
    breaker = broken_at(1_000)
    assert breaker.admits(6_000)
    assert not breaker.observe(OK, 900, 6_001)
    assert not breaker.observe(BROKEN, 900, 6_002)
    assert breaker.state is Circuit.HALF_OPEN


@pytest.mark.parametrize(
    ("outcome", "state"), [(OK, Circuit.CLOSED), (BROKEN, Circuit.OPEN), (RATE, Circuit.HALF_OPEN)]
)
def test_what_is_sent_unasked_after_the_rest_is_as_good_as_a_probe(outcome, state):
    """The last rung of a ladder is sent to whatever its circuit says; while it rests that says nothing."""
    breaker = broken_at(1_000)
    assert not breaker.observe(outcome, 5_999, 6_100)
    assert (breaker.state, breaker.opens_at_ms(6_100)) == (Circuit.OPEN, 6_100)
    breaker.observe(outcome, 6_000, 6_200)
    assert breaker.state is state
    assert breaker.opens_at_ms(6_200) == (16_200 if state is Circuit.OPEN else 6_200)


@given(
    st.lists(st.tuples(st.integers(0, 8_000), st.integers(0, 3_000), st.sampled_from([OK, BROKEN, RATE])), max_size=120)
)
def test_an_open_circuit_always_lets_a_probe_out_in_time(steps):
    breaker, now_ms = Breaker(), 0
    for gap_ms, delay_ms, outcome in steps:
        now_ms += gap_ms
        before, opens_ms = breaker.state, breaker.opens_at_ms(now_ms)
        assert opens_ms <= now_ms + max(LONGEST_OPEN_MS, PROBE_LOST_MS)
        assert breaker.admits(now_ms) == (opens_ms == now_ms)
        assert before is not Circuit.CLOSED or opens_ms == now_ms
        for _ in range(5):
            breaker.observe(outcome, now_ms, now_ms + delay_ms)
        now_ms += delay_ms


def test_a_probe_that_was_not_sent_is_free_again():
    breaker = Breaker()
    for sent_ms in range(100):
        breaker.observe(classify(Signal(500)), sent_ms, sent_ms)
    assert breaker.state is Circuit.OPEN
    at_ms = breaker.opens_at_ms(100)
    assert breaker.admits(at_ms)
    assert not breaker.admits(at_ms + 1)
    assert not breaker.unused(at_ms + 1)
    assert breaker.unused(at_ms)
    assert breaker.admits(at_ms + 1)
