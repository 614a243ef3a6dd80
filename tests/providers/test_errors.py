import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.hints import LONGEST_HINT_MS
from swarmgate.core.outcome import EJECT_MS, Kind, Verdict
from swarmgate.gate.understanding import Answer, understand
from swarmgate.providers.errors import Failure, outcome_of, read_error_body, read_refusal
from swarmgate.providers.tables import DIALECTS

NOW_S = 1_790_000_000
every = st.sampled_from(sorted(DIALECTS)).map(DIALECTS.get)


def body(**error):
    return json.dumps({"error": error}).encode()


def outcome(name, status, raw, **headers):
    pairs = [(key.replace("_", "-"), value) for key, value in headers.items()]
    return outcome_of(DIALECTS[name], status, pairs, read_error_body(raw), NOW_S)


@pytest.mark.parametrize(
    ("raw", "failure"),
    [
        (body(type="t", code="c", message="m"), ("t", "c", "m")),
        (
            b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
            ("overloaded_error", "", "Overloaded"),
        ),
        (b'[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}]', ("RESOURCE_EXHAUSTED", "429", "m")),
        (body(code=400, message="m", details=[{"reason": "API_KEY_INVALID"}]), ("", "400 API_KEY_INVALID", "m")),
        (body(code=429, message="m", metadata={"raw": "upstream"}), ("", "429", "m upstream")),
        (b'{"message":"m","type":"rate_limited","code":"1300"}', ("rate_limited", "1300", "m")),
        (b'{"detail":"Invalid API Key"}', ("", "", "Invalid API Key")),
        (b'{"error":"broken"}', ("", "", "broken")),
        (b'{"error_type":"TOO_MANY_TOKENS","message":"m"}', ("TOO_MANY_TOKENS", "", "m")),
        (b"<html>", ("", "", "<html>")),
        (b'"text"', ("", "", '"text"')),
        (b"[[[[]]]]", ("", "", "[[[[]]]]")),
        (b'{"error":{"code":' + b"[" * 900 + b"]" * 900 + b"}}", ("", "", None)),
        (b"", ("", "", "")),
    ],
)
def test_errors_of_every_shape(raw, failure):
    read = read_error_body(raw)
    assert read[:2] == failure[:2]
    assert failure[2] is None or read.message == failure[2]


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (
            "on tokens per min (TPM): Limit 300,000, Used 286751, Requested 16144.",
            ("tokens", 300_000, 286_751, 16_144, 60_000),
        ),
        ("on requests per day (RPD): Limit 200, Used 200, Requested 1.", ("requests", 200, 200, 1, 86_400_000)),
        ("limit of 200,000 input tokens per minute", ("input_tokens", 200_000, None, None, 60_000)),
        ("reached max organization concurrency: 1, please", ("concurrency", 1, None, None, 0)),
        ("nothing of the kind", ("", None, None, None, 0)),
    ],
)
def test_llm_gateways_23_which_quota_refused(text, refusal):
    assert read_refusal(Failure(message=text)) == refusal


@pytest.mark.parametrize(
    ("name", "status", "raw", "kind"),
    [
        ("openai", 429, body(type="insufficient_quota", code="insufficient_quota"), Kind.NO_MONEY),
        ("openai", 503, body(code="slow_down", message="Slow down"), Kind.RATE),
        ("qwen", 429, body(type="insufficient_quota", code="insufficient_quota"), Kind.RATE),
        ("qwen", 400, b'{"code":"Arrearage","message":"Access denied"}', Kind.NO_MONEY),
        ("deepseek", 429, body(message="Rate limit reached"), Kind.CONCURRENCY),
        ("deepseek", 402, body(message="Insufficient Balance"), Kind.NO_MONEY),
        ("deepseek", 503, b"", Kind.CAPACITY),
        ("moonshot", 429, body(type="exceeded_current_quota_error"), Kind.NO_MONEY),
        ("moonshot", 429, body(type="engine_overloaded_error"), Kind.CAPACITY),
        ("mistral", 429, b'{"code":"3505","message":"Service tier capacity exceeded for this model."}', Kind.CAPACITY),
        ("mistral", 429, b'{"code":"1300","message":"Rate limit exceeded"}', Kind.RATE),
        ("groq", 498, body(code="capacity_exceeded"), Kind.CAPACITY),
        ("groq", 413, body(code="rate_limit_exceeded"), Kind.TOO_LARGE),
        ("anthropic", 200, body(type="overloaded_error"), Kind.CAPACITY),
        ("anthropic", 429, body(type="rate_limit_error", code="enforced_spend_limit_reached"), Kind.NO_MONEY),
        ("anthropic", 402, body(type="billing_error"), Kind.NO_MONEY),
        ("openrouter", 402, body(code=402, message="Insufficient credits"), Kind.NO_MONEY),
        ("openrouter", 200, body(code=429, message="Provider returned error"), Kind.CAPACITY),
        ("generic", 200, body(code=429, message="Slow down"), Kind.RATE),
        ("openrouter", 200, body(code=401, message="upstream key"), Kind.ERROR_IN_BODY),
        ("openrouter", 200, body(code=502, message="bad gateway"), Kind.SERVER_ERROR),
        ("gemini", 429, body(code=429, message="Quota exceeded, limit: 0, model: x"), Kind.TOO_LARGE),
        ("azure", 429, body(code="429", message="The system is currently experiencing high demand"), Kind.CAPACITY),
        ("generic", 429, b"", Kind.RATE),
        ("generic", 404, b"", Kind.CALLER_ERROR),
    ],
)
def test_the_same_words_mean_different_things(name, status, raw, kind):
    assert outcome(name, status, raw).kind is kind


@pytest.mark.parametrize(
    ("headers", "hint_ms"),
    [
        ({"retry_after": "7", "anthropic_ratelimit_tokens_remaining": "0"}, 7_000),
        ({"x_ms_retry_after_ms": "250", "retry_after": "1"}, 250),
        (
            {
                "anthropic_ratelimit_tokens_remaining": "0",
                "anthropic_ratelimit_tokens_reset": "2026-09-21T14:13:30Z",
                "anthropic_ratelimit_requests_remaining": "5",
                "anthropic_ratelimit_requests_reset": "2026-09-21T14:14:10Z",
            },
            10_000,
        ),
        (
            {"anthropic_ratelimit_tokens_remaining": "0", "anthropic_ratelimit_tokens_reset": "2026-09-22T14:13:20Z"},
            60_000,
        ),
        ({}, None),
    ],
)
def test_a_used_up_quota_is_a_hint_where_nothing_better_is_said(headers, hint_ms):
    assert outcome("anthropic", 429, body(type="rate_limit_error"), **headers).hint_ms == hint_ms


def test_a_wait_in_the_details_counts():
    raw = body(code=429, message="exhausted", details=[{"@type": "RetryInfo", "retryDelay": "48s"}])
    assert outcome("gemini", 429, raw).hint_ms == 48_000


header_names = st.sampled_from(
    ["retry-after", "retry-after-ms", "date", "content-type", "x-ratelimit-reset", "ratelimit"]
)
bodies = (
    st.binary()
    | st.recursive(
        st.none() | st.integers() | st.floats() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    ).map(lambda error: json.dumps({"error": error}).encode())
    | st.text().map(lambda text: body(message=f"limit: {text} try again in {text}", details=[text]))
)


@given(every, st.integers(100, 999), st.lists(st.tuples(header_names, st.text(max_size=30)), max_size=4), bodies)
def test_any_answer_of_any_dialect_is_understood(dialect, status, headers, raw):
    one = understand(dialect, Answer(status, tuple(headers), raw), NOW_S)
    assert one.reason
    assert one.wait_ms is None or 0 <= one.wait_ms <= max(EJECT_MS, LONGEST_HINT_MS)
    assert (one.wait_ms is None) == (one.outcome.verdict in {Verdict.REFUSE, Verdict.KEY_DEAD, Verdict.FAILED})
    if status == 429 and one.outcome.kind is Kind.RATE:
        assert one.wait_ms


@given(every, st.sampled_from([400, 403, 404, 409, 422, 429, 500, 503]), st.text())
def test_no_text_kills_a_key(dialect, status, text):
    """What an agent sent may come back in an error's message, but never as its opening at the one place that counts."""
    said = f"Invalid value: {text} insufficient_quota invalid_api_key authentication_error exceeded your current quota"
    assert outcome_of(dialect, status, (), Failure(message=said), NOW_S).verdict is not Verdict.KEY_DEAD
