"""OpenAI's embeddings, as a stand-in makes them: the same text has the same vector, of length 1, and that is all it means."""

from base64 import b64encode
from hashlib import shake_256
from math import sqrt
from struct import pack, unpack
from typing import Annotated, Literal

import msgspec

from swarmgate.lab.standin.question import CHARS_PER_TOKEN, Question
from swarmgate.lab.standin.speech import encoded

USUAL_DIMENSIONS = 1_536
MOST_DIMENSIONS = 4_096
MOST_INPUTS = 2_048
Tokens = list[int]


class _Body(msgspec.Struct):
    model: str
    input: str | Annotated[list[str | int | Tokens], msgspec.Meta(min_length=1, max_length=MOST_INPUTS)]
    dimensions: Annotated[int, msgspec.Meta(ge=1, le=MOST_DIMENSIONS)] = USUAL_DIMENSIONS
    encoding_format: Literal["float", "base64"] = "float"
    user: str = ""


_decode = msgspec.json.Decoder(_Body).decode


def read(body: bytes, number: int = 0) -> Question:
    """The call in a body; its words are the answer. Errors: `msgspec.DecodeError`."""
    said = _decode(body)
    inputs = _inputs(said.input)
    tokens = sum(-(-len(one) // CHARS_PER_TOKEN) if isinstance(one, str) else len(one) for one in inputs)
    data = [
        {"object": "embedding", "index": at, "embedding": _shown(_vector(one, said.dimensions), said.encoding_format)}
        for at, one in enumerate(inputs)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    words = encoded({"object": "list", "model": said.model, "data": data, "usage": usage}).decode()
    return Question(said.user, said.model, False, False, tokens, 0, 0, words, number=number)


def answer(question: Question) -> bytes:
    """The vectors."""
    return question.words.encode()


def _inputs(said: str | list[str | int | Tokens]) -> list[str | Tokens]:
    """One text, several, one text's tokens, or those of several."""
    if isinstance(said, str):
        return [said]
    numbers = [one for one in said if isinstance(one, int)]
    return [numbers] if numbers else [one for one in said if not isinstance(one, int)]


def _vector(one: str | Tokens, dimensions: int) -> list[float]:
    digest = shake_256(repr(one).encode()).digest(4 * dimensions)
    numbers = unpack(f"<{dimensions}i", digest)
    length = sqrt(sum(number * number for number in numbers)) or 1.0
    return [number / length for number in numbers]


def _shown(vector: list[float], form: str) -> list[float] | str:
    return vector if form == "float" else b64encode(pack(f"<{len(vector)}f", *vector)).decode()
