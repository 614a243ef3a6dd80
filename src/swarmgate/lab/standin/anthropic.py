"""
Anthropic's dialect: anthropic-ratelimit headers with RFC 3339 resets, 529, `event: error` inside streams.

Limits are told in requests and in tokens; the wait of a 429 stands in retry-after, or only in the reset.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from swarmgate.http1.head import Header
from swarmgate.lab.standin.scope import Refusal, Rest
from swarmgate.lab.standin.speech import CHARS_PER_TOKEN, JSON, TEXT, Question, Reply, encoded

PATH = b"/v1/messages"

FAILURES: dict[str, tuple[int, str, str]] = {
    "brownout": (529, "overloaded_error", "Overloaded"),
    "dead_key": (401, "authentication_error", "invalid x-api-key"),
    "no_money": (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
    "capacity": (529, "overloaded_error", "Overloaded"),
    "daily": (429, "rate_limit_error", "This request would exceed your daily limit. Please retry after 86400 seconds."),
    "unknown_path": (404, "not_found_error", "Not found"),
    "bad_body": (400, "invalid_request_error", "The request body is not valid JSON."),
}


class Anthropic:
    """The dialect of /v1/messages."""

    path = PATH

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

    def answer(self, question: Question, number: int) -> bytes:
        """A message."""
        content = [{"type": "text", "text": TEXT[: question.output_tokens * CHARS_PER_TOKEN]}]
        return encoded(
            _message(question, number, question.output_tokens) | {"content": content, "stop_reason": "end_turn"}
        )

    def begin(self, question: Question, number: int) -> bytes:
        """message_start, with the prompt's usage, and the block's start."""
        start = _event("message_start", {"message": _message(question, number, 1)})
        return start + _event("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}})

    def piece(self, _question: Question, _number: int, text: str) -> bytes:
        """A delta."""
        return _event("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": text}})

    def end(self, question: Question, _number: int) -> bytes:
        """The block's stop, the usage, message_stop."""
        delta = {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": question.output_tokens}}
        return _event("content_block_stop", {"index": 0}) + _event("message_delta", delta) + _event("message_stop", {})

    def error_event(self) -> bytes:
        """Overload in a stream that had begun with 200."""
        return _event("error", {"error": {"type": "overloaded_error", "message": "Overloaded"}})


def _message(question: Question, number: int, output_tokens: int) -> dict[str, object]:
    usage = {"input_tokens": question.prompt_tokens, "output_tokens": output_tokens}
    head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": question.model}
    return head | {"content": [], "stop_reason": None, "usage": usage}


def _event(name: str, data: dict[str, object]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encoded({"type": name} | data))


def _error(status: int, kind: str, sentence: str) -> Reply:
    return Reply(status, [JSON], encoded({"type": "error", "error": {"type": kind, "message": sentence}}))


def _instant(unix_s: int) -> bytes:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ").encode()
