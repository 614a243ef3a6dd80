import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.duration import MS_NS
from swarmgate.core.hints import LONGEST_HINT_MS, parse_wait_ms, read_hint_ms, wait_in_text_ms

NOW_S = 1_790_000_000  # Mon, 21 Sep 2026 14:13:20 GMT
RECORDINGS = Path(__file__).parents[3] / "shared" / "data" / "recordings"


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        ("55", 55_000),
        (" 30 ", 30_000),
        ("1.5", 1_500),
        ("0.0001", 1),
        ("0", 0),
        ("120ms", 120),
        ("1m9.696s", 69_696),
        ("Mon, 21 Sep 2026 14:13:50 GMT", 30_000),
        ("Monday, 21-Sep-26 14:13:50 GMT", 30_000),
        ("Mon Sep 21 14:13:50 2026", 30_000),
        ("2026-09-21T14:13:50.0001Z", 30_001),
        ("1790000030", 30_000),
        ("1790000030.25", 30_250),
        ("1790000030250", 30_250),
        ("1789999999", 0),
        ("Mon, 21 Sep 2026 14:13:19 GMT", 0),
        ("86400", 86_400_000),
        ("999999999", LONGEST_HINT_MS),
        ("Wed, 21 Oct 2037 07:28:00 GMT", LONGEST_HINT_MS),
        ("366d", LONGEST_HINT_MS),
        ("-1", None),
        ("-5", None),
        ("1e9", None),
        ("1000000000000", None),
        ("1000000000000000", None),
        ("9" * 100_000, None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", None),
        ("abc", None),
        ("", None),
        ("X-RATELIMIT-RESET-REQUESTS-XXX", None),
    ],
)
def test_one_value_of_any_form(value, ms):
    assert parse_wait_ms(value, NOW_S) == ms


def test_a_bare_number_counts_in_the_unit_of_its_header():
    assert parse_wait_ms("250.1", NOW_S, bare_ns=MS_NS) == 251


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("Limit 30000, Used 28039, Requested 3906. Please try again in 3.89s. Visit https://x", 3_890),
        ("Please try again in 579ms.", 579),
        ("Please try again in 6m0s.", 360_000),
        ("Please retry after 86400 seconds. Please go here", 86_400_000),
        ("limit exceeded, please try again after 1 seconds", 1_000),
        ("Please try again after 1 minute and 30 seconds.", 90_000),
        ('Please retry in 48.939935699s.", "details": [{"retryDelay": "48s"}]', 48_940),
        ('{"retry_after": 64.57, "global": false}', 64_570),
        ("retry after 5.", 5_000),
        ("retry after 5 attempts", None),
        ("retry after 2026-01-01", None),
        ("retry after 12monkeys", None),
        ("Too many tokens, please wait before trying again.", None),
        ("The model is overloaded. Please try again later.", None),
        ("", None),
    ],
)
def test_waits_in_the_text_of_errors(text, ms):
    assert wait_in_text_ms(text, NOW_S) == ms


@pytest.mark.parametrize(
    ("headers", "text", "ms"),
    [
        ({"retry-after-ms": "250", "retry-after": "1"}, "", 250),
        ({"retry-after-ms": "0", "retry-after": "1"}, "", 1_000),
        ({"Retry-After": "16", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "63"}, "", 16_000),
        ({"retry-after": "2"}, "Please try again in 4.77s", 2_000),
        ({"retry-after": "0"}, "", None),
        ({"retry-after": "junk"}, "Please try again in 4.77s", 4_770),
        ({"ratelimit": '"api";r=0;t=70'}, "", 70_000),
        ({"ratelimit": '"api";r=499;t=70'}, "", None),
        ({"ratelimit": '"a, b";r=3;t=900, "day";r=0;t=50;pk=:c2c=:'}, "", 50_000),
        ({"ratelimit": "limit=100, remaining=0, reset=50"}, "", 50_000),
        ({"ratelimit": "limit=100, remaining=1, reset=50"}, "", None),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "7"}, "", 7_000),
        ({"ratelimit-remaining": "9", "ratelimit-reset": "7"}, "", None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1790000030"}, "", 30_000),
        ({"x-rate-limit-reset": "55"}, "", 55_000),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "-1"}, "", None),
        ({"date": "Mon, 21 Sep 2026 15:13:20 GMT", "retry-after": "Mon, 21 Sep 2026 15:13:50 GMT"}, "", 30_000),
    ],
)
def test_several_headers_at_once(headers, text, ms):
    assert read_hint_ms(429, headers.items(), text, NOW_S) == ms


def test_a_header_sent_twice_counts_with_its_longest_value():
    assert read_hint_ms(503, [("retry-after", "junk"), ("retry-after", "9"), ("retry-after", "3")], "", NOW_S) == 9_000


@pytest.mark.parametrize("status", [200, 201, 204])
def test_a_success_asks_for_no_wait(status):
    assert read_hint_ms(status, [("retry-after", "59"), ("ratelimit", '"a";r=0;t=70')], "", NOW_S) is None


def test_an_error_inside_a_success_may_ask_for_one():
    assert read_hint_ms(200, [("retry-after", "59")], "Please try again in 2s", NOW_S) == 2_000


names = st.sampled_from(
    [
        "date",
        "retry-after",
        "retry-after-ms",
        "ratelimit",
        "ratelimit-reset",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
    ]
)
values = (
    st.text(max_size=40)
    | st.from_regex(r"-?[0-9]{1,20}(\.[0-9]{1,20})?", fullmatch=True)
    | st.from_regex(r'("[a-z]*"|[a-z]*)(;[rt]=-?[0-9]{1,5}){0,3}', fullmatch=True)
    | st.datetimes().map(lambda moment: moment.strftime("%a, %d %b %Y %H:%M:%S GMT"))
)


@given(st.integers(100, 599), st.lists(st.tuples(names, values), max_size=5), values, st.integers(0, 2**35))
def test_nothing_sent_can_raise_or_escape_the_bounds(status, headers, text, now_s):
    hint_ms = read_hint_ms(status, headers, f"try again in {text}", now_s)
    assert hint_ms is None or 0 < hint_ms <= LONGEST_HINT_MS


@given(st.integers(1, LONGEST_HINT_MS // 1_000), st.integers(0, 10**9 * 4))
def test_an_instant_and_a_delay_say_the_same(seconds, now_s):
    at_s = max(now_s + seconds, 10**9)
    assert parse_wait_ms(str(at_s), now_s) == min((at_s - now_s) * 1_000, LONGEST_HINT_MS)
    assert parse_wait_ms(str(at_s * 1_000), now_s) == min((at_s - now_s) * 1_000, LONGEST_HINT_MS)
    assert parse_wait_ms(str(seconds), now_s) == seconds * 1_000


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason="the recordings are not in this repository")
def test_recorded_refusals_ask_for_what_their_tags_say():
    read = {}
    for entry in json.loads((RECORDINGS / "manifest.json").read_text()):
        status = entry.get("status")
        tagged = [tag for tag in entry.get("tags", ()) if tag.startswith("retry_in_body:")]
        if status == 200 or tagged:
            response = json.loads((RECORDINGS / entry["file"]).read_text())["response"]
            error_text = json.dumps(response["body"]) if tagged else ""
            hint_ms = read_hint_ms(status, response.get("headers", {}).items(), error_text, NOW_S)
            if tagged:
                read[entry["id"]] = (hint_ms, parse_wait_ms(tagged[0].partition(":")[2], NOW_S))
            else:
                assert hint_ms is None, entry["id"]
    assert read.pop("groq-c01") == (2_000, 4_770)  # its header outranks its text
    assert len(read) >= 6
    assert all(0 <= hint - told < 100 for hint, told in read.values()), read
