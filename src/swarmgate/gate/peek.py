"""
What a model call's JSON says about itself, and the bytes that say it again.

Only the top level is read; every value stays as raw bytes and is sent as it was judged (design 3). A duplicate key is an
error, since two readers may take different ones. msgspec keeps the last of them, so the text is walked once more
unless it is as long as its compact form, which leaves no room for a second.
"""

import re
from typing import Final

import msgspec
from msgspec import Raw

from swarmgate.core.errors import BadInput
from swarmgate.core.estimate import BYTES_PER_TOKEN
from swarmgate.gate.peeked import LONG_BYTES, MOST_COPIED_BYTES, OPTIONS, Body, Peeked
from swarmgate.gate.utf_8 import must_be_utf_8

MOST_TOKENS: Final = 1 << 40
MOST_MEMBERS: Final = 256  # of the top level; APIs have some thirty
# answers to one prompt: OpenAI makes 128 at most, vLLM as many as this (VLLM_MAX_N_SEQUENCES)
MOST_ANSWERS: Final = 16_384
MOST_NAME: Final = 256  # characters in a member's name
_TWICE: Final = "has a key twice; readers disagree which one counts, so neither is sent"

_HALVED: Final = (
    "has half of a surrogate pair: an escape from \\ud800 to \\udfff without its other half is no character; "
    "a text was probably cut inside of an emoji"
)

_decode: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_encode: Final = msgspec.json.Encoder().encode
_text: Final = msgspec.json.Decoder(str).decode
_number: Final = msgspec.json.Decoder(int | None).decode
_KEY: Final = re.compile(rb'[ \t\r\n]*"(?:[^"\\]|\\.)*"[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_NEXT: Final = re.compile(rb"[ \t\r\n]*([,}])")
_OPEN: Final = re.compile(rb"[ \t\r\n]*\{")
_LIMITS: Final = frozenset({"max_completion_tokens", "max_tokens", "max_output_tokens"})
_CONTENT: Final = frozenset({"messages", "input", "prompt", "system", "tools", "instructions"})
_SWITCH: Final = frozenset({b"true", b"false", b"null"})
# What msgspec says of an escape that has no other half; where less than an escape follows, it says that the text is cut off.
_HALF_WORDS: Final = ("utf-16 surrogate pair", "end of hex escape")
_CUT_WORDS: Final = "truncated"
_HALF: Final = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}.{1,5}\Z", re.DOTALL)
_ESCAPE: Final = 6  # bytes
_NOTHING: Final = Raw(b"")
_ANSWERS: Final = frozenset({"n", "best_of"})
_READ: Final = ("model", "stream", OPTIONS, *sorted(_LIMITS), *sorted(_ANSWERS))


def peek(body: Body) -> Peeked:
    """The call in `body`. Errors: `BadInput` names the key and the rule it breaks."""
    is_long = len(body) > LONG_BYTES
    if not isinstance(body, memoryview) and not body.isascii():  # a view was looked at while it came (long_body.py)
        must_be_utf_8(body)
    try:
        fields = _decode_long(body) if is_long else _decode(body)
        model = _text(fields.get("model", _NOTHING))
    except RecursionError:
        raise BadInput("body", "is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _unreadable(body, error) from None
    compact = body if len(body) > MOST_COPIED_BYTES else _encode(fields)
    if len(compact) != len(body) and not is_long and not _is_single(bytes(body), fields):
        raise BadInput("body", _TWICE)
    stream = bytes(fields["stream"]) if "stream" in fields else b"false"
    if stream not in _SWITCH:
        raise BadInput("stream", "is neither true nor false")
    bytes_read, max_tokens, answers = 0, None, 1
    for key, raw in fields.items():
        if key in _CONTENT:
            bytes_read += memoryview(raw).nbytes
        elif key in _LIMITS:
            max_tokens = _smaller(max_tokens, key, raw)
        elif key in _ANSWERS:
            answers = max(answers, _smaller(None, key, raw, MOST_ANSWERS) or 1)
    prompt_tokens = bytes_read // BYTES_PER_TOKEN + 1
    return Peeked(fields, compact, model, stream == b"true", max_tokens, prompt_tokens, answers)


class _Member:
    """Stands for a member's name while members are counted: two of one name stay two."""


def _decode_long(body: Body) -> dict[str, Raw]:
    """
    The members of a long body. Errors: `BadInput` at the second one of a name, or at one too many.

    It stops there: a table of millions of names takes seconds to make, in which nobody else is served (reliability OV-20).
    """
    names: dict[str, None] = {}

    def hear(_type: type, name: str) -> _Member:
        if name in names or len(names) == MOST_MEMBERS:
            raise BadInput("body", _TWICE if name in names else f"has more than {MOST_MEMBERS} members")
        if len(name) > MOST_NAME:
            raise BadInput("body", f"has a member whose name is longer than {MOST_NAME} characters")
        names[name] = None
        return _Member()

    try:
        members = msgspec.json.decode(body, type=dict[_Member, Raw], dec_hook=hear)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, BadInput):
            raise error.__cause__ from None
        raise
    fields = dict(zip(names, members.values(), strict=True))
    _must_be_short(fields)
    return fields


def _must_be_short(fields: dict[str, Raw]) -> None:
    """Errors: `BadInput` for a member that is read further and too long for that."""
    for name in _READ:
        if memoryview(fields.get(name, _NOTHING)).nbytes > LONG_BYTES:
            raise BadInput(name, f"is longer than {LONG_BYTES} bytes")


def _unreadable(body: Body, error: Exception) -> BadInput:
    try:
        _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        if _is_half(body, str(error)):
            return BadInput("body", _HALVED)
        return BadInput("body", f"is not one JSON object: {error}")
    return BadInput("model", "is missing or no string; name the model to call")


def _is_half(body: Body, words: str) -> bool:
    """Whether what msgspec complains of is one half of a surrogate pair."""
    if _CUT_WORDS not in words:
        return any(said in words for said in _HALF_WORDS)
    tail = bytes(body[-4 * _ESCAPE :]).rstrip(b" \t\r\n")
    return tail.endswith(b"}") and _HALF.search(tail) is not None


def _smaller(known: int | None, key: str, raw: Raw, most: int = MOST_TOKENS) -> int | None:
    """The smaller of what is known and of a whole number; `null` is none. Errors: `BadInput` for anything else."""
    try:
        limit = _number(raw)
    except msgspec.DecodeError:
        raise BadInput(key, "is no whole number") from None
    if limit is None:
        return known
    if not 0 < limit <= most:
        raise BadInput(key, f"is not between 1 and {most}")
    return limit if known is None or limit < known else known


def _is_single(body: bytes, fields: dict[str, Raw]) -> bool:
    """
    Whether the object in `body` has no more members than `fields`.

    A second member of the same name makes the walk fail: the first has another value than the one kept, or members are
    left when the names are used up.
    """
    opened = _OPEN.match(body)
    if not fields or opened is None:
        return True
    at, sign = opened.end(), b","
    for value in fields.values():
        key = _KEY.match(body, at)
        raw = bytes(value)
        if sign != b"," or key is None or not body.startswith(raw, key.end()):
            return False
        after = _NEXT.match(body, key.end() + len(raw))
        if after is None:
            return False
        at, sign = after.end(), after[1]
    return sign == b"}"
