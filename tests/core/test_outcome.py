import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.outcome import EJECT_MS, ROWS, Ejects, Ending, Kind, Signal, Verdict, classify

DATA = Path(__file__).parents[1] / "data" / "outcomes.json"
CASES = json.loads(DATA.read_text())
DAY_MS = 86_400_000
NO_SCOPE = "You have insufficient permissions for this operation"


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_errors_that_providers_really_sent(case):
    assert case["source"]
    assert case["license"]
    outcome = classify(Signal(**case["signal"]))
    assert {name: getattr(outcome, name) for name in case["expect"]} == case["expect"]
    assert outcome.hint_ms == case["signal"].get("hint_ms")


@pytest.mark.parametrize("status", [200, 201, 204, 206, 301, 304])
def test_answers_without_an_error_are_ok(status):
    assert classify(Signal(status)) == (Kind.OK, Verdict.OK, Ejects.NOTHING, False, 0, None)


@pytest.mark.parametrize(
    ("status", "kind", "breaks"),
    [
        (400, Kind.CALLER_ERROR, False),
        (402, Kind.NO_MONEY, False),
        (403, Kind.CALLER_ERROR, False),
        (404, Kind.CALLER_ERROR, False),
        (408, Kind.SERVER_ERROR, True),
        (422, Kind.CALLER_ERROR, False),
        (498, Kind.CAPACITY, True),
        (500, Kind.SERVER_ERROR, True),
        (501, Kind.CALLER_ERROR, False),
        (502, Kind.SERVER_ERROR, True),
        (503, Kind.SERVER_ERROR, True),
        (504, Kind.SERVER_ERROR, True),
        (505, Kind.CALLER_ERROR, False),
        (599, Kind.SERVER_ERROR, True),
    ],
)
def test_a_bare_status(status, kind, breaks):
    outcome = classify(Signal(status))
    assert (outcome.kind, outcome.breaks) == (kind, breaks)


@pytest.mark.parametrize(
    ("signal", "kind"),
    [
        (Signal(), Kind.ERROR_IN_BODY),
        (Signal(200, error_type="server_error", message="boom"), Kind.ERROR_IN_BODY),
        (Signal(200, error_type="rate_limit_error"), Kind.RATE),
        (Signal(200, error_code="insufficient_quota"), Kind.NO_MONEY),
        (Signal(400, error_type="ThrottlingException"), Kind.RATE),
        (Signal(400, message="the prompt says: rate limit, overloaded, per day"), Kind.CALLER_ERROR),
        (Signal(429, limit=0, requested=1), Kind.TOO_LARGE),
        (Signal(429, limit=6_000, requested=6_000), Kind.RATE),
        (Signal(500, limit=0, requested=1), Kind.SERVER_ERROR),
        (Signal(400, message="Invalid value: 'invalid_api_key, insufficient_quota'."), Kind.CALLER_ERROR),
        (Signal(400, message="Your credit balance is too low to access the API."), Kind.NO_MONEY),
        (Signal(429, hint_ms=3_600_000), Kind.DAILY),
        (Signal(429, window_ms=DAY_MS), Kind.DAILY),
        (Signal(429, window_ms=60_000), Kind.RATE),
        (Signal(401, error_code="missing_scope", message="whatever"), Kind.CALLER_ERROR),
        (Signal(401, message=f"{NO_SCOPE}. Missing scopes: api.responses.write. Check that ..."), Kind.CALLER_ERROR),
        (
            Signal(401, error_code="invalid_api_key", message="Incorrect API key provided: missing_scope"),
            Kind.KEY_REFUSED,
        ),
        (Signal(401, message=f"Incorrect API key provided: {NO_SCOPE}"), Kind.KEY_REFUSED),
    ],
)
def test_where_the_status_alone_would_mislead(signal, kind):
    assert classify(signal).kind is kind


@pytest.mark.parametrize("ending", [ending for ending in Ending if ending is not Ending.ANSWERED])
def test_an_ending_without_a_complete_answer_outranks_its_status(ending):
    outcome = classify(Signal(200, ending))
    assert outcome.kind == ending.value
    assert outcome.ejects is Ejects.NOTHING
    assert outcome.breaks == (ending not in {Ending.DEADLINE, Ending.ADDRESS_DENIED, Ending.NO_SUCH_NAME})


def test_the_hint_decides_how_long_a_scope_stays_out():
    assert classify(Signal(429)).eject_ms == EJECT_MS
    assert classify(Signal(429, hint_ms=5_000)).eject_ms == 5_000
    assert classify(Signal(429, hint_ms=-5)).eject_ms == EJECT_MS
    assert classify(Signal(401, hint_ms=5_000)).eject_ms is None


def test_every_kind_has_its_row():
    assert set(ROWS) == set(Kind)


words = st.sampled_from(["overloaded", "rate_limit", "insufficient_quota", "Concurrency", "request too large", "401"])
integers = st.none() | st.integers(-(2**70), 2**70)
signals = st.builds(
    Signal,
    st.integers(-1, 1_000),
    st.sampled_from(Ending),
    words | st.text(),
    words | st.text(),
    words | st.text(),
    integers,
    st.integers(-(2**70), 2**70),
    integers,
    integers,
    named=st.none(),  # what is left out is drawn by its type, which a compiled tuple does not tell
)


@given(signals)
def test_every_signal_has_an_outcome_that_keeps_its_promises(signal):
    outcome = classify(signal)
    assert outcome.verdict is ROWS[outcome.kind].verdict
    assert outcome.hint_ms is None or outcome.hint_ms > 0
    assert (outcome.eject_ms == 0) == (outcome.ejects is Ejects.NOTHING)
    assert (outcome.eject_ms is None) == (outcome.verdict is Verdict.KEY_DEAD)
    if signal.status == 429:
        assert not (outcome.breaks and signal.ending is Ending.ANSWERED)
