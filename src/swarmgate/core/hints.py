"""
How long an upstream asks us to wait, in whatever form it says so.

Here lives the reading of waits from headers and error texts; what is done with a wait is elsewhere (backoff, retry,
keys). A hint is in ms, rounded up, at most `LONGEST_HINT_MS`, and nothing that an upstream sends can raise: what
cannot be read is None, as if it had not been said.
"""

import re
from collections.abc import Iterable
from typing import Final

from swarmgate.core.duration import (
    DAY_MS,
    DURATION,
    MS_NS,
    NUMBER,
    SECOND_NS,
    ceil_ms,
    duration_ms,
    parse_duration_ms,
    scale_ns,
)
from swarmgate.core.instants import instant_ms

__all__ = [
    "LONGEST_HINT_MS",
    "draft_items",
    "parse_duration_ms",
    "parse_wait_ms",
    "read_hint_ms",
    "server_now_s",
    "wait_in_text_ms",
]

# the longest quota window known is a calendar month; more is a mistake or an attack
LONGEST_HINT_MS: Final = 31 * DAY_MS
LONGEST_VALUE: Final = 128
SEARCHED_CHARS: Final = 8_192
FIRST_EPOCH: Final = 10**9  # no wait has ten digits: from here on a number is a date, in seconds (2001 and later) ...
FIRST_EPOCH_MS: Final = 10**11  # ... or in milliseconds (1973 and later) ...
AFTER_EPOCHS: Final = 10**14  # ... and from here on (year 5138) nothing

_BARE: Final = re.compile(NUMBER)
_ASKED: Final = re.compile(
    r"(?:retry[_ -]?(?:after|delay|in)|again (?:in|after))[\"' :=]{0,6}"
    rf"({DURATION}|{NUMBER}(?![0-9.]*[0-9]|-| ?[a-z]))",
    re.IGNORECASE | re.ASCII,
)
_QUOTED: Final = re.compile(r'"[^"]*"')
_RESETS: Final = ("ratelimit", "x-ratelimit", "x-rate-limit")


def parse_wait_ms(value: str, now_unix_s: int, bare_ns: int = SECOND_NS) -> int | None:
    """
    One header's value as a wait in ms: a number, a duration, a date, an epoch; `now_unix_s` is subtracted from dates.

    A bare number counts `bare_ns` nanoseconds. 0 = now or just past; None = garbage, negative, a sentinel (-1), or a
    date more than a day ago.
    """
    value = value.strip()
    if len(value) > LONGEST_VALUE:
        return None
    if _BARE.fullmatch(value):
        return _bare_ms(value, now_unix_s, bare_ns)
    wait_ms = duration_ms(value)
    if wait_ms is not None:
        return min(wait_ms, LONGEST_HINT_MS)
    at_ms = instant_ms(value, now_unix_s)
    return None if at_ms is None else _until_ms(at_ms, now_unix_s)


def wait_in_text_ms(text: str, now_unix_s: int) -> int | None:
    """The longest wait that an error's text or JSON asks for ("try again in 6m0s", `"retryDelay": "48s"`), in ms."""
    return _longest_ms(_ASKED.findall(text[:SEARCHED_CHARS]), now_unix_s)


def read_hint_ms(status: int, headers: Iterable[tuple[str, str]], error_text: str, now_unix_s: int) -> int | None:
    """
    The wait that one answer asks for, in ms, always positive; None if it asks for none.

    Asked in this order, the first positive answer counts: `retry-after-ms` (Azure's `x-ms-retry-after-ms`),
    `retry-after`, the error's text, then the resets of exhausted quotas (a reset says when all is back, the others when
    this call fits). A header sent twice counts with its longest value. On 2xx the headers are ignored: 81 of 1,115
    recorded successes carried `retry-after`.
    `error_text` is the text of an error, never content. Dates are measured against the answer's own `date` where it
    has one, so that our clock's error does not matter.
    """
    named: dict[str, list[str]] = {}
    if not 200 <= status < 300:
        for name, value in headers:
            named.setdefault(name.lower(), []).append(value)
    now_unix_s = server_now_s(named.get("date", ()), now_unix_s)
    return (
        _longest_ms([*named.get("retry-after-ms", ()), *named.get("x-ms-retry-after-ms", ())], now_unix_s, MS_NS)
        or _longest_ms(named.get("retry-after", ()), now_unix_s)
        or wait_in_text_ms(error_text, now_unix_s)
        or _longest_ms(_exhausted_resets(named), now_unix_s)
        or None
    )


def server_now_s(dates: Iterable[str], now_unix_s: int) -> int:
    """The second in which an answer was made, by its own `date`; ours if it has none."""
    for date in dates:
        at_ms = instant_ms(date[:LONGEST_VALUE].strip(), now_unix_s)
        if at_ms is not None:
            return at_ms // 1_000
    return now_unix_s


def draft_items(field: str) -> list[dict[str, str]]:
    """
    The items of the IETF draft's `RateLimit` and `RateLimit-Policy`, each with its parameters; nothing can raise.

    `"api";r=0;t=70, "day";r=9;t=5` (draft 08 and later) or `limit=5, remaining=0, reset=70` (draft 03 to 07).
    """
    spoken = _QUOTED.sub("name", field[:SEARCHED_CHARS]).replace(" ", "")
    return [_parameters(item) for item in spoken.split(",")]


def _bare_ms(number: str, now_unix_s: int, bare_ns: int) -> int | None:
    whole = int(number.partition(".")[0])
    if whole < FIRST_EPOCH:
        return _clamped(ceil_ms(scale_ns(number, bare_ns)))
    if whole >= AFTER_EPOCHS:
        return None
    return _until_ms(ceil_ms(scale_ns(number, SECOND_NS if whole < FIRST_EPOCH_MS else MS_NS)), now_unix_s)


def _until_ms(at_ms: int, now_unix_s: int) -> int | None:
    wait_ms = at_ms - now_unix_s * 1_000
    return None if wait_ms < -DAY_MS else _clamped(wait_ms)


def _clamped(wait_ms: int) -> int:
    return max(0, min(wait_ms, LONGEST_HINT_MS))


def _longest_ms(values: Iterable[str], now_unix_s: int, bare_ns: int = SECOND_NS) -> int | None:
    waits = (parse_wait_ms(value, now_unix_s, bare_ns) for value in values)
    return max((wait_ms for wait_ms in waits if wait_ms is not None), default=None)


def _exhausted_resets(named: dict[str, list[str]]) -> list[str]:
    """Resets of what is used up: plain header pairs, and both forms of the IETF draft's `RateLimit` field."""
    resets = [value for field in named.get("ratelimit", ()) for value in _draft_resets(field)]
    for prefix in _RESETS:
        if all(value.strip() == "0" for value in named.get(f"{prefix}-remaining", ())):
            resets += named.get(f"{prefix}-reset", ())
    return resets


def _draft_resets(field: str) -> list[str]:
    items = draft_items(field)
    resets = [item["t"] for item in items if item.get("r") == "0" and "t" in item]
    old = {key: value for item in items for key, value in item.items()}
    if old.get("remaining") == "0" and "reset" in old:
        resets.append(old["reset"])
    return resets


def _parameters(item: str) -> dict[str, str]:
    return {key: value for key, _, value in (pair.partition("=") for pair in item.split(";"))}
