"""
A model call's JSON as it was read: its top level as raw values, and the bodies that are made of it.

`peek.peek` reads it. Structs of msgspec stay Python in the compiled form (hatch_build.py), so nothing else stands here.
"""

from typing import Final

import msgspec
from msgspec import Raw

from swarmgate.gate.prompts import prompts_in

LONG_BYTES: Final = 16 * 1024  # a body beyond it has its members counted before they are read
# a body beyond it is sent in pieces of what came: a copy of 32 MiB takes 20 to 70 ms
MOST_COPIED_BYTES: Final = 256 * 1024
OPTIONS, _ASK_USAGE = "stream_options", "include_usage"
Body = bytes | memoryview

_encode: Final = msgspec.json.Encoder().encode
_decode_options: Final = msgspec.json.Decoder(dict[str, Raw] | None).decode
_NULL, _FALSE = Raw(b"null"), Raw(b"false")
_NO: Final = frozenset({b"null", b"false"})


class Peeked(msgspec.Struct, frozen=True):  # its constructor is C: a named tuple's is Python
    """
    `fields` are the top level; `max_tokens` None = not limited by the caller; `prompt_tokens` is an estimate.

    `body` says the same as `fields`, in their form or, beyond `MOST_COPIED_BYTES`, in the caller's.
    """

    fields: dict[str, Raw]
    body: Body
    model: str
    stream: bool
    max_tokens: int | None
    prompt_tokens: int
    answers: int = 1  # that are made to each prompt, side by side

    @property
    def choices(self) -> int:
        """How many answers are made: so many to each prompt, of so many prompts."""
        prompt = self.fields.get("prompt")
        return self.answers if prompt is None else self.answers * prompts_in(prompt)

    def with_model(self, model: str) -> bytes:
        """The body as it is sent, the caller's alias replaced by `model`."""
        return _encode(self.fields | {"model": model})

    def pieces(self, model: str, options: dict[str, object] | None) -> list[memoryview]:
        """The same, as pieces that follow each other; what is long is not copied."""
        changed: dict[str, object] = {"model": model or self.model}
        if options is not None:
            changed[OPTIONS] = options
        pieces, short, sign = [], bytearray(), b"{"
        for key, value in (self.fields | changed).items():
            short += b"%b%b:" % (sign, _encode(key))
            sign = b","
            view = memoryview(value if isinstance(value, Raw) else _encode(value))
            if view.nbytes > LONG_BYTES:
                pieces += [memoryview(short), view]
                short = bytearray()
            else:
                short += view
        return [*pieces, memoryview(short + b"}")]

    def counting(self) -> dict[str, object] | None:
        """The `stream_options` that ask for the usage too; None if the caller's do, or are no such object."""
        try:
            options = _decode_options(self.fields.get(OPTIONS, _NULL)) or {}
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None  # the target says what is wrong with them
        asked = options.get(_ASK_USAGE, _FALSE)
        return None if bytes(asked) not in _NO else options | {_ASK_USAGE: True}

    def sent_as(self, model: str, options: dict[str, object]) -> bytes:
        """The body with another model and other `stream_options`."""
        return _encode(self.fields | {"model": model or self.model, OPTIONS: options})
