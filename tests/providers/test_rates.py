import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.hints import LONGEST_HINT_MS
from swarmgate.core.outcome import EJECT_MS, QuotaLeft
from swarmgate.providers.rates import Reading, block_ms, quota_left, read_rates, tightest
from swarmgate.providers.tables import DIALECTS

NOW_S = 1_790_000_000  # Mon, 21 Sep 2026 14:13:20 GMT
MINUTE_MS = 60_000
DAY_MS = 86_400_000


def read(name, **fields):
    return read_rates(DIALECTS[name], {key.replace("_", "-"): value for key, value in fields.items()}, NOW_S)


@pytest.mark.parametrize(
    ("name", "fields", "readings"),
    [
        (
            "openai",
            {
                "x_ratelimit_limit_tokens": "500",
                "x_ratelimit_remaining_tokens": "20",
                "x_ratelimit_reset_tokens": "6m0s",
            },
            [("tokens", 500, 20, 360_000, MINUTE_MS, True)],
        ),
        (
            "groq",
            {"x_ratelimit_limit_requests": "14400", "x_ratelimit_reset_requests": "2m59.56s"},
            [("requests", 14_400, None, 179_560, DAY_MS, True)],
        ),
        (
            "azure",
            {
                "x_ratelimit_limit_requests": "-1",
                "x_ratelimit_remaining_requests": "-1",
                "x_ratelimit_reset_requests": "0",
            },
            [],
        ),
        ("azure", {"x_rate_limit_reset_tokens": "55"}, [("tokens", None, None, 55_000, MINUTE_MS, False)]),
        (
            "anthropic",
            {
                "anthropic_ratelimit_requests_limit": "50",
                "anthropic_ratelimit_requests_remaining": "49",
                "anthropic_ratelimit_requests_reset": "2026-09-21T15:13:30Z",
                "date": "Mon, 21 Sep 2026 15:13:20 GMT",
            },
            [("requests", 50, 49, 10_000, MINUTE_MS, True)],
        ),
        (
            "mistral",
            {"x_ratelimit_limit_tokens_month": "9", "x_ratelimit_remaining_tokens_month": "8"},
            [("tokens", 9, 8, None, 31 * DAY_MS, False)],
        ),
        (
            "openrouter",
            {"x_ratelimit_limit": "20", "x_ratelimit_remaining": "0", "x_ratelimit_reset": "1790000030000"},
            [("requests", 20, 0, 30_000, 0, False)],
        ),
        (
            "generic",
            {"ratelimit": '"api";r=499;t=70, "day";r=3', "ratelimit_policy": '"fixed window";"api";q=500;w=300'},
            [("requests", 500, 499, 70_000, 300_000, False), ("requests", None, 3, None, 0, False)],
        ),
        ("generic", {"x_ratelimit_remaining": "1e12", "x_ratelimit_limit": "9" * 40}, []),
        ("generic", {"x_ratelimit_remaining": "4.75"}, [("requests", None, 4, None, 0, False)]),
        ("deepseek", {"x_ratelimit_remaining": "4"}, []),
    ],
)
def test_what_headers_say(name, fields, readings):
    assert list(read(name, **fields)) == readings


def test_the_tightest_is_the_one_with_the_smallest_share():
    loose, tight, mute = Reading("a", 100, 90), Reading("b", 1_000_000, 1_000), Reading("c", None, 0)
    assert tightest((mute, loose, tight)) is tight
    assert tightest((mute,)) is mute
    assert tightest(()) is None


@pytest.mark.parametrize(
    ("readings", "left"),
    [
        ([], None),
        ([Reading("requests", limit=5)], None),
        ([Reading("tokens", 500, 20, 3_000)], QuotaLeft(20, 8_000, 500)),
        ([Reading("tokens", 500, 10**14, 3_000)], QuotaLeft(500, 8_000, 500)),
        ([Reading("tokens", None, 20)], QuotaLeft(20)),
        ([Reading("tokens", 500, 0, 40_000, refills=True)], QuotaLeft(1, 45_000, 500)),
        ([Reading("tokens", 500, 20), Reading("requests", 9, 0, 2_000)], QuotaLeft(0, 7_000)),
        ([Reading("tokens", 500, 20), Reading("requests", 9, 0, LONGEST_HINT_MS)], QuotaLeft(0, 5_000 + EJECT_MS)),
        ([Reading("tokens", 500, 0)], QuotaLeft(1, 0, 500)),
    ],
)
def test_what_a_key_ring_hears_of_it(readings, left):
    assert quota_left(tuple(readings), 5_000) == left


def test_a_reset_that_lies_blocks_no_longer_than_its_window():
    assert block_ms(Reading("requests", 9, 0, LONGEST_HINT_MS, DAY_MS)) == DAY_MS
    assert block_ms(Reading("requests", 9, 0, LONGEST_HINT_MS)) == MINUTE_MS
    assert block_ms(Reading("requests", 9, 0, 70, DAY_MS, refills=True)) == 70


ROWS = [row for one in DIALECTS.values() for row in one.rates]
NAMES = {name for row in ROWS for name in (row.limit, row.remaining, row.reset)} | {
    "ratelimit",
    "ratelimit-policy",
    "date",
}
names = st.sampled_from(sorted(NAMES))
values = st.text(max_size=40) | st.from_regex(r"-?[0-9]{1,25}(\.[0-9]{1,9})?(ms|s|m)?", fullmatch=True)


@given(st.sampled_from(sorted(DIALECTS)), st.dictionaries(names, values, max_size=8), st.integers(1, 2**40))
def test_nothing_sent_can_raise_or_escape_the_bounds(name, fields, now_ms):
    readings = read_rates(DIALECTS[name], fields, NOW_S)
    for one in readings:
        assert one.reset_ms is None or 0 <= one.reset_ms <= LONGEST_HINT_MS
    tightest(readings)
    left = quota_left(readings, now_ms)
    if left is not None:
        assert left.remaining >= 0
        assert left.reset_at_ms <= now_ms + 31 * DAY_MS
