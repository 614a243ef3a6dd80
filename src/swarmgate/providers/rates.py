"""What an answer's headers say is left: the rows of the dialect's table, and the IETF draft's fields."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from swarmgate.core.hints import draft_items, parse_wait_ms, server_now_s
from swarmgate.core.outcome import QuotaLeft
from swarmgate.providers.dialect import MINUTE_MS, Dialect, RateHeader

MOST_DIGITS = 15
_LIKE_AN_INSTANT = 10  # characters: a shorter reset is a wait, whatever the answer's date


_DRAFTED_UNITS: Final = {"": "requests", "concurrent-requests": "concurrent", "content-bytes": "bytes"}


class Reading(NamedTuple):
    """
    One quota as one answer reported it; None = not told.

    `reset_ms` from the answer on: until all is back (`refills`) or until the window's end. A limit or a remaining amount
    below 0 is a sentinel (Azure's -1) and reads as not told.
    """

    dimension: str
    limit: int | None = None
    remaining: int | None = None
    reset_ms: int | None = None
    window_ms: int = 0
    refills: bool = False


def read_rates(dialect: Dialect, fields: Mapping[str, str], now_unix_s: int) -> tuple[Reading, ...]:
    """
    The quotas that an answer reports, in the order of the dialect's table; nothing sent can raise.

    `fields` by lower-case name. Instants are measured against the answer's own `date` where it has one.
    """
    told = []
    for row in dialect.rates:
        if row.limit in fields or row.remaining in fields or row.reset in fields:
            one = read_row(row, fields, now_unix_s)
            if (one.limit, one.remaining) != (None, None) or not row.remaining:  # else both are sentinels
                told.append(one)
    if "ratelimit" in fields:
        told += _drafted(fields["ratelimit"], fields.get("ratelimit-policy", ""), now_unix_s)
    return tuple(told)


def read_row(row: RateHeader, fields: Mapping[str, str], now_unix_s: int) -> Reading:
    """What an answer says of one quota."""
    reset = fields.get(row.reset, "")
    if len(reset) >= _LIKE_AN_INSTANT and "date" in fields:
        now_unix_s = server_now_s([fields["date"]], now_unix_s)
    return Reading(
        row.dimension,
        _amount(fields[row.limit]) if row.limit in fields else None,
        _amount(fields[row.remaining]) if row.remaining in fields else None,
        parse_wait_ms(reset, now_unix_s) if reset else None,
        row.window_ms,
        row.refills,
    )


def tightest(readings: tuple[Reading, ...]) -> Reading | None:
    """The quota of which the smallest share is left; one whose share is not told comes last."""
    return min(readings, key=_share, default=None)


def block_ms(reading: Reading) -> int:
    """How long a used-up quota keeps its scope out: to its reset, but a reset that lies cannot block beyond the window."""
    longest_ms = MINUTE_MS if reading.refills else reading.window_ms or MINUTE_MS
    return min(reading.reset_ms or longest_ms, longest_ms)


def quota_left(readings: tuple[Reading, ...], now_ms: int) -> QuotaLeft | None:
    """
    What the readings say of a key: out, if a window is used up; else what is left of the first, at most its limit.

    What refills one by one is never taken for used up: the next unit comes long before the reset. None = nothing told.
    """
    for one in readings:
        if one.remaining == 0 and not one.refills and one.reset_ms:
            return QuotaLeft(0, now_ms + block_ms(one))
    for one in readings:
        if one.remaining is not None:
            remaining = min(one.remaining, one.limit) if one.limit else one.remaining
            reset_at_ms = 0 if one.reset_ms is None else now_ms + (one.reset_ms and block_ms(one))
            return QuotaLeft(max(1, remaining), reset_at_ms, one.limit or 0)
    return None


def _drafted(field: str, policy: str, now_unix_s: int) -> Iterator[Reading]:
    """Items of `RateLimit` with what `RateLimit-Policy` says of them (draft 08 and later)."""
    policies = [item for item in draft_items(policy) if "q" in item]
    for number, item in enumerate(item for item in draft_items(field) if "r" in item):
        of_it = policies[number] if number < len(policies) else {}
        window_ms = parse_wait_ms(of_it.get("w", ""), now_unix_s) or 0
        reset_ms = parse_wait_ms(item.get("t", ""), now_unix_s)
        unit = of_it.get("qu", "").strip('"')
        yield Reading(
            _DRAFTED_UNITS.get(unit, unit), _amount(of_it.get("q", "")), _amount(item["r"]), reset_ms, window_ms
        )


def _amount(value: str) -> int | None:
    whole = value.strip().partition(".")[0]
    return int(whole) if whole.isascii() and whole.isdigit() and len(whole) <= MOST_DIGITS else None


def _share(reading: Reading) -> int:
    if reading.remaining is None or not reading.limit:
        return 1 << 40
    return (reading.remaining << 32) // reading.limit
