"""
What one attempt came to: the table that turns an ending on the wire into an outcome that everybody else consumes.

Status codes are not enough: a 429 has six kinds, three of which no waiting cures, and errors stand inside 200s (design
4: Kinds of 429). Provider tables extract the strings and numbers of a `Signal`; here they are only compared. The first
rule that applies names the kind; the kind's row says what follows. Retry, key rings, breakers and metrics read the row.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

EJECT_MS: Final = 60_000  # essay A: a key that answers 429 leaves for 60 s, where no hint says better
LONG_WINDOW_MS: Final = 3_600_000  # from here on a window is waited out elsewhere: other work, other keys
REQUEST_TIMEOUT: Final = 408  # RFC 9110 15.5.9: the client may repeat the request


class Ending(StrEnum):
    """How an attempt ended on the wire; all but ANSWERED leave no complete answer behind."""

    ANSWERED = "answered"
    CONNECT_FAILED = "connect_failed"
    CONNECT_TIMEOUT = "connect_timeout"
    TLS_FAILED = "tls_failed"
    UNTRUSTED = "untrusted"  # the certificate was not accepted
    NO_SUCH_NAME = "no_such_name"
    ADDRESS_DENIED = "address_denied"  # the name leads where nothing may be dialled
    LOST_BEFORE_BYTE = "lost_before_byte"  # the connection ended before the answer's first byte
    LOST_AFTER_BYTE = "lost_after_byte"
    CONTENT_TIMEOUT = "content_timeout"  # no first content event in time: the degradation trigger
    IDLE_TIMEOUT = "idle_timeout"
    DEADLINE = "deadline"  # the caller's time ended, whatever the target did


class Kind(StrEnum):
    """What happened, in words of this field."""

    OK = "ok"
    RATE = "rate"
    DAILY = "daily"
    CONCURRENCY = "concurrency"
    TOO_LARGE = "too_large"
    NO_MONEY = "no_money"
    KEY_REFUSED = "key_refused"
    CAPACITY = "capacity"
    SERVER_ERROR = "server_error"
    ERROR_IN_BODY = "error_in_body"
    BAD_OUTPUT = "bad_output"
    CALLER_ERROR = "caller_error"
    CONNECT_FAILED = "connect_failed"
    CONNECT_TIMEOUT = "connect_timeout"
    TLS_FAILED = "tls_failed"
    UNTRUSTED = "untrusted"
    NO_SUCH_NAME = "no_such_name"
    ADDRESS_DENIED = "address_denied"
    LOST_BEFORE_BYTE = "lost_before_byte"
    LOST_AFTER_BYTE = "lost_after_byte"
    CONTENT_TIMEOUT = "content_timeout"
    IDLE_TIMEOUT = "idle_timeout"
    DEADLINE = "deadline"


class Verdict(StrEnum):
    """What may help."""

    OK = "ok"
    RETRY = "retry"
    WAIT = "wait"
    OTHER_KEY = "other_key"
    OTHER_MODEL = "other_model"
    OTHER_TARGET = "other_target"  # this one is useless until a person acts there
    REFUSE = "refuse"  # this request never fits
    KEY_DEAD = "key_dead"  # this key is useless until a person acts
    FAILED = "failed"  # nothing: the upstream's answer is the answer


class Ejects(StrEnum):
    """What leaves rotation."""

    NOTHING = "nothing"
    KEY = "key"
    SCOPE = "scope"


class Signal(NamedTuple):
    """
    One attempt's ending, extracted by the target's dialect.

    `status` 0 = no head arrived. An error inside a 2xx body fills `error_*`. `window_ms` is the length of the refusing
    quota's window, `limit` its size and `requested` this call's cost in its unit, where they were told; 0 or None =
    unknown. `hint_ms` as read by `core/hints.py`. `named` is the kind that the dialect's own table gives to this error;
    it outranks the rules here, which serve dialects never seen.
    """

    status: int = 0
    ending: Ending = Ending.ANSWERED
    error_type: str = ""
    error_code: str = ""
    message: str = ""
    hint_ms: int | None = None
    window_ms: int = 0
    limit: int | None = None
    requested: int | None = None
    named: Kind | None = None


class Row(NamedTuple):
    """What follows from a kind; `eject_ms` where no hint says how long, None = until a person acts."""

    verdict: Verdict
    ejects: Ejects = Ejects.NOTHING
    breaks: bool = False
    eject_ms: int | None = 0


class Outcome(NamedTuple):
    """
    One attempt, classified.

    `breaks`: circuit breakers count it as a failure. `eject_ms`: how long what it ejects stays out, None = until a
    person acts. `hint_ms`: the wait the upstream asked for, None = none.
    """

    kind: Kind
    verdict: Verdict
    ejects: Ejects
    breaks: bool
    eject_ms: int | None
    hint_ms: int | None


class QuotaLeft(NamedTuple):
    """
    What one answer says is left of its key's scope, in the provider's unit, and when it counts no more.

    `reset_at_ms` 0 = not told: 60 s are assumed. `quota`: what a full window holds, 0 = not told.
    """

    remaining: int
    reset_at_ms: int = 0
    quota: int = 0


ROWS: Final = {
    Kind.OK: Row(Verdict.OK),
    Kind.RATE: Row(Verdict.OTHER_KEY, Ejects.SCOPE, eject_ms=EJECT_MS),
    Kind.DAILY: Row(Verdict.OTHER_KEY, Ejects.SCOPE, eject_ms=LONG_WINDOW_MS),
    Kind.CONCURRENCY: Row(Verdict.WAIT),  # the cap moves instead: core/learning.py
    Kind.TOO_LARGE: Row(Verdict.REFUSE),
    Kind.NO_MONEY: Row(Verdict.KEY_DEAD, Ejects.KEY, eject_ms=None),
    Kind.KEY_REFUSED: Row(Verdict.KEY_DEAD, Ejects.KEY, eject_ms=None),
    Kind.CAPACITY: Row(Verdict.OTHER_MODEL, breaks=True),  # other keys reach the same machines
    Kind.SERVER_ERROR: Row(Verdict.RETRY, breaks=True),
    Kind.ERROR_IN_BODY: Row(Verdict.RETRY, breaks=True),
    Kind.BAD_OUTPUT: Row(Verdict.FAILED),  # of a ladder's last model; says what it can, not how the target is
    Kind.CALLER_ERROR: Row(Verdict.FAILED),
    Kind.CONNECT_FAILED: Row(Verdict.RETRY, breaks=True),
    Kind.CONNECT_TIMEOUT: Row(Verdict.RETRY, breaks=True),
    Kind.TLS_FAILED: Row(Verdict.RETRY, breaks=True),
    Kind.UNTRUSTED: Row(Verdict.OTHER_TARGET, breaks=True),  # the next handshake shows the same certificate
    Kind.NO_SUCH_NAME: Row(Verdict.FAILED),  # says nothing about a target, and the next look-up says the same
    Kind.ADDRESS_DENIED: Row(Verdict.REFUSE),
    Kind.LOST_BEFORE_BYTE: Row(Verdict.RETRY, breaks=True),
    Kind.LOST_AFTER_BYTE: Row(Verdict.RETRY, breaks=True),
    Kind.CONTENT_TIMEOUT: Row(Verdict.OTHER_MODEL, breaks=True),
    Kind.IDLE_TIMEOUT: Row(Verdict.RETRY, breaks=True),
    Kind.DEADLINE: Row(Verdict.FAILED),  # says how patient the caller was, not how the target is
}

# A key leaves for good only by status or code. Messages echo what an agent sent, and no agent may kill a key with words;
# the one exception is a whole opening. (Nor would "exceeded your current quota" do: OpenAI says it when the money is
# gone, Gemini when a minute's tokens are.)
_KEY_CODES: Final = ("invalid_api_key", "api_key_invalid", "authentication_error")
# A key that is restricted to some paths is good for the others (OpenAI, 401; the code is not always told).
_SCOPE_CODES: Final = ("missing_scope",)
_SCOPE_OPENING: Final = "you have insufficient permissions for this operation"
_MONEY_CODES: Final = ("insufficient_quota", "exceeded_current_quota_error", "billing_hard_limit", "billing_not_active")
_MONEY_OPENING: Final = "your credit balance is too low"  # Anthropic, 400 invalid_request_error
_SIZE_WORDS: Final = ("request too large",)
_WINDOW_WORDS: Final = (  # the model's window: longer prompts fail whoever asks, so no wait and no key helps
    "context_length_exceeded",
    "prompt is too long",
    "prompt too long",
    "maximum context length",
    "too_many_tokens",
    "too_many_prompt_tokens",
    "maximum number of tokens allowed",
)
_CAPACITY_WORDS: Final = (
    "overloaded",
    "capacity exceeded",
    "capacity_exhausted",
    "no capacity",
    "high demand",
    "rate-limited upstream",  # a reseller's own provider refused: the reseller's other keys meet the same wall
)
_RATE_CODES: Final = ("rate_limit", "throttling", "too_many_requests", "resource_exhausted")
_CAPACITY_STATUSES: Final = (498, 529)  # Groq's flex tier; Anthropic's and others' "overloaded"
_MAYBE_CAPACITY_STATUSES: Final = (200, 429, 503)
_BAD_REQUESTS: Final = (400, 422)
_NEVER_IMPLEMENTED: Final = (501, 505)


def classify(signal: Signal) -> Outcome:
    """The outcome of an attempt: total over any signal, unknown errors below 500 are the caller's."""
    kind = _kind(signal)
    row = ROWS[kind]
    hint_ms = signal.hint_ms if signal.hint_ms and signal.hint_ms > 0 else None
    eject_ms = hint_ms if hint_ms and row.ejects is Ejects.SCOPE else row.eject_ms
    # A 429 proves that the target is alive: never the business of a breaker.
    return Outcome(kind, row.verdict, row.ejects, row.breaks and signal.status != 429, eject_ms, hint_ms)


def _kind(signal: Signal) -> Kind:
    if signal.ending is not Ending.ANSWERED:
        return Kind(signal.ending.value)
    if 100 <= signal.status < 400 and not (signal.error_type or signal.error_code or signal.message):
        return Kind.OK
    if signal.named is not None:
        return signal.named
    codes = f"{signal.error_type} {signal.error_code}".lower()
    text = f"{codes} {signal.message}".lower()
    for kind, applies in _RULES:
        if applies(signal, codes, text):
            return kind
    return Kind.CALLER_ERROR


def _is_rate(signal: Signal, codes: str, text: str) -> bool:
    return (
        signal.status == 429
        or (signal.status == 403 and "rate limit" in text)  # GitHub
        or _says(codes, _RATE_CODES)
    )


def _is_long(signal: Signal) -> bool:
    return signal.window_ms >= LONG_WINDOW_MS or (signal.hint_ms or 0) >= LONG_WINDOW_MS


def _never_fits(signal: Signal) -> bool:
    return signal.limit is not None and signal.requested is not None and signal.requested > signal.limit


def _says(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text for word in words)


_RULES: tuple[tuple[Kind, Callable[[Signal, str, str], bool]], ...] = (
    (Kind.CALLER_ERROR, lambda s, codes, _: s.status == 401 and _says(codes, _SCOPE_CODES)),
    (Kind.CALLER_ERROR, lambda s, *_: s.status == 401 and s.message.lower().startswith(_SCOPE_OPENING)),
    (Kind.KEY_REFUSED, lambda s, codes, _: s.status == 401 or _says(codes, _KEY_CODES)),
    (Kind.NO_MONEY, lambda s, codes, _: s.status == 402 or _says(codes, _MONEY_CODES)),
    (Kind.NO_MONEY, lambda s, *_: s.message.lower().startswith(_MONEY_OPENING)),
    (Kind.TOO_LARGE, lambda s, _, text: s.status == 413 or _says(text, _SIZE_WORDS)),
    (Kind.TOO_LARGE, lambda s, _, text: s.status in _BAD_REQUESTS and _says(text, _WINDOW_WORDS)),
    (Kind.TOO_LARGE, lambda s, codes, text: _is_rate(s, codes, text) and _never_fits(s)),
    (Kind.CAPACITY, lambda s, *_: s.status in _CAPACITY_STATUSES),
    (Kind.CAPACITY, lambda s, _, text: s.status in _MAYBE_CAPACITY_STATUSES and _says(text, _CAPACITY_WORDS)),
    (Kind.CONCURRENCY, lambda s, codes, text: _is_rate(s, codes, text) and "concurren" in text),
    (Kind.DAILY, lambda s, codes, text: _is_rate(s, codes, text) and _is_long(s)),
    (Kind.RATE, _is_rate),
    (
        Kind.SERVER_ERROR,
        lambda s, *_: s.status == REQUEST_TIMEOUT or (s.status >= 500 and s.status not in _NEVER_IMPLEMENTED),
    ),
    (Kind.ERROR_IN_BODY, lambda s, *_: s.status < 400),
)
