"""
Reading a journal from a position on, also while it is being written.

A position is a file and an offset: whatever stands before it has been seen. The newest file is read up to its first zero, for
what stands there may be on its way, and up to the last whole line before. In an older file a line without an end was torn by a
crash; it is counted and passed, as is one whose checksum does not fit, and what follows is read all the same.
"""

from pathlib import Path
from typing import Final, NamedTuple

from swarmgate.engine.disk import DISK
from swarmgate.ports import Disk
from swarmgate.stores.journal.frame import Damaged, to_row
from swarmgate.stores.journal.rows import Intent, Revision, Row
from swarmgate.stores.journal.segments import listed

_CHUNK_BYTES: Final = 1024 * 1024
_LAST_BYTES: Final = 256 * 1024
_NUMBERED: Final = (Intent, Revision)


class Position(NamedTuple):
    """Up to where a journal was read: a segment's number and an offset in it."""

    segment: int = 0
    offset: int = 0


class Batch(NamedTuple):
    """
    Rows in order, and where the next ones begin.

    `damaged` and `torn` lines could not be read, `unknown` rows are of a later version; `gone` = the segment that was to be
    read on was removed before it was read. `is_end` = there was no more at that moment.
    """

    rows: list[Row]
    position: Position
    damaged: int = 0
    torn: int = 0
    unknown: int = 0
    gone: bool = False
    is_end: bool = False


def read(folder: Path, position: Position, disk: Disk = DISK, *, is_over: bool = False) -> Batch:
    """
    The next rows, at most about a megabyte of them; `is_over` = nobody writes the newest file any more. Errors: OSError.

    A zero in a file that is over was not on its way: it is damage, and what stands behind it is read.
    """
    segments = listed(folder, disk)  # before the file is read: what is newer than its end proves that it is whole
    at = next((index for index, one in enumerate(segments) if one.number >= position.segment), None)
    if at is None:
        return Batch([], position, is_end=True)
    segment = segments[at]
    gone = position.segment not in {0, segment.number}
    offset = position.offset if segment.number == position.segment else 0
    data = disk.read(segment.path, offset, _CHUNK_BYTES)
    is_newest = at + 1 == len(segments)
    is_open = is_newest and not is_over
    written = data.partition(b"\0")[0] if is_open else data.rstrip(b"\0")
    whole = written.rfind(b"\n") + 1
    rows, damaged, unknown = _rows(written[:whole])
    if not is_open and (len(data) < _CHUNK_BYTES or not written):
        torn = int(whole < len(written))
        end = Position(segment.number, offset + len(data)) if is_newest else Position(segments[at + 1].number)
        return Batch(rows, end, damaged, torn, unknown, gone, is_end=is_newest)
    if not whole and len(written) == _CHUNK_BYTES:  # no line is so long
        return Batch(rows, Position(segment.number, offset + len(written)), damaged + 1, 0, unknown, gone)
    return Batch(
        rows, Position(segment.number, offset + whole), damaged, 0, unknown, gone, is_end=is_newest and not rows
    )


def newest_policy(folder: Path, disk: Disk = DISK) -> int:
    """The highest number of a policy that the last rows of a journal carry, 0 if there is none. Errors: OSError."""
    for segment in reversed(listed(folder, disk)):
        written = disk.read(segment.path).rstrip(b"\0")
        last, _, _ = _rows(written[-_LAST_BYTES:].partition(b"\n")[2] if len(written) > _LAST_BYTES else written)
        policies = [
            row.policy if isinstance(row, Revision) else row.revision for row in last if isinstance(row, _NUMBERED)
        ]
        if policies:
            return max(policies)
    return 0


def _rows(data: bytes) -> tuple[list[Row], int, int]:
    rows, damaged, unknown = [], 0, 0
    for line in data.split(b"\n")[:-1]:
        try:
            row = to_row(line)
        except Damaged:
            damaged += 1
            continue
        if row is None:
            unknown += 1
        else:
            rows.append(row)
    return rows, damaged, unknown
