"""
What an error says of itself, in whatever shape it comes, and the `Signal` that the core classifies.

Shapes are told apart by their keys, so that a dialect never seen is read too: OpenAI's `error` object, Anthropic's with
`type: error` around it, Google's with `status` and `details` (in a list where it is asked as OpenAI), bare objects
(Mistral, Cohere, DashScope), `detail` (FastAPI), text. Which quota refused, and by how much, stands in the text only.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from swarmgate.core.hints import read_hint_ms
from swarmgate.core.outcome import Kind, Outcome, Signal, classify
from swarmgate.providers.dialect import DAY_MS, MINUTE_MS, MONTH_MS, Dialect
from swarmgate.providers.rates import block_ms, read_rates

LONGEST_TEXT = 1_000
LONGEST_DETAIL = 4_000
HOUR_MS = 3_600_000

_AMOUNT = r"([0-9]{1,15}(?:,[0-9]{3})*)"
_LIMIT = re.compile(
    rf"\blimit:? {_AMOUNT}|\bof {_AMOUNT} (?:input |output )?(?:tokens|requests)\b|concurrency: {_AMOUNT}"
    rf'|"quotaValue": ?"{_AMOUNT}"',
    re.IGNORECASE,
)
_USED = re.compile(rf"\bused {_AMOUNT}", re.IGNORECASE)
_REQUESTED = re.compile(rf"\brequested {_AMOUNT}", re.IGNORECASE)
_WINDOWS = (
    (MONTH_MS, ("per month", "permonth", "monthly")),
    (DAY_MS, ("per day", "perday", "(rpd)", "(tpd)", "daily")),
    (HOUR_MS, ("per hour", "perhour", "hourly")),
    (MINUTE_MS, ("per min", "per-min", "perminute", "(rpm)", "(tpm)")),
)
_DIMENSIONS = (  # the first whose word stands in the text; a type that is one of them says it alone
    ("concurrency", ("concurren",)),
    ("input_tokens", ("input token", "input_token", "inputtoken")),
    ("output_tokens", ("output token", "output_token", "outputtoken")),
    ("tokens", ("token",)),
    ("requests", ("request",)),
)
_LOAD = frozenset({"408", "429", "498", "500", "502", "503", "504", "524", "529"})
Headers = Sequence[tuple[str, str]]


class Failure(NamedTuple):
    """An error in a body: its type, code and message, empty where it has none; `detail` is the JSON of what it adds."""

    type: str = ""
    code: str = ""
    message: str = ""
    detail: str = ""


class Refusal(NamedTuple):
    """What an error's text says of the quota that refused; None or 0 = not told."""

    dimension: str = ""
    limit: int | None = None
    used: int | None = None
    requested: int | None = None
    window_ms: int = 0


def failure_in(error: object) -> Failure | None:
    """The error that a decoded value reports, an object or a text; None if it is empty."""
    if not error:
        return None
    if not isinstance(error, Mapping):
        return Failure(message=error[:LONGEST_TEXT] if isinstance(error, str) else "error")
    details = error.get("details")
    each = details if isinstance(details, list) else []
    reasons = [detail.get("reason") for detail in each if isinstance(detail, Mapping)]
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    return Failure(
        _text(error.get("type") or error.get("status") or error.get("error_type")),
        " ".join(_text(code) for code in (error.get("code"), *reasons) if code),
        " ".join(_text(said) for said in (error.get("message") or error.get("detail"), raw) if said)[:LONGEST_TEXT],
        _json([details, metadata]) if details or metadata else "",
    )


def failure_at(body: object, place: str) -> Failure | None:
    """The error at a dotted path of a decoded body; in a list, the first of its items that has one."""
    if isinstance(body, list):
        each = (failure_at(item, place) for item in body if isinstance(item, Mapping))
        return next(filter(None, each), None)
    key, _, rest = place.partition(".")
    inner = body.get(key) if isinstance(body, Mapping) else None
    return failure_at(inner, rest) if rest else failure_in(inner)


def read_error_body(body: bytes) -> Failure:
    """The error in the body of a 4xx or 5xx; its text if it is no JSON that is known."""
    said = _decoded(body)
    failure = failure_at(said, "error") or (failure_in(said) if isinstance(said, Mapping) else None)
    if failure is None or failure == Failure():
        return Failure(message=body[:LONGEST_TEXT].decode("utf-8", "replace"))
    return failure


def read_refusal(failure: Failure) -> Refusal:
    """Which quota refused, as far as words say; nothing can raise."""
    text = f"{failure.message} {failure.detail}"
    lower = f"{failure.type} {text}".lower()
    dimension = failure.type if failure.type in {"tokens", "requests"} else ""
    if not dimension:
        dimension = next((name for name, words in _DIMENSIONS if any(word in lower for word in words)), "")
    window_ms = next((ms for ms, words in _WINDOWS if any(word in lower for word in words)), 0)
    return Refusal(dimension, _number(_LIMIT, text), _number(_USED, text), _number(_REQUESTED, text), window_ms)


def outcome_of(
    dialect: Dialect, status: int, headers: Headers, failure: Failure, now_unix_s: int, requested: int | None = None
) -> Outcome:
    """
    What an answer with an error came to: the one rule for calls that run and for recordings that are explained.

    `headers` with lower-case names; `requested`: the call's tokens, if somebody counted them.
    """
    return classify(signal_of(dialect, status, headers, failure, now_unix_s, requested))


def signal_of(
    dialect: Dialect, status: int, headers: Headers, failure: Failure, now_unix_s: int, requested: int | None = None
) -> Signal:
    """
    An error as the core wants it.

    An error inside a 200 that gives a status of its own counts with it, if that tells of load or of the server: another's
    401 says nothing about our key.
    """
    fields = dict(headers)
    error_type = failure.type or fields.get(dialect.error_header, "").partition(":")[0]
    refusal = read_refusal(failure)
    said = int(failure.code) if status < 400 and failure.code in _LOAD else status
    never = 1 if refusal.limit == 0 else None  # "limit: 0": not one fits, however small
    return Signal(
        status=said,
        error_type=error_type,
        error_code=failure.code,
        message=failure.message,
        hint_ms=_hint_ms(dialect, status, headers, failure, now_unix_s),
        window_ms=refusal.window_ms,
        limit=refusal.limit,
        requested=refusal.requested or requested or never,
        named=_named(dialect, said, error_type, failure),
    )


def _named(dialect: Dialect, status: int, error_type: str, failure: Failure) -> Kind | None:
    codes = {error_type.lower(), *failure.code.lower().split()}
    text = failure.message.lower()
    for mark in dialect.kinds:
        if mark.statuses and status not in mark.statuses:
            continue
        is_bare = not mark.codes and not mark.words
        if is_bare or not codes.isdisjoint(mark.codes) or any(word in text for word in mark.words):
            return mark.kind
    return None


def _hint_ms(dialect: Dialect, status: int, headers: Headers, failure: Failure, now_unix_s: int) -> int | None:
    """The wait that is asked for; else until a used-up quota of the dialect's own headers is back, at most its window."""
    asked_ms = read_hint_ms(status, headers, f"{failure.message} {failure.detail}", now_unix_s)
    if asked_ms is not None or status < 400:
        return asked_ms
    used_up = [one for one in read_rates(dialect, dict(headers), now_unix_s) if not one.remaining and one.reset_ms]
    return max((block_ms(one) for one in used_up), default=None)


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    return int(next(filter(None, found.groups())).replace(",", "")) if found else None


def _text(value: object) -> str:
    return str(value)[:LONGEST_TEXT] if isinstance(value, str | int | float) else ""


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value)[:LONGEST_DETAIL].decode("utf-8", "replace")
    except (RecursionError, UnicodeEncodeError):  # nested too deep, or half a surrogate pair
        return ""


def _decoded(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
