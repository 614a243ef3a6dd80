"""What answers of hosts mean: recorded headers in every form, refusals in every status, and pages that are only pages."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.outcome import Kind
from swarmgate.gate.egress.signals import NOTHING, Stated, outcome_of, stated
from swarmgate.http1.head import parse_response

NOW_S = 1_770_000_000
RECORDED = Path(__file__).parents[4] / "shared/data/recordings/egress"
JSON = {"content-type": "application/json"}


def head(status=200, **fields):
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return parse_response("\r\n".join([f"HTTP/1.1 {status} X", *lines, "", ""]).encode("latin-1"))


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        (
            {"x_rate_limit_limit": 5, "x_rate_limit_interval": "1s", "x_concurrency_limit": 1},
            Stated(5, 1_000, None, None, 1),
        ),
        (
            {"x_ratelimit_limit": 60, "x_ratelimit_remaining": 0, "x_ratelimit_reset": NOW_S + 90},
            Stated(60, 0, 0, 90_000),
        ),
        (
            {"ratelimit": '"api";r=499;t=112', "ratelimit_policy": '"api";q=500;w=300'},
            Stated(500, 300_000, 499, 112_000),
        ),
        (
            {"ratelimit_limit": "100, 100;w=60", "ratelimit_remaining": 3, "ratelimit_reset": 7},
            Stated(100, 60_000, 3, 7_000),
        ),
        ({"x_ratelimit_limit": "40req/60s", "x_ratelimit_remaining": 39}, Stated(40, 60_000, 39)),
        (
            {"x_ratelimit_limit": 55_000, "x_ratelimit_period": 3_600, "x_ratelimit_remaining": 9},
            Stated(55_000, 3_600_000, 9),
        ),
        ({"x_ratelimit_limit": "lots"}, NOTHING),
        ({"x_ratelimit_limit": 5, "age": 30}, NOTHING),  # a cache says nothing of now
        ({}, NOTHING),
    ],
)
def test_limits_in_headers(fields, found):
    assert stated(head(**fields), NOW_S) == found


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "ratelimit",
                "ratelimit_policy",
                "x_ratelimit_limit",
                "ratelimit_limit",
                "x_rate_limit_interval",
                "x_concurrency_limit",
                "age",
            ]
        ),
        st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30),
    )
)
def test_nothing_in_a_header_can_raise(fields):
    said = stated(head(**{name: value.strip() or "-" for name, value in fields.items()}), NOW_S)
    assert said.limit is None or said.limit > 0


@pytest.mark.parametrize(
    ("status", "fields", "body", "refusals", "kind", "hint_ms"),
    [
        (429, {"retry_after": 7}, b"", (), Kind.RATE, 7_000),
        (429, {"retry_after": "-5"}, b"", (), Kind.RATE, None),
        (429, {"retry_after": "1e9x"}, b"", (), Kind.RATE, None),
        (403, JSON, b'{"message": "API rate limit exceeded for 203.0.113.7"}', (), Kind.RATE, None),
        (403, {"content-type": "text/html"}, b"<p>rate limit</p>", (), Kind.CALLER_ERROR, None),
        (403, {"content-type": "text/html"}, b"<p>Request Rate Threshold Exceeded</p>", (403,), Kind.RATE, None),
        (503, {"retry_after": 30}, b"", (), Kind.SERVER_ERROR, 30_000),
        (503, {}, b"", (503,), Kind.RATE, None),
        (429, JSON, b'{"error": "too many concurrent requests"}', (), Kind.CONCURRENCY, None),
        (401, JSON, b'{"error": {"code": "invalid_api_key"}}', (), Kind.CALLER_ERROR, None),
        (402, {}, b"", (), Kind.CALLER_ERROR, None),
        (413, {}, b"", (), Kind.CALLER_ERROR, None),
        (404, {}, b"", (), Kind.CALLER_ERROR, None),
        (500, {}, b"", (), Kind.SERVER_ERROR, None),
        (200, JSON, b'{"error": "rate limit"}', (), Kind.OK, None),  # content is the caller's business
    ],
)
def test_what_an_answer_means(status, fields, body, refusals, kind, hint_ms):
    outcome = outcome_of(head(status, **fields), body, frozenset(refusals), NOW_S)
    assert (outcome.kind, outcome.hint_ms) == (kind, hint_ms)


@pytest.mark.skipif(not RECORDED.exists(), reason="the recordings lie outside the repository")
def test_recorded_answers_are_read():
    read = {}
    for path in sorted(RECORDED.glob("*.json")):
        record = json.loads(path.read_text())
        fields = {
            name.replace("-", "_"): str(value).replace("\n", " ")
            for name, value in record["response"]["headers"].items()
        }
        fields.pop("age", None)
        fields.pop("status", None)
        said = stated(head(record["response"]["status"], **fields), NOW_S)
        read.setdefault(record["host"], set()).add((said.limit, said.window_ms, said.concurrent))
    assert read["api.crossref.org"] >= {(5, 1_000, 1), (150, 1_000, None)}
    assert (5_000, 0, None) in read["api.github.com"]
    assert (500, 300_000, None) in read["huggingface.co"]
    assert (450, 0, None) in read["api.exa.ai"]
