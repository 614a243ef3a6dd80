"""
Instants as servers write them: the three HTTP dates (RFC 9110 5.6.7) and RFC 3339 timestamps.

Only the calendar is used, never a clock and never the locale: `datetime.strptime` would read month names in the
language of the process.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CENTURY: Final = 100
_TIME: Final = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_MONTH: Final = r"(?P<month>[a-z]{3})"
_HTTP_DATES: Final = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"[a-z]{{3}}, (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_TIME} GMT",  # IMF-fixdate
        rf"[a-z]{{6,9}}, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} GMT",  # RFC 850
        rf"[a-z]{{3}} {_MONTH} (?P<day>[ 0-9][0-9]) {_TIME} (?P<year>[0-9]{{4}})",  # asctime
    )
)
_RFC_3339: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:]{8}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})")


def instant_ms(text: str, now_unix_s: int) -> int | None:
    """
    The instant that `text` names, in ms since 1970, rounded up; None if it names none.

    `now_unix_s` decides the century of RFC 850's two-digit years: more than 50 years ahead means the past.
    """
    try:
        if _RFC_3339.fullmatch(text.upper()):
            return _unix_ms(datetime.fromisoformat(text.upper()))
        for form in _HTTP_DATES:
            found = form.fullmatch(text)
            if found:
                return _unix_ms(_http_date(found, now_unix_s))
    except ValueError:  # the form is right, the date is not: 31 February
        return None
    return None


def _http_date(found: re.Match[str], now_unix_s: int) -> datetime:
    year, day, hour, minute, second = (int(found[part]) for part in ("year", "day", "hour", "minute", "second"))
    if year < _CENTURY:
        this_year = 1970 + now_unix_s // 31_556_952  # the mean Gregorian year in seconds
        year += this_year - this_year % _CENTURY
        if year > this_year + 50:
            year -= _CENTURY
    month = _MONTHS.index(found["month"].lower()) + 1
    return datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)  # 60 is a leap second


def _unix_ms(instant: datetime) -> int:
    return -((_EPOCH - instant) // _MS)
