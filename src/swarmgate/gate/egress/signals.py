"""
What a host's answer says of its limits: refusals in any form, and the limits that its headers state.

A page is content and not an error report, so only JSON and plain text are read for words; a status that means "too
fast" at one host stands in its policy. Nobody's credential is judged here: 401 and 402 are the caller's business.
"""

import re
from typing import Final, NamedTuple

from swarmgate.core.duration import duration_ms
from swarmgate.core.hints import read_hint_ms
from swarmgate.core.outcome import Kind, Outcome, Signal, classify
from swarmgate.http1.head import ResponseHead
from swarmgate.providers.errors import Failure, read_error_body
from swarmgate.providers.generic import DIALECT
from swarmgate.providers.rates import read_rates

READ_BYTES: Final = 4 * 1024
LONGEST_WINDOW_MS: Final = 31 * 86_400_000

_TEXTS: Final = (b"application/json", b"application/problem+json", b"text/plain")
_CALLERS_OWN: Final = frozenset({Kind.KEY_REFUSED, Kind.NO_MONEY, Kind.TOO_LARGE})
_CALLER_ERROR: Final = classify(Signal(404))
_INTERVALS: Final = ("x-rate-limit-interval", "x-ratelimit-period", "x-ratelimit-window")
_LIMITS: Final = ("ratelimit-limit", "x-ratelimit-limit", "x-rate-limit-limit")
_CONCURRENT: Final = "x-concurrency-limit"
_LIMIT_AND_WINDOW: Final = re.compile(r"([0-9]{1,12})(?: ?req(?:uests)?/([0-9]{1,8})s|.*?;[ \t]*w=([0-9]{1,8}))?")


class Stated(NamedTuple):
    """What an answer's headers say; None = not said. `window_ms` 0 = a limit without its window."""

    limit: int | None = None
    window_ms: int = 0
    remaining: int | None = None
    reset_ms: int | None = None
    concurrent: int | None = None


NOTHING: Final = Stated()
OK: Final = classify(Signal(200))


def outcome_of(head: ResponseHead, body: bytes, refusals: frozenset[int], now_unix_s: int) -> Outcome:
    """What an answer means for whoever sends next."""
    if head.status < 400:
        return OK
    media = head.fields.get(b"content-type", b"").lower()
    plain = b"content-encoding" not in head.fields and media.startswith(_TEXTS)
    failure = read_error_body(body[:READ_BYTES]) if plain else Failure()
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers]
    hint_ms = read_hint_ms(head.status, headers, failure.message, now_unix_s)
    status = 429 if head.status in refusals else head.status
    outcome = classify(Signal(status, error_code=failure.code, message=failure.message, hint_ms=hint_ms))
    return _CALLER_ERROR if outcome.kind in _CALLERS_OWN and status != 429 else outcome


def stated(head: ResponseHead, now_unix_s: int) -> Stated:
    """
    The limits in an answer's headers: the IETF's fields, old and new, and what Crossref, Ensembl and PeerJ send.

    What a cache answers says nothing of now; what cannot be read is as if it were not there. Never raises.
    """
    if b"limit" not in head.raw.lower() or head.fields.get(b"age", b"0").strip() != b"0":
        return NOTHING  # nearly every page: a look at its bytes costs less than its fields as text
    fields = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.fields.items()}
    concurrent = fields.get(_CONCURRENT, "")
    at_once = int(concurrent) if concurrent.isascii() and concurrent.isdigit() and len(concurrent) < 8 else None
    found = next((one for one in read_rates(DIALECT, fields, now_unix_s) if one.dimension == "requests"), None)
    limit, window_ms = _limit_and_window(fields)
    if found is not None:
        limit, window_ms = (limit or found.limit), (found.window_ms or window_ms)
    window_ms = min(window_ms, LONGEST_WINDOW_MS)
    if found is None:
        return Stated(limit or None, window_ms, concurrent=at_once or None)
    return Stated(limit or None, window_ms, found.remaining, found.reset_ms, at_once or None)


def _limit_and_window(fields: dict[str, str]) -> tuple[int | None, int]:
    said = next((fields[name] for name in _LIMITS if name in fields), "")
    match = _LIMIT_AND_WINDOW.fullmatch(said.strip().partition(", ")[0] if ";" not in said else said.strip())
    limit = int(match[1]) if match else None
    seconds = (match[2] or match[3]) if match else None
    window_ms = int(seconds) * 1_000 if seconds else 0
    for name in _INTERVALS:
        text = fields.get(name, "").strip()
        window_ms = window_ms or duration_ms(text) or (int(text) * 1_000 if _is_seconds(text) else 0)
    return limit, window_ms


def _is_seconds(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 9
