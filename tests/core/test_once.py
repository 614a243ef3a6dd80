import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.commands import End
from swarmgate.core.once import KEPT_MS, Record, Ruling, Standing, rule, standing_after
from swarmgate.core.reasons import Reason

NOW_MS = 1_000_000


@pytest.mark.parametrize(
    ("standing", "ruling"),
    [
        (Standing.FREE, Ruling.PROCEED),
        (Standing.IN_FLIGHT, Ruling.CONFLICT),
        (Standing.DONE, Ruling.REPLAY),
        (Standing.UNKNOWN, Ruling.UNKNOWN),
    ],
)
def test_a_repeat_is_told_what_is_known(standing, ruling):
    assert rule(Record(standing, "p", NOW_MS + 1), "p", NOW_MS) is ruling


def test_a_key_nobody_used_may_proceed():
    assert rule(None, "p", NOW_MS) is Ruling.PROCEED


@given(st.sampled_from(Standing), st.integers(0, 2 * KEPT_MS))
def test_another_payload_never_gets_anothers_answer(standing, age_ms):
    ruling = rule(Record(standing, "mine", NOW_MS + KEPT_MS), "other", NOW_MS + age_ms)
    assert ruling in {Ruling.MISMATCH, Ruling.PROCEED}
    if ruling is Ruling.PROCEED:
        assert standing is Standing.FREE or age_ms >= KEPT_MS


@given(st.integers(0, 10 * KEPT_MS))
def test_a_write_in_flight_does_not_lapse(age_ms):
    assert rule(Record(Standing.IN_FLIGHT, "p", NOW_MS + KEPT_MS), "p", NOW_MS + age_ms) is Ruling.CONFLICT


@pytest.mark.parametrize(
    ("end", "reason", "status", "left", "lost", "standing"),
    [
        (End.ANSWERED, None, 200, True, False, Standing.DONE),
        (End.FAILED, Reason.TARGET_ERROR, 500, True, False, Standing.DONE),
        (End.FAILED, Reason.TARGET_ERROR, 400, True, False, Standing.FREE),
        (End.FAILED, Reason.TARGET_CAPACITY, 503, True, False, Standing.FREE),
        (End.DEFERRED, Reason.TARGET_RATE, 0, True, False, Standing.FREE),
        (End.DEFERRED, Reason.POLICY_RATE, 0, False, False, Standing.FREE),
        (End.FAILED, Reason.TARGET_UNREACHABLE, 0, False, False, Standing.FREE),
        (End.CANCELLED, Reason.CALLER_LEFT, 0, False, False, Standing.FREE),
        (End.CANCELLED, Reason.CALLER_LEFT, 0, True, False, Standing.UNKNOWN),
        (End.UNKNOWN_EFFECT, Reason.TARGET_UNKNOWN_EFFECT, 0, True, True, Standing.UNKNOWN),
        (End.FAILED, Reason.TARGET_ERROR, 400, True, True, Standing.UNKNOWN),
        (End.FAILED, Reason.GATE_STOPPING, 0, True, False, Standing.UNKNOWN),
    ],
)
def test_llm_gateways_79_what_an_end_leaves_behind(end, reason, status, left, lost, standing):
    assert standing_after(end, reason, status, left=left, lost=lost) is standing


@given(st.sampled_from(End), st.none() | st.sampled_from(Reason), st.sampled_from([0, 200, 400, 429, 500, 503]))
def test_a_lost_answer_never_frees_a_key(end, reason, status):
    assert standing_after(end, reason, status, left=True, lost=True) is Standing.UNKNOWN
    assert standing_after(end, reason, status, left=False, lost=False) is Standing.FREE
