"""
Anthropic's dialect: anthropic-ratelimit headers with RFC 3339 resets, 529, `event: error` inside streams.

Limits are told in requests and in tokens; the wait of a 429 stands in retry-after, or only in the reset.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType

from swarmgate.http1.head import Header
from swarmgate.lab.standin import messages
from swarmgate.lab.standin.question import read_question
from swarmgate.lab.standin.scope import Refusal, Rest
from swarmgate.lab.standin.speech import JSON, Reply, Service, encoded

FAILURES: dict[str, tuple[int, str, str]] = {
    "brownout": (529, "overloaded_error", "Overloaded"),
    "dead_key": (401, "authentication_error", "invalid x-api-key"),
    "no_money": (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
    "capacity": (529, "overloaded_error", "Overloaded"),
    "daily": (429, "rate_limit_error", "This request would exceed your daily limit. Please retry after 86400 seconds."),
    "unknown_path": (404, "not_found_error", "Not found"),
}


class Anthropic:
    """The dialect; a count of tokens counts as a request of none."""

    services: Mapping[bytes, Service] = MappingProxyType(
        {
            b"/v1/messages": Service(read_question, messages.answer, messages),
            b"/v1/messages/count_tokens": Service(read_question, messages.count),
        }
    )

    def key(self, fields: dict[bytes, bytes]) -> str:
        """The x-api-key, or a bearer token, as its newer SDKs send."""
        bearer = fields.get(b"authorization", b"").removeprefix(b"Bearer ")
        return (fields.get(b"x-api-key") or bearer).decode("latin-1")

    def rates(self, rests: Sequence[Rest], now_unix_s: int) -> list[Header]:
        """`anthropic-ratelimit-{requests,tokens}-{limit,remaining,reset}`, whole seconds, thousands of tokens."""
        headers: list[Header] = []
        for unit, limit, remaining, reset_ms in rests:
            name = b"anthropic-ratelimit-" + unit.encode()
            shown = remaining // 1_000 * 1_000 if unit == "tokens" else remaining
            headers += (
                (name + b"-limit", b"%d" % limit),
                (name + b"-remaining", b"%d" % shown),
                (name + b"-reset", _instant(now_unix_s - -reset_ms // 1_000)),
            )
        return headers

    def refusal(self, refusal: Refusal, form: int, now_unix_s: int) -> Reply:
        """429, or 413 for what never fits."""
        if refusal.unit != "concurrent" and refusal.wait_ms is None:
            return _error(413, "request_too_large", "Request exceeds the maximum size")
        sentence = f"This request would exceed your organization's rate limit of {refusal.limit} {refusal.unit}."
        reply = _error(429, "rate_limit_error", sentence)
        wait_s = -(-(refusal.wait_ms or 1_000) // 1_000)
        if form % 2:
            reset = (b"anthropic-ratelimit-tokens-reset", _instant(now_unix_s + wait_s + 1))
            return reply._replace(headers=[*reply.headers, (b"anthropic-ratelimit-tokens-remaining", b"0"), reset])
        return reply._replace(headers=[*reply.headers, (b"retry-after", b"%d" % wait_s)])

    def failure(self, kind: str) -> Reply:
        """An error on command."""
        return _error(*FAILURES[kind])

    def invalid(self, sentence: str) -> Reply:
        """400."""
        return _error(400, "invalid_request_error", sentence)


def _error(status: int, kind: str, sentence: str) -> Reply:
    return Reply(status, [JSON], encoded({"type": "error", "error": {"type": kind, "message": sentence}}))


def _instant(unix_s: int) -> bytes:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ").encode()
