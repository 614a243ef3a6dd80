"""
The files of a journal: `journal-<number>.log` in one folder, written from front to end and never changed afterwards.

Only the data process makes and removes them. A number is the microsecond of the file's beginning, so that names sort by age
and no row's sequence number ever comes twice. A file gets its whole room at its beginning, so that a disk that is full says so
there and not in the middle of a row; what is not written yet is zeros, which no line has. A file that was closed in order ends
with its last line.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from swarmgate.engine.disk import DISK
from swarmgate.ports import Disk, Reserved

FOLDER: Final = "journal"
_NAME: Final = re.compile(r"journal-([0-9]{16})\.log")


class Listed(NamedTuple):
    """One file and its number."""

    path: Path
    number: int


class Retention(NamedTuple):
    """
    When a segment ends, and how much of the past is kept; the newest is always kept.

    `pending_rows` wait in memory while no segment can be made.
    """

    segment_bytes: int = 16 * 1024 * 1024
    segment_ms: int = 3_600_000
    total_bytes: int = 4 * 1024 * 1024 * 1024
    age_ms: int = 7 * 86_400_000
    pending_rows: int = 4_096


def listed(folder: Path, disk: Disk = DISK) -> list[Listed]:
    """The segments of a folder, oldest first; none if there is no folder. Errors: OSError."""
    found = [(name, match) for name in disk.names(folder) if (match := _NAME.fullmatch(name))]
    return sorted((Listed(folder / name, int(match[1])) for name, match in found), key=lambda one: one.number)


def newest(folder: Path, disk: Disk = DISK) -> int:
    """The number of the newest segment, 0 if there is none. Errors: OSError."""
    segments = listed(folder, disk)
    return segments[-1].number if segments else 0


def next_number(folder: Path, now_ms: int, disk: Disk = DISK) -> int:
    """
    Beyond every row and every segment of this folder, those that a disk lost with its cache included. Errors: OSError.

    Rows come more slowly than microseconds; should the clock have been set back, each has more than one byte.
    """
    segments = listed(folder, disk)
    after_last = segments[-1].number + disk.facts(segments[-1].path).size + 1 if segments else 0
    return max(after_last, now_ms * 1_000)


def begin(folder: Path, now_ms: int, size: int, disk: Disk = DISK) -> Reserved:
    """The file that is written from now on. Errors: OSError where the disk has no room for it."""
    disk.make(folder)
    return disk.reserve(folder / f"journal-{next_number(folder, now_ms, disk):016d}.log", size)


def prune(folder: Path, keep: Retention, now_ms: int, say: Callable[[str], None], disk: Disk = DISK) -> None:
    """
    Remove what is too old, or too much beside a segment that begins now, oldest first. Errors: OSError.

    Before it begins, not after: a gate that dies at every start would leave one more each time.
    """
    segments = [(segment, disk.facts(segment.path)) for segment in listed(folder, disk)]
    total = keep.segment_bytes + sum(facts.size for _, facts in segments)
    for segment, facts in segments[:-1]:
        too_old = now_ms - facts.changed_ms > keep.age_ms
        if total <= keep.total_bytes and not too_old:
            return
        disk.remove(segment.path)
        total -= facts.size
        say(f"journal: {segment.path.name} is removed: {'older' if too_old else 'more'} than is kept")
