"""
What a stand-in says and understands, whatever the dialect: the seam between limits and words.

The words themselves stand in `openai.py` and `anthropic.py`. A model answers with as many tokens as its prompt asks for
("Answer in 350 tokens."), four characters each, so that any gateway between carries the wish.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from swarmgate.http1.head import Header
from swarmgate.lab.standin.scope import Refusal, Rest

CHARS_PER_TOKEN = 4
USUAL_OUTPUT_TOKENS = 100
MOST_OUTPUT_TOKENS = 32_768
USUAL_CAP_TOKENS = 4_096
JSON = (b"content-type", b"application/json")
EVENTS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
_WISH = re.compile(r"[Aa]nswer in (\d{1,6}) tokens")
_FILLER = "and so the measured rate of each host was kept below what it sustains, "
TEXT = _FILLER * (MOST_OUTPUT_TOKENS * CHARS_PER_TOKEN // len(_FILLER) + 1)


class Reply(NamedTuple):
    """A whole answer."""

    status: int
    headers: list[Header]
    body: bytes


class Question(NamedTuple):
    """A model call as a stand-in reads it: what it costs and what it asks for; `call` is who says it is asking."""

    call: str
    model: str
    is_stream: bool
    wants_usage: bool
    prompt_tokens: int
    output_tokens: int
    cap_tokens: int


class Speech(Protocol):
    """One dialect."""

    path: bytes

    def key(self, fields: dict[bytes, bytes]) -> str:
        """The key in a request's headers, empty if there is none."""

    def rates(self, rests: Sequence[Rest], now_unix_s: int) -> list[Header]:
        """The headers that tell what is left."""

    def refusal(self, refusal: Refusal, form: int, now_unix_s: int) -> Reply:
        """A limit was hit; `form` chooses where the wait stands: the forms of real answers differ."""

    def failure(self, kind: str) -> Reply:
        """An error on command."""

    def answer(self, question: Question, number: int) -> bytes:
        """The body of a whole answer."""

    def begin(self, question: Question, number: int) -> bytes:
        """A stream's first events; no content yet."""

    def piece(self, question: Question, number: int, text: str) -> bytes:
        """An event with content."""

    def end(self, question: Question, number: int) -> bytes:
        """A stream's last events."""

    def error_event(self) -> bytes:
        """Overload, told inside a 200."""


class _Message(msgspec.Struct):
    content: Any = ""


class _Body(msgspec.Struct):
    model: str
    messages: list[_Message] = []
    system: Any = ""
    stream: bool = False
    stream_options: dict[str, Any] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    user: str = ""
    metadata: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(_Body).decode


def read_question(body: bytes) -> Question:
    """
    The call in a body. Errors: `msgspec.DecodeError`.

    It costs ceil(characters / 4) of its contents, one token a message and one more: what OpenAI charged in 9 of 10 of
    939 recorded calls.
    """
    said = _decode(body)
    texts = [_text(message.content) for message in said.messages] or [""]
    chars = sum(map(len, texts)) + len(_text(said.system))
    wish = _WISH.search(texts[-1][-200:])
    cap = said.max_completion_tokens or said.max_tokens or USUAL_CAP_TOKENS
    wanted = min(int(wish[1]) if wish else USUAL_OUTPUT_TOKENS, MOST_OUTPUT_TOKENS, cap)
    return Question(
        call=said.user or str((said.metadata or {}).get("user_id", "")),
        model=said.model,
        is_stream=said.stream,
        wants_usage=bool((said.stream_options or {}).get("include_usage")),
        prompt_tokens=-(-chars // CHARS_PER_TOKEN) + len(said.messages) + 1,
        output_tokens=max(1, wanted),
        cap_tokens=cap,
    )


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def encoded(value: object) -> bytes:
    """JSON as it goes out."""
    return msgspec.json.encode(value)


def go_duration(ms: int) -> bytes:
    """A duration as OpenAI writes it: `1ms`, `8.64s`, `1m9.696s`."""
    if ms < 1_000:
        return b"%dms" % ms
    minutes, rest = divmod(ms, 60_000)
    seconds = f"{rest / 1_000:g}s".encode()
    return b"%dm%b" % (minutes, seconds) if minutes else seconds
