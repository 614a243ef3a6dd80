from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.instants import instant_ms

NOW_S = 1_790_000_000  # September 2026
RFC_EXAMPLE_MS = 784_111_777_000  # the one instant of RFC 9110 5.6.7


@pytest.mark.parametrize(
    "text",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "1994-11-06T08:49:37Z",
        "1994-11-06t08:49:37z",
        "1994-11-06T09:49:37+01:00",
        "1994-11-06 03:19:37.000-05:30",
    ],
)
def test_every_form_names_the_same_instant(text):
    assert instant_ms(text, NOW_S) == RFC_EXAMPLE_MS


@pytest.mark.parametrize(
    ("text", "year"),
    [
        ("Wednesday, 21-Oct-76 07:28:00 GMT", 2076),
        ("Friday, 21-Oct-77 07:28:00 GMT", 1977),
        ("Sunday, 21-Oct-00 07:28:00 GMT", 2000),
    ],
)
def test_two_digit_years_more_than_50_ahead_are_past(text, year):
    assert instant_ms(text, NOW_S) == 1_000 * datetime(year, 10, 21, 7, 28, tzinfo=UTC).timestamp()


def test_fractions_are_rounded_up_and_leap_seconds_are_read():
    assert instant_ms("1994-11-06T08:49:37.000001Z", NOW_S) == RFC_EXAMPLE_MS + 1
    assert instant_ms("Sat, 31 Dec 2016 23:59:60 GMT", NOW_S) == instant_ms("Sat, 31 Dec 2016 23:59:59 GMT", NOW_S)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "Wed, 31 Feb 2026 07:28:00 GMT",
        "Wed, 21 Okt 2026 07:28:00 GMT",
        "Wed, 21 Oct 2026 25:28:00 GMT",
        "Wed, 21 Oct 2026 07:28:00",
        "2026-10-21T07:28:00",
        "2026-10-21",
        "0000-10-21T07:28:00Z",
        "2026-10-21T07:28:00+24:00",
    ],
)
def test_what_names_no_instant_is_none(text):
    assert instant_ms(text, NOW_S) is None


@given(st.integers(86_400, 253_402_200_000), st.integers(0, 999_999), st.integers(-1_439, 1_439))
def test_reads_back_what_the_standard_library_writes(unix_s, microsecond, offset_minutes):
    utc = datetime.fromtimestamp(unix_s, UTC).replace(microsecond=microsecond)
    whole = utc.replace(microsecond=0)
    assert instant_ms(format_datetime(whole, usegmt=True), NOW_S) == unix_s * 1_000
    elsewhere = utc.astimezone(timezone(timedelta(minutes=offset_minutes)))
    assert instant_ms(elsewhere.isoformat(), NOW_S) == unix_s * 1_000 - -microsecond // 1_000


@given(st.text() | st.from_regex(r"[A-Za-z]{3,9}[, ] ?[0-9A-Za-z: +-]{0,30}") | st.from_regex(r"[0-9T:.+-]{10,35}Z?"))
def test_any_text_is_an_instant_or_none(text):
    found = instant_ms(text, NOW_S)
    assert found is None or isinstance(found, int)
