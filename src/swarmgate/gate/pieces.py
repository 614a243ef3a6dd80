"""
How much of a stream is content, where nobody counts its tokens: each event is a piece of text in a wrapping.

The wrapping of the first piece is measured, and what comes afterwards is only counted: pieces, and bytes of all. What a provider
bills and never shows (thoughts that stay hidden) is not among them.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from swarmgate.core.estimate import generated
from swarmgate.core.price import NO_COUNT
from swarmgate.core.record import Call

MOST_LOOKED_AT: Final = 16  # events; a stream that has no text by then is in a shape that nobody here knows
FAR: Final = 1 << 30
_TEXTS: Final = frozenset(
    {"text", "partial_json", "thinking", "content", "reasoning_content", "reasoning", "arguments"}
)


class Pieces:
    """
    What is known of a stream's pieces.

    `wrap` = bytes of an event that are no text, 0 = not measured yet; `count` = events from the first piece on; `before` = bytes
    in front of it.
    """

    __slots__ = ("before", "count", "wrap")

    def __init__(self) -> None:
        self.wrap = self.count = self.before = 0

    def measure(self, data: bytes, length: int) -> None:
        """One event more before there was text, of so many bytes with its end; without data it is a comment, or before content."""
        text = text_bytes(data) if data else 0
        if text:
            self.wrap, self.count = max(1, length - text), 1
            return
        self.before += length
        self.count += bool(data)
        if self.count >= MOST_LOOKED_AT:
            self.wrap = FAR

    def tokens(self, count: int, came: int) -> int:
        """Of a stream that came to so many pieces and bytes in all."""
        return generated(count, came - self.before - count * self.wrap)


def reckoned(call: Call, told: tuple[int, int], flowed: int) -> tuple[int, int, bool]:
    """
    Tokens in and out of what left and was not counted to its end, and whether that is an estimate.

    Of a stream what flowed counts, but no less than was `told` by then. `flowed` -1: nobody could see what was made, since it was to
    come whole, or compressed; what is likely counts.
    """
    prompt, output = told
    if not call.asked_tokens or NO_COUNT in told:
        return prompt, output, False
    made = call.likely_tokens if flowed < 0 else flowed
    return call.asked_tokens if prompt < 0 else prompt, max(made, output), True


def text_bytes(data: bytes) -> int:
    """How many bytes of an event's JSON are what the model said, in any of the dialects."""
    try:
        said = msgspec.json.decode(data)
        return sum(len(msgspec.json.encode(text)) - 2 for text in _texts(said))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return 0


def _texts(event: object) -> Iterator[str]:
    """The texts of one event."""
    match event:
        case {"choices": [*choices]}:
            for choice in choices:
                yield from _in(choice)
        case {"delta": str(text)}:
            yield text
        case {"delta": dict(delta)}:
            yield from _in(delta)


def _in(said: object) -> Iterator[str]:
    """Every text below a choice or a delta; names and identities are none."""
    if isinstance(said, list):
        for one in said:
            yield from _in(one)
    elif isinstance(said, dict):
        for name, one in said.items():
            if isinstance(one, str):
                if name in _TEXTS:
                    yield one
            else:
                yield from _in(one)
