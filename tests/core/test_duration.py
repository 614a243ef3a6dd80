import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.duration import DAY_MS, LONGEST_DURATION_MS, duration_ms, parse_duration_ms
from swarmgate.core.errors import BadInput


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("250ms", 250),
        ("20s", 20_000),
        ("5m", 300_000),
        ("1h", 3_600_000),
        ("1d", DAY_MS),
        ("1.5s", 1_500),
        ("0s", 0),
        ("1ms", 1),
        ("8.64s", 8_640),
        ("1m9.696s", 69_696),
        ("2m59.56s", 179_560),
        ("1h2m3s", 3_723_000),
        ("1h12m3s", 4_323_000),
        ("6m0s", 360_000),
        ("50.597142857s", 50_598),
        ("1ns", 1),
        ("1000001ns", 2),
        ("500us", 1),
        ("1500\N{MICRO SIGN}s", 2),
        ("1500\N{GREEK SMALL LETTER MU}s", 2),
        ("2 minutes", 120_000),
        ("1 minute 30 seconds", 90_000),
        ("1 hour, 2 mins and 3 secs", 3_723_000),
        ("20S", 20_000),
    ],
)
def test_reads_what_people_and_providers_write(text, ms):
    assert duration_ms(text) == ms
    assert parse_duration_ms(f" {text} ") == ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "20",
        "-5s",
        "+5s",
        "s",
        "1x",
        "5 apples",
        "1e3s",
        "1.s",
        ".5s",
        "1s2",
        "\u0661s",
        "5\N{LATIN SMALL LETTER LONG S}",
    ],
)
def test_refuses_what_is_no_duration_and_says_so(text):
    assert duration_ms(text) is None
    with pytest.raises(BadInput, match="number and its unit") as refusal:
        parse_duration_ms(text, "x-swarmgate-wait")
    assert refusal.value.field == "x-swarmgate-wait"


def test_refuses_a_duration_beyond_every_window():
    assert parse_duration_ms("366d") == LONGEST_DURATION_MS
    with pytest.raises(BadInput, match="366 days"):
        parse_duration_ms("367d")


@given(st.integers(0, LONGEST_DURATION_MS))
def test_reads_back_every_millisecond_in_every_spelling(ms):
    hours, rest = divmod(ms, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    spellings = [f"{ms}ms", f"{ms // 1000}.{ms % 1000:03}s", f"{hours}h{minutes}m{rest // 1000}.{rest % 1000:03}s"]
    assert [duration_ms(text) for text in spellings] == [ms] * 3


@given(st.text() | st.from_regex(r"[0-9]{1,20}(\.[0-9]{0,20})?[a-zA-Z ]{0,3}"))
def test_any_text_is_a_bounded_duration_or_the_typed_error(text):
    if duration_ms(text.strip()) is None:
        with pytest.raises(BadInput):
            parse_duration_ms(text)
    else:
        assert duration_ms(text.strip()) >= 0
