"""
What a stand-in says, whatever the dialect: the seam between limits and words.

A dialect (`openai.py`, `anthropic.py`) has keys, headers and errors, and one service a path; services say whole answers, and those
that can stream them (`chat.py`, `responses.py`, `messages.py`) say their events.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from swarmgate.http1.head import Header
from swarmgate.lab.standin.question import Question
from swarmgate.lab.standin.scope import Refusal, Rest

JSON = (b"content-type", b"application/json")
EVENTS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]


class Reply(NamedTuple):
    """A whole answer."""

    status: int
    headers: list[Header]
    body: bytes


class Chunks(Protocol):
    """How a service streams its answers, event by event."""

    def begin(self, question: Question) -> bytes:
        """A stream's first events; no content yet."""

    def piece(self, question: Question, at: int, text: str) -> bytes:
        """Event number `at` (from 0) with content."""

    def end(self, question: Question, pieces: int) -> bytes:
        """A stream's last events, after so many with content."""

    def error_event(self) -> bytes:
        """Overload, told inside a 200."""


class Service(NamedTuple):
    """What one path does: how its bodies are read (with a number for ids), its whole answers, and its streams if it has any."""

    read: Callable[[bytes, int], Question]
    answer: Callable[[Question], bytes]
    chunks: Chunks | None = None


class Speech(Protocol):
    """One provider's ways."""

    services: Mapping[bytes, Service]

    def key(self, fields: dict[bytes, bytes]) -> str:
        """The key in a request's headers, empty if there is none."""

    def rates(self, rests: Sequence[Rest], now_unix_s: int) -> list[Header]:
        """The headers that tell what is left."""

    def refusal(self, refusal: Refusal, form: int, now_unix_s: int) -> Reply:
        """A limit was hit; `form` chooses where the wait stands: the forms of real answers differ."""

    def failure(self, kind: str) -> Reply:
        """An error on command."""

    def invalid(self, sentence: str) -> Reply:
        """A 400: the request itself is wrong."""


def encoded(value: object) -> bytes:
    """JSON as it goes out."""
    return msgspec.json.encode(value)


def data_event(value: object) -> bytes:
    """A server-sent event without a name."""
    return b"data: %b\n\n" % encoded(value)


def named_event(name: str, /, **data: object) -> bytes:
    """A server-sent event whose `type` is its name."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encoded({"type": name} | data))


def go_duration(ms: int) -> bytes:
    """A duration as OpenAI writes it: `1ms`, `8.64s`, `1m9.696s`."""
    if ms < 1_000:
        return b"%dms" % ms
    minutes, rest = divmod(ms, 60_000)
    seconds = f"{rest / 1_000:g}s".encode()
    return b"%dm%b" % (minutes, seconds) if minutes else seconds
