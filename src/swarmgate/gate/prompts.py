"""
How many prompts one request holds: `prompt` of `/v1/completions` may be a list of them, each with answers of its own.

A prompt is a text, or a list of tokens; so a list of numbers is one, and a list of texts or of lists is many.
"""

from typing import Final

import msgspec
from msgspec import Raw

MOST_READ_BYTES: Final = 64 * 1024  # of a list; of a longer one a part as long says how dense it is
_list: Final = msgspec.json.Decoder(list[Raw]).decode
_TEXT: Final = b'"'
_LIST: Final = b"["


def prompts_in(prompt: Raw) -> int:
    """How many there are in it; of a long list of texts it is an estimate."""
    view = memoryview(prompt)
    if bytes(view[:1]) != _LIST:
        return 1
    if view.nbytes > MOST_READ_BYTES:
        return _dense(view)
    try:
        parts = _list(prompt)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return 1  # the target says what is wrong with it
    return len(parts) if parts and bytes(memoryview(parts[0])[:1]) in {_TEXT, _LIST} else 1


def _dense(view: memoryview) -> int:
    """As many as there would be if all of it were like its beginning, texts of several sizes and lists alike."""
    read = bytes(view[:MOST_READ_BYTES])
    first = read[1:].lstrip(b" \t\r\n")[:1]
    if first == _TEXT:
        found = (read.count(_TEXT) - read.count(b'\\"')) // 2
    else:
        found = read.count(_LIST) - 1 if first == _LIST else 1
    return 1 if found < 1 or first not in {_TEXT, _LIST} else -(-found * view.nbytes // MOST_READ_BYTES)
