"""
How a row becomes a line, and a line a row: `checksum array`, the CRC-32 of the array's bytes in hex digits.

JSON has no line breaks inside, so a line that was torn or damaged ends at its break and costs no other one.
"""

from typing import Final
from zlib import crc32

import msgspec

from swarmgate.stores.journal.rows import Row

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Row).decode


class Damaged(ValueError):
    """A line that is not what was written."""


def to_line(row: Row | tuple[object, ...]) -> bytes:
    """The line of a row, its break included; a tuple is a row's name and fields in their order."""
    body = _encode(row)
    return b"%x %b\n" % (crc32(body), body)  # a fixed width costs as much as the sum


def to_row(line: bytes) -> Row | None:
    """
    The row of a line without its break; None if its kind or form is of a later version.

    Errors: `Damaged`.
    """
    said, _, body = line.partition(b" ")
    checksum = crc32(body)
    if said not in {b"%x" % checksum, b"%08x" % checksum}:  # journals of earlier versions have eight digits
        raise Damaged("a line that is torn or damaged")
    try:
        return _decode(body)
    except msgspec.DecodeError:
        return None  # the sum fits, so it stands as it was written: by a gate that is newer than this reader
