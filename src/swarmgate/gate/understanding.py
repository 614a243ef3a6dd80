"""
What the gate makes of one answer, told to people: the same taps, tables and rules as for a call that runs.

`swarmgate explain` and tests feed recordings through here. What a running attempt learns piece by piece is here in one.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from swarmgate.core.backoff import BASE_MS
from swarmgate.core.outcome import Ending, Kind, Outcome, Signal, Verdict, classify
from swarmgate.gate.taps import NO_USAGE, StreamTap, looks_like_events, not_answered, read_answer
from swarmgate.providers.dialect import DAY_MS, MINUTE_MS, MONTH_MS, Dialect
from swarmgate.providers.errors import Failure, outcome_of, read_error_body, read_refusal
from swarmgate.providers.rates import Reading, read_rates, tightest
from swarmgate.providers.tables import GENERIC
from swarmgate.providers.usage import Tokens, read_tokens

_NO_WAIT: Final = frozenset({Verdict.REFUSE, Verdict.KEY_DEAD, Verdict.FAILED})
_BACKS_OFF: Final = frozenset({Verdict.RETRY, Verdict.WAIT})
_QUOTA_KINDS: Final = frozenset({Kind.RATE, Kind.DAILY, Kind.CONCURRENCY})
_EVENTS: Final = "text/event-stream"
_WINDOWS: Final = ((MINUTE_MS, " per minute"), (DAY_MS, " per day"), (MONTH_MS, " per month"))
_SENTENCES: Final = {
    Kind.OK: "An answer without an error.",
    Kind.RATE: "{quota}: {spent}. A key of another {scope} may have some left; this one, in {wait}.",
    Kind.DAILY: "{quota}: {spent}, of a long window. A key of another {scope} may have some left; this one, in {wait}.",
    Kind.CONCURRENCY: "{quota}: as many calls are open as the {scope} may have; one must end first. Ask in {wait}.",
    Kind.TOO_LARGE: "{quota}: less than this one request. It never fits, whoever sends it and whenever.",
    Kind.NO_MONEY: "The {scope} has no credit left, or has reached its cap. A person must act.",
    Kind.KEY_REFUSED: "The key is not accepted. A person must replace it.",
    Kind.CAPACITY: "The provider has no capacity now: other keys meet the same machines, another model may not.",
    Kind.SERVER_ERROR: "The server failed. A read may be repeated in {wait}, with jitter.",
    Kind.ERROR_IN_BODY: "A success that holds an error. A read may be repeated in {wait}, with jitter.",
    Kind.CALLER_ERROR: "The request is wrong for this target. Sent again, it fails again.",
    Kind.LOST_AFTER_BYTE: "A stream without its end: it was cut, or not all of it is here. A read may be repeated in {wait}, with jitter.",
}
_NO_ANSWER: Final = "No model answers so: a redirect, a page of something between, or nothing. A read may be repeated in {wait}, with jitter."
_UNKNOWN: Final = "Its status is not told, and its code and type say nothing that is known: its words stand below."
UNTOLD: Final = 0  # a status that nobody knows
# What status an error most likely had, by words of its code or type; the first that stands there. Providers' documents.
_LIKELY: Final = (
    (429, ("insufficient_quota", "exceeded_current_quota", "billing_hard_limit", "billing_not_active")),
    (402, ("billing_error", "insufficient_balance")),
    (413, ("request_too_large",)),
    (400, ("context_length_exceeded",)),
    (429, ("rate_limit", "too_many_requests", "resource_exhausted", "throttling")),
    (529, ("overloaded",)),
    (498, ("capacity_exceeded",)),
    (503, ("unavailable",)),
    (504, ("timeout", "deadline_exceeded")),
    (401, ("invalid_api_key", "api_key_invalid", "authentication", "unauthenticated", "invalid_authentication")),
    (403, ("permission",)),
    (404, ("not_found",)),
    (500, ("server_error", "api_error", "internal")),
    (400, ("invalid_request", "invalid_argument", "bad_request", "failed_precondition")),
)
_NATIVE: Final = b'"candidates"'  # Gemini's own streams have no last event; model routes do not carry them
_STATUS_CODE: Final = re.compile(r"\b[45][0-9]{2}\b")
_ANSWERS: Final = frozenset({"choices", "usage", "output", "content", "data", "candidates", "input_tokens"})
_ERRORS: Final = frozenset({"error", "detail", "message"})


class Answer(NamedTuple):
    """One answer as it came; header names in lower case, `status` UNTOLD where only its body is here."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Understood(NamedTuple):
    """
    What an answer came to, and why; `said` are the error's own words.

    `reading` is the quota that refused, else the tightest of `readings`; None if none is told. `wait_ms`: before the same
    may go to the same place again; None where waiting never helps. `status` and `outcome` are None where nobody can know.
    """

    provider: str
    status: int | None
    outcome: Outcome | None
    reason: str
    said: str
    wait_ms: int | None
    reading: Reading | None
    readings: tuple[Reading, ...]
    tokens: Tokens


def understand(
    dialect: Dialect, answer: Answer, now_unix_s: int, requested: int | None = None, *, is_model: bool | None = None
) -> Understood:
    """
    What the gate would do with this answer; nothing sent can raise.

    `requested`: tokens of its request, if known. `is_model`: it comes from a target of models, so that a page, a redirect or
    nothing is none; None = if its provider is known.
    """
    tap = _tapped(dialect, answer)
    status = answer.status or (200 if tap is not None else _likely(answer))
    failure = _failure(dialect, answer, status) if tap is None else tap.failure
    page = None
    is_model = dialect is not GENERIC if is_model is None else is_model
    if failure is None and tap is None and answer.status and is_model:
        page = not_answered(status, dict(answer.headers).get("content-encoding", "identity").encode(), answer.body)
        failure = page
    outcome = None if failure is not None and not status else classify(Signal(status=status or 200))
    if failure is not None and status:
        outcome = outcome_of(dialect, status, answer.headers, failure, now_unix_s, requested)
    elif failure is None and tap is not None and is_model and not tap.finished and _NATIVE not in answer.body:
        outcome = classify(Signal(status=status, ending=Ending.LOST_AFTER_BYTE))
    readings = read_rates(dialect, dict(answer.headers), now_unix_s)
    refused = None if failure is None or outcome is None else _refused(outcome, failure, readings)
    reading = refused or tightest(readings)
    wait_ms = None if outcome is None else _wait_ms(outcome)
    reason = _UNKNOWN if outcome is None else _reason(dialect, outcome, refused, wait_ms, is_page=page is not None)
    tokens = read_tokens(dialect.usage, _usage(answer)) if tap is None else _counted(tap)
    said = "" if failure is None else failure.message
    return Understood(dialect.name, answer.status or None, outcome, reason, said, wait_ms, reading, readings, tokens)


def says_something(body: bytes) -> bool:
    """Whether a body alone, JSON or events, is an answer of a model or an error."""
    said = _decoded(body)
    if said is None:
        tap = StreamTap()
        tap.feed(body)
        tap.close()
        return tap.failure is not None or (b"{" in body and (tap.begun or tap.usage != NO_USAGE))
    each = said if isinstance(said, list) else [said]
    keys = {key for one in each if isinstance(one, dict) for key, value in one.items() if value}
    return not keys.isdisjoint(_ERRORS) or not keys.isdisjoint(_ANSWERS)


def _likely(answer: Answer) -> int:
    """The status of a body alone: of an answer 200, of an error what its code or type says; UNTOLD if they do not."""
    said = _decoded(answer.body)
    is_answer = isinstance(said, dict) and _ERRORS.isdisjoint(said) and said.get("type") != "error"
    if is_answer:
        return 200
    failure = read_error_body(answer.body)
    codes = f"{failure.type} {failure.code}".lower()
    number = _STATUS_CODE.search(codes)
    if number is not None:
        return int(number.group())
    words = codes.replace("-", "_")
    found = next((status for status, marks in _LIKELY if any(mark in words for mark in marks)), UNTOLD)
    return found or (429 if "rate limit" in failure.message.lower() else UNTOLD)


def _tapped(dialect: Dialect, answer: Answer) -> StreamTap | None:
    """A stream of events, read to its end; None if the answer is none."""
    headers = dict(answer.headers)
    is_plain = headers.get("content-encoding", "identity") == "identity"
    looks_so = answer.status < 300 and is_plain and looks_like_events(answer.body) is not None
    if answer.status >= 400 or not (looks_so or headers.get("content-type", "").startswith(_EVENTS)):
        return None
    tap = StreamTap(dialect.errors_in_200)
    tap.feed(answer.body)
    tap.close()
    return tap


def _failure(dialect: Dialect, answer: Answer, status: int) -> Failure | None:
    if status >= 400 or not status:
        return read_error_body(answer.body)
    return read_answer(answer.body, dialect.errors_in_200)[1]


def _counted(tap: StreamTap) -> Tokens:
    (prompt, output), (cached, apart) = tap.usage, tap.cached
    told = (prompt + apart if prompt >= 0 else prompt, output, cached)
    return Tokens(*(count if count >= 0 else None for count in told))


def _refused(outcome: Outcome, failure: Failure, readings: tuple[Reading, ...]) -> Reading | None:
    """The quota that the error's words name, completed by the header of the same dimension; else one that is used up."""
    said = read_refusal(failure)
    if not (outcome.kind in _QUOTA_KINDS or (outcome.kind is Kind.TOO_LARGE and said.limit)):
        return None
    if not said.dimension:
        return next((one for one in readings if one.remaining == 0), None)
    header = next((one for one in readings if one.dimension == said.dimension), Reading(said.dimension))
    if said.limit is None:
        return header
    remaining = header.remaining if header.limit == said.limit else None
    if said.used is not None:
        remaining = max(0, said.limit - said.used)
    return header._replace(limit=said.limit, remaining=remaining, window_ms=said.window_ms or header.window_ms)


def _wait_ms(outcome: Outcome) -> int | None:
    if outcome.verdict in _NO_WAIT:
        return None
    return outcome.hint_ms or outcome.eject_ms or (BASE_MS if outcome.verdict in _BACKS_OFF else 0)


def _decoded(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _usage(answer: Answer) -> Mapping[str, object]:
    said = _decoded(answer.body)
    usage = said.get("usage") if isinstance(said, dict) else None
    return usage if isinstance(usage, dict) else {}


def _reason(
    dialect: Dialect, outcome: Outcome, refused: Reading | None, wait_ms: int | None, *, is_page: bool = False
) -> str:
    return (_NO_ANSWER if is_page else _SENTENCES[outcome.kind]).format(
        quota=_quota(refused),
        spent="too little for this request" if refused is not None and (refused.remaining or 0) > 0 else "used up",
        scope=dialect.counts_by.value,
        wait=f"{(wait_ms or 0) / 1_000:g} s",
    )


def _quota(refused: Reading | None) -> str:
    """`input tokens per minute (limit 200000, 0 left)`."""
    if refused is None:
        return "What this target takes"
    window = next((word for ms, word in _WINDOWS if ms == refused.window_ms), "")
    limit = "" if refused.limit is None else f"limit {refused.limit}"
    left = "" if refused.remaining is None else f"{refused.remaining} left"
    amounts = ", ".join(filter(None, (limit, left)))
    return f"{refused.dimension.replace('_', ' ').capitalize()}{window}{amounts and f' ({amounts})'}"
