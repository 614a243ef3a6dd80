"""
The files of a journal: `journal-<number>.log` in one folder, written from front to end and never changed afterwards.

Only the data process makes and removes them. A number is the microsecond of the file's beginning, so that names sort by age
and no row's sequence number ever comes twice. A file gets its whole room at its beginning, so that a disk that is full says so
there and not in the middle of a row; what is not written yet is zeros, which no line has. A file that was closed in order ends
with its last line.
"""

import mmap
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = "journal"
_NAME = re.compile(r"journal-([0-9]{16})\.log")


class Listed(NamedTuple):
    """One file and its number."""

    path: Path
    number: int


class Retention(NamedTuple):
    """When a segment ends, and how much of the past is kept; the newest is always kept."""

    segment_bytes: int = 16 * 1024 * 1024
    segment_ms: int = 3_600_000
    total_bytes: int = 4 * 1024 * 1024 * 1024
    age_ms: int = 7 * 86_400_000


def listed(folder: Path) -> list[Listed]:
    """The segments of a folder, oldest first; none if there is no folder. Errors: OSError."""
    try:
        names = [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return []
    found = [(name, match) for name in names if (match := _NAME.fullmatch(name))]
    return sorted((Listed(folder / name, int(match[1])) for name, match in found), key=lambda one: one.number)


def next_number(folder: Path, now_ms: int) -> int:
    """
    Beyond every row and every segment of this folder, those that a disk lost with its cache included. Errors: OSError.

    Rows come more slowly than microseconds; should the clock have been set back, each has more than one byte.
    """
    segments = listed(folder)
    after_last = segments[-1].number + segments[-1].path.stat().st_size + 1 if segments else 0
    return max(after_last, now_ms * 1_000)


class Segment:
    """
    The file that is being written: what goes into `room` is on file at once, whoever dies then.

    Errors: OSError where the disk has no room for it.
    """

    __slots__ = ("_fd", "opened_ms", "room")

    def __init__(self, folder: Path, now_ms: int, size: int) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"journal-{next_number(folder, now_ms):016d}.log"
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._fd, 0, size)
            else:  # macOS: the room is promised by nobody
                os.ftruncate(self._fd, size)
            self.room = mmap.mmap(self._fd, size)
        except OSError:
            os.close(self._fd)
            path.unlink(missing_ok=True)
            raise
        self.opened_ms = now_ms

    def is_there(self) -> bool:
        """Whether its file still has a name. Errors: OSError."""
        return os.fstat(self._fd).st_nlink > 0

    def sync(self) -> None:
        """Wait until the disk itself has it. Errors: OSError."""
        os.fsync(self._fd)

    def close(self) -> None:
        """It ends after what was written."""
        written = self.room.tell()
        self.room.close()
        try:
            os.ftruncate(self._fd, written)
        finally:
            os.close(self._fd)


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
