"""
What an answer says while it passes: usage, the first content, an error inside a 200, its proper end.

Taps look, they change nothing: payloads go on exactly as they came. Dialects read here: OpenAI's chat, completions and
responses, and Anthropic's messages; an answer in any other shape is relayed and its usage counted as unknown. A mark
cannot stand in content, since quotes inside a JSON string are escaped.
"""

import re
from typing import NamedTuple

import msgspec
from msgspec import Raw

UNKNOWN = -1
MOST_CARRIED_BYTES = 64 * 1024
TAIL_BYTES = 4 * 1024

_SSE_END = re.compile(rb"\n\n|\r\n\r\n|\r\r")
_MARKS = (b'"usage":', b'"error":', b"[DONE]", b"message_stop", b"response.")
_LAST_USAGE = re.compile(rb'"usage"\s*:\s*(\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})')
_DONE = b"[DONE]"
_LAST_TYPES = frozenset({"message_stop", "response.completed", "response.incomplete", "response.failed"})
_NO_CONTENT_TYPES = frozenset(
    {"message_start", "ping", "content_block_start", "response.created", "response.in_progress", "response.queued"}
)
_EMPTY = frozenset({b"", b"null", b'""', b"[]", b"{}"})


class _Shape(msgspec.Struct):
    """The keys of an answer or event that matter; raw, so that no type in it can surprise."""

    type: Raw = Raw(b"")
    usage: Raw = Raw(b"")
    error: Raw = Raw(b"")
    choices: Raw = Raw(b"")
    message: Raw = Raw(b"")
    response: Raw = Raw(b"")


class Failure(NamedTuple):
    """An error in a body: its type, code and message, empty where it has none."""

    type: str = ""
    code: str = ""
    message: str = ""


class Usage:
    """Tokens in and out as the target counted them; UNKNOWN until it says so."""

    __slots__ = ("input_tokens", "output_tokens")

    def __init__(self) -> None:
        self.input_tokens = UNKNOWN
        self.output_tokens = UNKNOWN

    def read(self, raw: Raw | bytes) -> None:
        """Take over what a usage object says; later ones of a stream complete earlier ones."""
        said = _as_object(raw)
        for name in ("prompt_tokens", "input_tokens"):
            if type(value := said.get(name)) is int and value >= 0:
                self.input_tokens = value
        for name in ("completion_tokens", "output_tokens"):
            if type(value := said.get(name)) is int and value >= 0:
                self.output_tokens = value
        if self.input_tokens >= 0 and self.output_tokens < 0 and "total_tokens" in said:
            self.output_tokens = 0  # embeddings have no output


class AnswerTap:
    """An answer that is one JSON text: `feed` its payload, then `close`."""

    __slots__ = ("_tail", "carry", "failure", "usage")

    def __init__(self) -> None:
        self.usage = Usage()
        self.failure: Failure | None = None
        self.carry = True  # it wants every payload
        self._tail = b""

    def feed(self, payload: bytes) -> None:
        """Keep the end of an answer that is too long to hold: usage stands there."""
        self._tail = (self._tail + payload)[-TAIL_BYTES:]

    def close(self, held: bytes | None) -> None:
        """The answer is whole; `held` is all of it, None if it was relayed piece by piece."""
        if held is None:
            found = _LAST_USAGE.findall(self._tail)
            if found:
                self.usage.read(found[-1])
            return
        shape = _shape(held)
        if shape is not None:
            self.failure = read_failure(shape)
            if bytes(shape.usage) not in _EMPTY:
                self.usage.read(shape.usage)


class StreamTap:
    """
    A stream of server-sent events.

    `begun` = content was in it; `finished` = its last event was; `carry` holds an event whose end has not come.
    """

    __slots__ = ("begun", "carry", "failure", "finished", "usage")

    def __init__(self) -> None:
        self.usage = Usage()
        self.failure: Failure | None = None
        self.carry = b""
        self.begun = False
        self.finished = False

    def feed(self, payload: bytes) -> None:
        """Look at the events that became whole; one that is too long to hold is passed over."""
        data = self.carry + payload
        *whole, rest = _SSE_END.split(data)
        self.carry = rest if len(rest) <= MOST_CARRIED_BYTES else b""
        for event in whole:
            if not self.begun or any(mark in event for mark in _MARKS):
                self._look(event)

    def close(self) -> None:
        """The body is whole: what is carried is its last event, blank line or not."""
        if self.carry:
            self.feed(b"\n\n")

    def _look(self, event: bytes) -> None:
        data = _data_of(event)
        if data == _DONE:
            self.begun = self.finished = True
            return
        shape = _shape(data)
        if shape is None:
            self.begun = self.begun or bool(data)
            return
        kind = _as_text(shape.type)
        for holder in (shape, _shape(shape.message), _shape(shape.response)):
            if holder is not None and bytes(holder.usage) not in _EMPTY:
                self.usage.read(holder.usage)
        self.failure = read_failure(shape) or self.failure
        self.finished = self.finished or kind in _LAST_TYPES
        self.begun = self.begun or (self.failure is None and _has_content(shape, kind))


def marked(payload: bytes) -> bool:
    """Whether a payload of whole events, after the first content, may say something that counts."""
    return b'"usage":{' in payload or b'"usage": {' in payload or b'"error"' in payload


def read_failure(shape: _Shape) -> Failure | None:
    """The error that a body reports, if it does."""
    raw = bytes(shape.error)
    if raw in _EMPTY:
        return None
    said = _as_object(raw)
    if not said:
        return Failure(message=_as_text(raw) or "error")
    return Failure(
        *[str(value)[:1_000] if (value := said.get(key)) is not None else "" for key in ("type", "code", "message")]
    )


def read_error_body(body: bytes) -> Failure:
    """The error in the body of a 4xx or 5xx; its text if it is no JSON that is known."""
    shape = _shape(body)
    failure = read_failure(shape) if shape is not None else None
    return failure or Failure(message=body[:1_000].decode("utf-8", "replace"))


def _has_content(shape: _Shape, kind: str) -> bool:
    if kind:
        return kind not in _NO_CONTENT_TYPES
    choices = _as_list(shape.choices)
    for choice in choices:
        if isinstance(choice, dict):
            delta = choice.get("delta")
            said = [value for key, value in delta.items() if key != "role"] if isinstance(delta, dict) else []
            if any([choice.get("text"), choice.get("finish_reason"), *said]):
                return True
    return False


def _data_of(event: bytes) -> bytes:
    """The data of an event, without comments and other fields (WHATWG HTML 9.2.6)."""
    if event.startswith(b"data: ") and b"\n" not in event and b"\r" not in event:
        return event[6:]
    lines = [line[5:].removeprefix(b" ") for line in event.splitlines() if line.startswith(b"data:")]
    return b"\n".join(lines)


_shape_decoder = msgspec.json.Decoder(_Shape)


def _shape(raw: bytes | Raw) -> _Shape | None:
    try:
        return _shape_decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def _as_any(raw: bytes | Raw) -> object:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _as_object(raw: bytes | Raw) -> dict[str, object]:
    value = _as_any(raw)
    return value if isinstance(value, dict) else {}


def _as_list(raw: bytes | Raw) -> list[object]:
    value = _as_any(raw)
    return value if isinstance(value, list) else []


def _as_text(raw: bytes | Raw) -> str:
    value = _as_any(raw)
    return value if isinstance(value, str) else ""
