"""
What the gate makes of one answer, told to people: the same taps, tables and rules as for a call that runs.

`swarmgate explain` and tests feed recordings through here. What a running attempt learns piece by piece is here in one.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from swarmgate.core.backoff import BASE_MS
from swarmgate.core.outcome import Kind, Outcome, Signal, Verdict, classify
from swarmgate.gate.taps import StreamTap, read_answer
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
}


class Answer(NamedTuple):
    """One answer as it came; header names in lower case."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Understood(NamedTuple):
    """
    What an answer came to, and why; `said` are the error's own words.

    `reading` is the quota that refused, else the tightest of `readings`; None if none is told. `wait_ms`: before the same
    may go to the same place again; None where waiting never helps.
    """

    provider: str
    outcome: Outcome
    reason: str
    said: str
    wait_ms: int | None
    reading: Reading | None
    readings: tuple[Reading, ...]
    tokens: Tokens


def understand(dialect: Dialect, answer: Answer, now_unix_s: int, requested: int | None = None) -> Understood:
    """What the gate would do with this answer; `requested`: tokens of its request, if known. Nothing sent can raise."""
    tap = _tapped(dialect, answer)
    failure = _failure(dialect, answer) if tap is None else tap.failure
    outcome = classify(Signal(status=answer.status))
    if failure is not None:
        outcome = outcome_of(dialect, answer.status, answer.headers, failure, now_unix_s, requested)
    readings = read_rates(dialect, dict(answer.headers), now_unix_s)
    refused = None if failure is None else _refused(outcome, failure, readings)
    reading = refused or tightest(readings)
    wait_ms = _wait_ms(outcome)
    reason = _reason(dialect, outcome, refused, wait_ms)
    tokens = read_tokens(dialect.usage, _usage(answer)) if tap is None else _counted(tap)
    said = "" if failure is None else failure.message
    return Understood(dialect.name, outcome, reason, said, wait_ms, reading, readings, tokens)


def _tapped(dialect: Dialect, answer: Answer) -> StreamTap | None:
    """A stream of events, read to its end; None if the answer is none."""
    if answer.status >= 400 or not dict(answer.headers).get("content-type", "").startswith(_EVENTS):
        return None
    tap = StreamTap(dialect.errors_in_200)
    tap.feed(answer.body)
    tap.close()
    return tap


def _failure(dialect: Dialect, answer: Answer) -> Failure | None:
    if answer.status >= 400:
        return read_error_body(answer.body)
    if dialect is not GENERIC and "html" in dict(answer.headers).get("content-type", ""):
        return Failure(message=f"answered {answer.status} with a page")  # of something between (UP-09)
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


def _usage(answer: Answer) -> Mapping[str, object]:
    try:
        said = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    usage = said.get("usage") if isinstance(said, dict) else None
    return usage if isinstance(usage, dict) else {}


def _reason(dialect: Dialect, outcome: Outcome, refused: Reading | None, wait_ms: int | None) -> str:
    return _SENTENCES[outcome.kind].format(
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
