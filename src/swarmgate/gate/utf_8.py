"""
Whether a JSON is in the one encoding that JSON has (RFC 8259 8.1).

Its values are passed on as they came, and msgspec looks at no byte inside of those that it passes over. Most bodies are ASCII,
which is told at 10 GB/s; others are read once more.
"""

from codecs import IncrementalDecoder, getincrementaldecoder
from typing import Final

from swarmgate.core.errors import BadInput

_SLICE: Final = 64 * 1024  # of what is read at once: as text it takes up to four times as much
_make: Final = getincrementaldecoder("utf-8")


def must_be_utf_8(data: bytes) -> None:
    """Errors: `BadInput` names the first byte that is none of UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise _none(error.start) from None


class Utf8:
    """The same for what comes in pieces; a character that the last one cuts is not looked for: no JSON ends with one."""

    __slots__ = ("_decoder", "_size")

    def __init__(self) -> None:
        self._decoder: IncrementalDecoder = _make()
        self._size = 0

    def add(self, data: bytes) -> None:
        """The next piece. Errors: `BadInput`."""
        decoder = self._decoder
        if not data.isascii() or decoder.getstate()[0]:
            for at in range(0, len(data), _SLICE):
                begun = len(decoder.getstate()[0])
                try:
                    decoder.decode(data[at : at + _SLICE])
                except UnicodeDecodeError as error:
                    raise _none(self._size + at - begun + error.start) from None
        self._size += len(data)


def _none(at: int) -> BadInput:
    return BadInput("body", f"is not UTF-8 at byte {at}; JSON is sent in no other encoding (RFC 8259)")
