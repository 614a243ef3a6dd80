"""
The files of a journal: `journal-<number>.log` in one folder, written from front to end and never changed afterwards.

Only the data process makes and removes them. A number is the microsecond of the file's beginning, so that names sort by
age and no row's sequence number ever comes twice.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = "journal"
_NAME = re.compile(r"journal-([0-9]{16})\.log")


class Segment(NamedTuple):
    """One file and its number."""

    path: Path
    number: int


class Retention(NamedTuple):
    """When a segment ends, and how much of the past is kept; the newest is always kept."""

    segment_bytes: int = 64 * 1024 * 1024
    segment_ms: int = 3_600_000
    total_bytes: int = 4 * 1024 * 1024 * 1024
    age_ms: int = 7 * 86_400_000


def listed(folder: Path) -> list[Segment]:
    """The segments of a folder, oldest first; none if there is no folder. Errors: OSError."""
    try:
        names = [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return []
    found = [(name, match) for name in names if (match := _NAME.fullmatch(name))]
    return sorted((Segment(folder / name, int(match[1])) for name, match in found), key=lambda one: one.number)


def next_number(folder: Path, now_ms: int) -> int:
    """
    Beyond every row and every segment of this folder, those that a disk lost with its cache included. Errors: OSError.

    Rows come more slowly than microseconds; should the clock have been set back, each has more than one byte.
    """
    segments = listed(folder)
    after_last = segments[-1].number + segments[-1].path.stat().st_size + 1 if segments else 0
    return max(after_last, now_ms * 1_000)


def create(folder: Path, number: int) -> int:
    """A new segment, open to append to, for nobody else's eyes. Errors: OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    return os.open(folder / f"journal-{number:016d}.log", flags, 0o600)


def prune(folder: Path, keep: Retention, now_ms: int, say: Callable[[str], None]) -> None:
    """Remove what is too old or too much, oldest first. Errors: OSError."""
    segments = [(segment, segment.path.stat()) for segment in listed(folder)]
    total = sum(stat.st_size for _, stat in segments)
    for segment, stat in segments[:-1]:
        too_old = now_ms - int(stat.st_mtime * 1_000) > keep.age_ms
        if total <= keep.total_bytes and not too_old:
            return
        segment.path.unlink(missing_ok=True)
        total -= stat.st_size
        say(f"journal: {segment.path.name} is removed: {'older' if too_old else 'more'} than is kept")
