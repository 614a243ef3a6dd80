"""
How many prompts one request holds: `prompt` of `/v1/completions` may be a list of them, each with answers of its own.

A prompt is a text, or a list of tokens; so a list of numbers is one, and a list of texts or of lists is many.
"""

from typing import Final

import msgspec
from msgspec import Raw

MOST_READ_BYTES: Final = 64 * 1024  # of a list, item by item; of a longer one only quotes and brackets are counted
_list: Final = msgspec.json.Decoder(list[Raw]).decode
_TEXT: Final = b'"'
_LIST: Final = b"["


def prompts_in(prompt: Raw) -> int:
    """How many there are in it."""
    view = memoryview(prompt)
    if bytes(view[:1]) != _LIST:
        return 1
    if view.nbytes > MOST_READ_BYTES:
        return _counted(view)
    try:
        parts = _list(prompt)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return 1  # the target says what is wrong with it
    return len(parts) if parts and bytes(memoryview(parts[0])[:1]) in {_TEXT, _LIST} else 1


def _counted(view: memoryview) -> int:
    """As many as there are texts, or lists of tokens, told by their quotes and brackets; no escape hides one."""
    read = bytes(view)
    first = read[1 : 1 + MOST_READ_BYTES].lstrip(b" \t\r\n")[:1]
    if first == _LIST:
        return read.count(_LIST) - 1
    if first != _TEXT:
        return 1
    if b"\\" in read:
        read = read.replace(b"\\\\", b"").replace(b'\\"', b"")
    return read.count(_TEXT) // 2
