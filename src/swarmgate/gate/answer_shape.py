"""
What is read of an answer's JSON: the keys that matter, and its counts, in any of the dialects.

`taps` looks at them. Structs of msgspec stay Python in the compiled form (hatch_build.py), so nothing else stands here.
"""

from typing import Final

import msgspec
from msgspec import Raw

UNKNOWN: Final = -1


class Shape(msgspec.Struct):
    """The keys of an answer or event that matter; raw, so that no type in it can surprise."""

    type: Raw = Raw(b"")
    usage: Raw = Raw(b"")
    choices: Raw = Raw(b"")
    message: Raw = Raw(b"")
    response: Raw = Raw(b"")
    x_groq: Raw = Raw(b"")


class Counts(msgspec.Struct):
    """A usage object in any of the dialects."""

    prompt_tokens: int = UNKNOWN
    completion_tokens: int = UNKNOWN
    input_tokens: int = UNKNOWN
    output_tokens: int = UNKNOWN
    total_tokens: int = UNKNOWN


class Answer(msgspec.Struct):
    """The usual answer."""

    usage: Counts | None = None


decode_shape = msgspec.json.Decoder(Shape).decode
decode_answer = msgspec.json.Decoder(Answer).decode
decode_counts = msgspec.json.Decoder(Counts).decode
