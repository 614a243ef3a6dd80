"""
The one grammar of durations: what people write in files and headers, and what providers write in answers.

A duration is a row of `number unit` terms: `250ms`, `20s`, `1h2m3s`, `1m9.696s` (Go), `50.597142857s`, `2 minutes`.
It is summed exactly in nanoseconds and rounded up to a millisecond once, at the end: a wait may end late, never early.
"""

import re
from typing import Final

from swarmgate.core.errors import BadInput

MS_NS: Final = 1_000_000
SECOND_NS: Final = 1_000 * MS_NS
DAY_MS: Final = 86_400_000
LONGEST_DURATION_MS: Final = 366 * DAY_MS  # no quota's window is longer; keeps products with units below 2^53

_UNITS_NS: Final = {
    **dict.fromkeys(("ns", "nanosecond", "nanoseconds"), 1),
    **dict.fromkeys(("us", "\N{MICRO SIGN}s", "\N{GREEK SMALL LETTER MU}s", "microsecond", "microseconds"), 1_000),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds"), MS_NS),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), SECOND_NS),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60 * SECOND_NS),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3_600 * SECOND_NS),
    **dict.fromkeys(("d", "day", "days"), 86_400 * SECOND_NS),
}
_HOURS: Final = ("h", 3_600_000)
_MINUTES: Final = ("min", 60_000)
_SECONDS: Final = ("s", 1_000)
NUMBER: Final = r"[0-9]{1,15}(?:\.[0-9]{1,18})?"
_UNIT: Final = "|".join(sorted(_UNITS_NS, key=len, reverse=True))
_TERM: Final = rf"{NUMBER} ?(?:{_UNIT})(?![a-z])"
DURATION: Final = rf"{_TERM}(?:,? ?(?:and )?{_TERM}){{0,5}}"

_WHOLE: Final = re.compile(DURATION, re.IGNORECASE | re.ASCII)
_PARTS: Final = re.compile(rf"({NUMBER}) ?({_UNIT})", re.IGNORECASE | re.ASCII)


def scale_ns(number: str, unit_ns: int) -> int:
    """A decimal number of units in nanoseconds, rounded up; `number` matches `NUMBER`."""
    whole, _, fraction = number.partition(".")
    scale: int = 10 ** len(fraction)
    return -(-int(whole + fraction) * unit_ns // scale)


def ceil_ms(ns: int) -> int:
    """Nanoseconds in whole milliseconds, rounded up."""
    return -(-ns // MS_NS)


def duration_ms(text: str) -> int | None:
    """The duration that `text` is, in ms, rounded up; None if it is anything else (a bare number has no unit)."""
    if not _WHOLE.fullmatch(text):
        return None
    return ceil_ms(sum([scale_ns(number, _UNITS_NS[unit.lower()]) for number, unit in _PARTS.findall(text)]))


def shown_duration(ms: int, *, up: bool = False) -> str:
    """How long, in the unit that leaves few digits; rounded `up` for who is not to come too early."""
    ms = max(0, ms)
    unit, length_ms = _HOURS if ms >= 2 * _HOURS[1] else _MINUTES if ms >= 2 * _MINUTES[1] else _SECONDS
    tenths = -(-10 * ms // length_ms) if up else round(10 * ms / length_ms)
    return f"{tenths / 10:,.1f} {unit}"


def parse_duration_ms(text: str, field: str = "duration") -> int:
    """
    A duration that a person wrote (`250ms`, `20s`, `5m`, `1h`, `1d`), in ms, rounded up.

    Errors: `BadInput` on `field` if the unit is missing, the text is no duration, or it is longer than 366 days.
    """
    wait_ms = duration_ms(text.strip())
    if wait_ms is None:
        raise BadInput(field, f"{text[:40]!r} is no duration: write a number and its unit, as 250ms, 20s, 5m, 1h or 1d")
    if wait_ms > LONGEST_DURATION_MS:
        raise BadInput(field, f"{text[:40]!r} is longer than 366 days")
    return wait_ms
