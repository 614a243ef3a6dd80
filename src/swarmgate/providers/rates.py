"""What an answer's headers say is left: the rows of the dialect's table, and the IETF draft's fields, which anyone may send."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from swarmgate.core.hints import draft_items, parse_wait_ms, server_now_s
from swarmgate.providers.dialect import Dialect

MOST_DIGITS = 15


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
    now_unix_s = server_now_s([fields["date"]] if "date" in fields else (), now_unix_s)
    return tuple(_told(dialect, fields, now_unix_s))


def tightest(readings: tuple[Reading, ...]) -> Reading | None:
    """The quota of which the smallest share is left; one whose share is not told comes last."""
    return min(readings, key=_share, default=None)


def _told(dialect: Dialect, fields: Mapping[str, str], now_unix_s: int) -> Iterator[Reading]:
    for row in dialect.rates:
        limit, remaining = _amount(fields.get(row.limit, "")), _amount(fields.get(row.remaining, ""))
        reset_ms = parse_wait_ms(fields.get(row.reset, ""), now_unix_s)
        if (limit, remaining) != (None, None) or (reset_ms and not row.remaining):
            yield Reading(row.dimension, limit, remaining, reset_ms, row.window_ms, row.refills)
    if "ratelimit" in fields:
        yield from _drafted(fields["ratelimit"], fields.get("ratelimit-policy", ""), now_unix_s)


def _drafted(field: str, policy: str, now_unix_s: int) -> Iterator[Reading]:
    """Items of `RateLimit` with what `RateLimit-Policy` says of them (draft 08 and later)."""
    policies = [item for item in draft_items(policy) if "q" in item]
    for number, item in enumerate(item for item in draft_items(field) if "r" in item):
        of_it = policies[number] if number < len(policies) else {}
        window_ms = parse_wait_ms(of_it.get("w", ""), now_unix_s) or 0
        reset_ms = parse_wait_ms(item.get("t", ""), now_unix_s)
        yield Reading("requests", _amount(of_it.get("q", "")), _amount(item["r"]), reset_ms, window_ms)


def _amount(value: str) -> int | None:
    whole = value.strip().partition(".")[0]
    return int(whole) if whole.isascii() and whole.isdigit() and len(whole) <= MOST_DIGITS else None


def _share(reading: Reading) -> int:
    if reading.remaining is None or not reading.limit:
        return 1 << 40
    return (reading.remaining << 32) // reading.limit
