"""
What an answer says while it passes: usage, the first content, an error inside a 200, its proper end.

Taps look, they change nothing: payloads go on exactly as they came. Dialects read here: OpenAI's chat, completions and
responses, and Anthropic's messages; an answer in any other shape is relayed and its usage counted as unknown. A mark
cannot stand in content, since quotes inside a JSON string are escaped.
"""

import re
from typing import Final

import msgspec
from msgspec import Raw

from swarmgate.core.price import NO_COUNT
from swarmgate.gate.answer_shape import UNKNOWN, Counts, Shape, decode_answer, decode_counts, decode_shape
from swarmgate.gate.pieces import FAR, Pieces
from swarmgate.http1.head import ResponseHead
from swarmgate.providers.errors import LONGEST_TEXT, Failure, failure_at, failure_in

MOST_CARRIED_BYTES: Final = 64 * 1024

# Two ends of lines, each LF, CRLF or CR (WHATWG HTML 9.2.5); a CR that was read last may be half of a CRLF.
SSE_END: Final = re.compile(rb"\r?\n(?:\n|\r\n|\r(?=[^\n]))|\r\r\n?")
LONGEST_END: Final = 4
COUNT: Final = b'_tokens"'
ERROR: Final = b"error"
DONE: Final = b"[DONE]"
STOP: Final = b"message_stop"
RESPONSE: Final = b'"response'
ends_response: Final = re.compile(rb'"response(?:"|\.[cif])').search
looks_like_events: Final = re.compile(rb"(?:\xef\xbb\xbf)?[\r\n]*(?:data|event|id|retry|):").match  # no JSON begins so
_LAST_USAGE: Final = re.compile(rb'"usage"\s*:\s*(\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})')
_BOM: Final = b"\xef\xbb\xbf"
_CACHED: Final = re.compile(
    rb'"(cached_tokens|prompt_cache_hit_tokens|cache_read_input_tokens|cache_creation_input_tokens)"\s*:\s*([0-9]{1,15})'
)
_READ_APART, _WRITTEN_APART = b"cache_read_input_tokens", b"cache_creation_input_tokens"  # Anthropic counts them apart
_may_fail: Final = re.compile(rb'"error"\s*(?:[,}]|:\s*(?!null))').search  # a member, or what a type is
_is_named_error: Final = re.compile(rb"(?:^|[\r\n])event: ?error(?:[\r\n]|$)").search
_PLACES: Final = ("error",)
_FAILED_TYPE: Final = "response.failed"
_TOLD_TYPES: Final = frozenset({"error", _FAILED_TYPE})
_LAST_TYPES: Final = frozenset({"message_stop", "response.completed", "response.incomplete", _FAILED_TYPE})
_NO_CONTENT_TYPES: Final = frozenset(
    {"message_start", "ping", "content_block_start", "response.created", "response.in_progress", "response.queued"}
)
_PLAIN: Final = b"identity"
_JSON_BEGINS: Final = frozenset({b"{", b"["})
_EMPTY: Final = frozenset({b"", b"null", b'""', b"[]", b"{}"})


Usage = tuple[int, int]  # tokens in and out as the target counted them; below 0 until it says so
Cached = tuple[int, int]  # prompt tokens read from a cache (UNKNOWN until told), and those that `Usage` does not hold
NO_CACHE: Cached = (UNKNOWN, 0)
NO_USAGE: Usage = (UNKNOWN, UNKNOWN)
ABSURD: Usage = (NO_COUNT, NO_COUNT)


def read_answer(body: bytes, places: tuple[str, ...] = _PLACES) -> tuple[Usage, Failure | None]:
    """What a whole JSON answer says of its use, and the error it holds in one of the dialect's places if it is none."""
    failure = _find_failure(body, places) if body.find(ERROR) >= 0 and _may_fail(body) else None
    try:
        counts = decode_answer(body).usage
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        shape = _shape(body)
        return NO_USAGE if shape is None else _read_usage(shape.usage, NO_USAGE), failure
    if counts is None:
        return NO_USAGE, failure
    if (
        counts.prompt_tokens + counts.completion_tokens
        == counts.total_tokens
        >= counts.prompt_tokens
        >= 0
        <= counts.completion_tokens
    ):
        return (counts.prompt_tokens, counts.completion_tokens), failure
    return _usage(counts, NO_USAGE), failure


def no_answer(head: ResponseHead, body: bytes) -> Failure | None:
    """A redirect, or a page of something between: no provider answers so (UP-09, UP-10)."""
    return not_answered(head.status, head.fields.get(b"content-encoding", _PLAIN), body)


def not_answered(status: int, encoding: bytes, body: bytes) -> Failure | None:
    """The rule of `no_answer`, also for what is explained."""
    if status < 300 and (encoding != _PLAIN or body.lstrip()[:1] in _JSON_BEGINS):
        return None
    words = "a redirect" if status >= 300 else "no JSON" if body else "nothing"
    return Failure(message=f"answered {status} with {len(body)} bytes: {words}")


def read_tail(tail: bytes) -> Usage:
    """The usage at the end of an answer that was too long to hold."""
    found = _LAST_USAGE.findall(tail)
    return _read_usage(found[-1], NO_USAGE) if found else NO_USAGE


def read_cached(raw: bytes | bytearray, before: Cached = NO_CACHE) -> Cached:
    """What the last usage in `raw` says of caches; its parts complete `before`."""
    found = dict(_CACHED.findall(raw, max(0, raw.rfind(b'"usage"'))))
    if not found:
        return before
    counts = {name: int(count) for name, count in found.items()}
    read = counts.get(_READ_APART, counts.get(b"cached_tokens", counts.get(b"prompt_cache_hit_tokens", before[0])))
    apart = counts.get(_READ_APART, 0) + counts.get(_WRITTEN_APART, 0)
    return read, apart or before[1]


def _usage(counts: Counts, before: Usage) -> Usage:
    """Later counts of a stream complete earlier ones; thoughts may stand in the total only, embeddings have no output."""
    if min(counts.prompt_tokens, counts.input_tokens, counts.completion_tokens, counts.output_tokens) < UNKNOWN:
        return _doubted(before)
    sent = max(counts.prompt_tokens, counts.input_tokens)
    got = max(counts.completion_tokens, counts.output_tokens)
    if sent >= 0 and counts.total_tokens >= 0:
        got = max(got, counts.total_tokens - sent, 0)
    return sent if sent >= 0 else before[0], got if got >= 0 else before[1]


def _read_usage(raw: Raw | bytes, before: Usage) -> Usage:
    if bytes(raw) in _EMPTY:
        return before
    try:
        return _usage(decode_counts(raw), before)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _doubted(before)


def _doubted(before: Usage) -> Usage:
    """What is told is no count: what was told before it stays."""
    return ABSURD if before == NO_USAGE else before


def may_tell(events: bytes) -> bool:
    """
    Whether they may tell use, an error or the end: then one of these stands in them, however they are spaced, and hardly ever in a token.

    `in` is slower than `find` (docs/decisions.md). `transport` asks the same of every chunk without this call.
    """
    find = events.find
    return (
        find(COUNT) >= 0
        or find(ERROR) >= 0
        or find(DONE) >= 0
        or find(STOP) >= 0
        or (find(RESPONSE) >= 0 and ends_response(events) is not None)
    )


class StreamTap:
    """
    A stream of server-sent events.

    `begun` = content was in it; `finished` = its last event was; `carry` holds an event whose end has not come. `places`
    are those where the dialect's events may hold an error. `pieces`: how its content is cut.

    An error is the last word of its stream: nothing after it is content, and no end after it is a proper one. `failed_at` =
    so many bytes of the payload that was fed last belong to it; `is_told` = clients take such an event for an error.
    """

    __slots__ = (
        "_beside",
        "_places",
        "begun",
        "cached",
        "carry",
        "failed_at",
        "failure",
        "finished",
        "is_told",
        "pieces",
        "usage",
    )

    def __init__(self, places: tuple[str, ...] = _PLACES) -> None:
        self._places = places
        self.usage: Usage = NO_USAGE
        self.cached: Cached = NO_CACHE
        self.failure: Failure | None = None
        self.carry = bytearray()
        self.pieces = Pieces()
        self.begun = False
        self.finished = False
        self.is_told = False
        self.failed_at = 0
        self._beside = 0  # bytes of its error and of what follows: no content

    def feed(self, payload: bytes) -> None:
        """Look at the events that became whole; one that is too long to hold is passed over."""
        carry, pieces = self.carry, self.pieces
        carried, has_failed = len(carry), self.failure is not None
        unseen = max(0, len(carry) - LONGEST_END + 1)  # what was searched once is not searched again
        carry += payload
        begins = 0
        for end in SSE_END.finditer(carry, unseen):
            event, length = bytes(carry[begins : end.start()]), end.end() - begins
            begins = end.end()
            if not self.begun or may_tell(event):
                self._look(event)
                if not has_failed and self.failure is not None:
                    has_failed, self.failed_at = True, begins - carried
            if has_failed:
                self._beside += length
                continue
            if pieces.wrap:
                pieces.count += not event.startswith(b":")
            else:
                pieces.measure(data_of(event) if self.begun else b"", length)
        del carry[:begins]
        if len(carry) > MOST_CARRIED_BYTES:
            carry.clear()

    def hear(self, events: bytes) -> None:
        """Look at events that came apart from the rest, of which one may be half here."""
        half, self.carry = self.carry, bytearray()
        self.feed(events)
        self.close()
        self.carry = half

    def flowed(self, count: int, came: int) -> int:
        """Tokens of so many pieces and bytes in all; -1 = nobody can see."""
        return self.pieces.tokens(count, came - len(self.carry) - self._beside)

    def close(self) -> None:
        """The body is whole: what is carried is its last event, blank line or not."""
        if self.carry:
            self.feed(b"\n\n")

    def _look(self, event: bytes) -> None:
        data = data_of(event)
        if data == DONE:
            self._say(begun=True, finished=True)
            return
        shape = _shape(data)
        if event.find(ERROR) >= 0 and (_may_fail(data) or _is_named_error(event)):
            self._look_for_error(event, data, shape)
        if shape is None:
            self._say(begun=bool(data), finished=False)
            return
        kind = _as_text(shape.type)
        for holder in (shape, *map(_shape, (shape.message, shape.response, shape.x_groq))):
            if holder is not None:
                self.usage = _read_usage(holder.usage, self.usage)
        if data.find(COUNT) >= 0:
            self.cached = read_cached(data, self.cached)
        self._say(begun=_has_content(shape, kind), finished=kind in _LAST_TYPES)

    def _say(self, *, begun: bool, finished: bool) -> None:
        """Content, or a proper end; neither comes after an error."""
        if self.failure is None:
            self.begun = self.begun or begun
            self.finished = self.finished or finished

    def _look_for_error(self, event: bytes, data: bytes, shape: Shape | None) -> None:
        is_named = bool(data) and _is_named_error(event) is not None
        if self.failure is None:
            self.failure = _find_failure(data, self._places, named=is_named)
            kind = "" if shape is None else _as_text(shape.type)
            self.finished = self.finished or (self.failure is not None and kind == _FAILED_TYPE)
            self.is_told = is_named or kind in _TOLD_TYPES or failure_at(_as_any(data), "error") is not None


def counts_only(event: bytes) -> bool:
    """Whether an event tells the usage and nothing else: `include_usage` adds it as one without choices."""
    data = data_of(event)
    shape = _shape(data)
    return (
        shape is not None
        and _as_any(shape.choices) == []
        and isinstance(_as_any(shape.usage), dict)
        and _may_fail(data) is None
    )


class SealedTap(StreamTap):
    """A stream that cannot be read, since the target compressed it although it was asked not to: all of it is content."""

    __slots__ = ()

    def feed(self, payload: bytes) -> None:
        """Nothing can be seen in it."""
        self.begun = self.finished = bool(payload) or self.begun
        self.pieces.wrap = FAR
        self.pieces.count += 1

    def flowed(self, count: int, came: int) -> int:  # noqa: ARG002  as any stream's
        """Nor how much of it."""
        return -1


def _find_failure(raw: bytes, places: tuple[str, ...], *, named: bool = False) -> Failure | None:
    """At a dialect's places; or the whole is one by its name or its own word, as those of Responses and of old servers."""
    said = _as_any(raw)
    found = next(filter(None, (failure_at(said, place) for place in places)), None)
    if found is None and (named or (isinstance(said, dict) and _calls_itself_error(said))):
        rest = {key: value for key, value in said.items() if value != "error"} if isinstance(said, dict) else said
        found = failure_in(rest) or Failure()
    if found == Failure():  # it says nothing that is known
        return Failure(message=raw[:LONGEST_TEXT].decode("utf-8", "replace"))
    return found


def _calls_itself_error(said: dict[object, object]) -> bool:
    return said.get("type") == "error" or said.get("object") == "error"


def _has_content(shape: Shape, kind: str) -> bool:
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


def data_of(event: bytes) -> bytes:
    """The data of an event, without comments and other fields (WHATWG HTML 9.2.6)."""
    if event.startswith(b"data: ") and b"\n" not in event and b"\r" not in event:
        return event[6:]
    lines = event.removeprefix(_BOM).splitlines()  # it may stand before the first event
    said = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:") or line == b"data"]
    return b"\n".join(said)


def _is_empty(raw: object) -> bool:
    return not raw  # compiled, it would have to be bytes: to a type checker `Raw` is, but not to CPython


def _shape(raw: bytes | Raw) -> Shape | None:
    if _is_empty(raw):
        return None
    try:
        return decode_shape(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def _as_any(raw: bytes | Raw) -> object:
    if _is_empty(raw):
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _as_list(raw: bytes | Raw) -> list[object]:
    value = _as_any(raw)
    return value if isinstance(value, list) else []


def _as_text(raw: bytes | Raw) -> str:
    value = _as_any(raw)
    return value if isinstance(value, str) else ""
