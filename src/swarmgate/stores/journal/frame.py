"""
How a row becomes a line, and a line a row: `checksum array`, the CRC-32 of the array's bytes in eight hex digits.

JSON has no line breaks inside, so a line that was torn or damaged ends at its break and costs no other one.
"""

from typing import Final
from zlib import crc32

import msgspec

from swarmgate.stores.journal.rows import Row

_PREFIX: Final = 9  # eight digits and a space

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Row).decode


class Damaged(ValueError):
    """A line that is not what was written."""


def to_line(row: Row) -> bytes:
    """The line of a row, its break included."""
    body = _encode(row)
    return b"%08x %b\n" % (crc32(body), body)


def to_row(line: bytes) -> Row | None:
    """
    The row of a line without its break; None if its kind or form is of a later version.

    Errors: `Damaged`.
    """
    body = line[_PREFIX:]
    if line[:_PREFIX] != b"%08x " % crc32(body):
        raise Damaged("a line that is torn or damaged")
    try:
        return _decode(body)
    except msgspec.DecodeError:
        return None  # the sum fits, so it stands as it was written: by a gate that is newer than this reader
