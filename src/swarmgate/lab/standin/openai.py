"""
OpenAI's dialect: x-ratelimit headers with Go durations, six places for a wait, errors inside streams.

Shapes and sentences follow recorded and reported answers (the limits of OpenAI, Azure, Groq and DeepSeek differ in where
the wait stands; all of them speak this dialect).
"""

from collections.abc import Callable, Mapping, Sequence
from email.utils import formatdate
from types import MappingProxyType

from swarmgate.http1.head import Header
from swarmgate.lab.standin import chat, completions, embeddings, responses
from swarmgate.lab.standin.question import read_question
from swarmgate.lab.standin.scope import Refusal, Rest
from swarmgate.lab.standin.speech import JSON, Reply, Service, encoded, go_duration

_UNITS = {"requests": "requests per min (RPM)", "tokens": "tokens per min (TPM)", "concurrent": "concurrent requests"}


def _seconds(wait_ms: int, _now: int) -> list[Header]:
    return [(b"retry-after", b"%d" % -(-wait_ms // 1_000))]


def _milliseconds(wait_ms: int, _now: int) -> list[Header]:
    return [(b"retry-after-ms", b"%d" % wait_ms), (b"retry-after", b"%d" % -(-wait_ms // 1_000))]


def _date(wait_ms: int, now_unix_s: int) -> list[Header]:
    # A second off the true instant would be too early: dates have no fractions.
    date = formatdate(now_unix_s, usegmt=True).encode()
    return [(b"date", date), (b"retry-after", formatdate(now_unix_s + wait_ms // 1_000 + 1, usegmt=True).encode())]


def _reset(wait_ms: int, _now: int) -> list[Header]:
    return [(b"x-ratelimit-remaining-tokens", b"0"), (b"x-ratelimit-reset-tokens", go_duration(wait_ms))]


def _nothing(_wait_ms: int, _now: int) -> list[Header]:
    return []


FORMS: tuple[Callable[[int, int], list[Header]], ...] = (_seconds, _milliseconds, _date, _reset, _nothing, _nothing)
IN_TEXT = 4  # the form whose wait stands in the sentence only; the last one tells nothing

FAILURES: dict[str, tuple[int, str, str, str]] = {
    "brownout": (503, "server_error", "", "The server is currently overloaded with other requests. Sorry about that!"),
    "dead_key": (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    "no_money": (
        429,
        "insufficient_quota",
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    "capacity": (429, "server_error", "", "Service tier capacity exceeded for this model."),
    "daily": (429, "requests", "rate_limit_exceeded", "Rate limit reached. Please retry after 86400 seconds."),
    "unknown_path": (404, "invalid_request_error", "unknown_url", "Unknown request URL."),
}


class OpenAi:
    """The dialect."""

    services: Mapping[bytes, Service] = MappingProxyType(
        {
            b"/v1/chat/completions": Service(read_question, chat.answer, chat),
            b"/v1/completions": Service(read_question, completions.answer, completions),
            b"/v1/responses": Service(read_question, responses.answer, responses),
            b"/v1/embeddings": Service(embeddings.read, embeddings.answer),
        }
    )

    def key(self, fields: dict[bytes, bytes]) -> str:
        """A bearer token."""
        return fields.get(b"authorization", b"").removeprefix(b"Bearer ").decode("latin-1")

    def rates(self, rests: Sequence[Rest], _now_unix_s: int) -> list[Header]:
        """`x-ratelimit-{limit,remaining,reset}-{requests,tokens}`."""
        headers: list[Header] = []
        for unit, limit, remaining, reset_ms in rests:
            name = unit.encode()
            headers += (
                (b"x-ratelimit-limit-" + name, b"%d" % limit),
                (b"x-ratelimit-remaining-" + name, b"%d" % remaining),
                (b"x-ratelimit-reset-" + name, go_duration(reset_ms)),
            )
        return headers

    def refusal(self, refusal: Refusal, form: int, now_unix_s: int) -> Reply:
        """A 429 of kind rate, concurrency, or a request that never fits."""
        unit, limit, _, used, requested, wait_ms = refusal
        if unit == "concurrent":
            return _error(429, "rate_limit_reached_error", "", f"max organization concurrency: {limit}, please wait")
        if wait_ms is None:
            sentence = f"Request too large for the model on {_UNITS[unit]}: Limit {limit}, Requested {requested}."
            return _error(429, unit, "rate_limit_exceeded", sentence)
        form %= len(FORMS)
        tail = f" Please try again in {wait_ms / 1_000:g}s." if form == IN_TEXT else ""
        sentence = f"Rate limit reached on {_UNITS[unit]}: Limit {limit}, Used {used}, Requested {requested}.{tail}"
        reply = _error(429, unit, "rate_limit_exceeded", sentence)
        return reply._replace(headers=[*reply.headers, *FORMS[form](wait_ms, now_unix_s)])

    def failure(self, kind: str) -> Reply:
        """An error on command."""
        return _error(*FAILURES[kind])

    def invalid(self, sentence: str) -> Reply:
        """400."""
        return _error(400, "invalid_request_error", "", sentence)


def _error(status: int, kind: str, code: str, sentence: str) -> Reply:
    said = {"message": sentence, "type": kind, "param": None, "code": code or None}
    return Reply(status, [JSON], encoded({"error": said}))
