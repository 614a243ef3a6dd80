"""
Lines to disk: one `os.write` per flush, rotation, and what happens when the disk does not take them.

A written line survives the death of its process. A disk that is full or broken stops no call: lines wait in a bounded
buffer, those beyond it are counted, and once the disk takes lines again the journal says what is missing (reliability LG-03,
LG-04). A sync that failed is never repeated and believed: `durable` stays False while the process lives (LG-02).
"""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from swarmgate.stores.journal.segments import Retention, create, next_number, prune

MOST_PENDING: Final = 4_096
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})

Say = Callable[[str], None]


class Missed(NamedTuple):
    """Rows that could not be recorded, since when, and why."""

    rows: int
    since_ms: int
    reason: str


class Writer:
    """
    The end of one journal; `sequence` is the number of the newest row, `trouble` why nothing is written now.

    Errors: OSError if no segment can be made.
    """

    __slots__ = (
        "_fd",
        "_folder",
        "_keep",
        "_lines",
        "_opened_at",
        "_opened_ms",
        "_say",
        "_since_ms",
        "_size",
        "_torn",
        "_unrecorded",
        "durable",
        "sequence",
        "trouble",
    )

    def __init__(self, folder: Path, now_ms: int, keep: Retention, say: Say) -> None:
        self._folder = folder
        self._keep = keep
        self._say = say
        self._lines: list[bytes] = []
        self._torn = 0  # bytes of the first line that are on file already
        self._unrecorded = 0
        self._since_ms = now_ms
        self.sequence = next_number(folder, now_ms)
        self.durable = True
        self.trouble = ""
        self._open(now_ms)

    def append(self, line: bytes) -> None:
        """One more line, of the row with the next number."""
        self.sequence += 1
        if self.trouble and len(self._lines) >= MOST_PENDING:
            self._unrecorded += 1
        else:
            self._lines.append(line)

    def flush(self) -> None:
        """What was appended is on file, unless there is trouble."""
        if self._lines and not self.trouble:
            self._write()

    def sync(self) -> bool:
        """Whether what was appended survives a loss of power; blocks as long as the disk does."""
        self.flush()
        if self.durable and not self.trouble:
            try:
                os.fdatasync(self._fd)
            except OSError as error:
                self.durable = False
                self._say(f"journal: a sync failed ({error.strerror}): what must survive a loss of power is refused")
        return self.durable and not self.trouble

    def tick(self, now_ms: int) -> Missed | None:
        """Mend what is broken, begin a new segment where one is due; what was missed, once trouble has ended."""
        if not self.trouble:
            self._since_ms = now_ms
            self._look_after_segment(now_ms)
            return None
        try:
            if self._fd < 0:
                self._open(now_ms)
        except OSError as error:
            self.trouble = str(error.strerror)
            return None
        if self._lines and not self._write():
            return None
        missed = Missed(self._unrecorded, self._since_ms, self.trouble)
        self._unrecorded, self.trouble = 0, ""
        self._say("journal: it is written again")
        return missed

    def close(self) -> None:
        """The last lines, and the end of the file."""
        self.flush()
        self._leave()

    def _write(self) -> bool:
        data = self._lines[0] if len(self._lines) == 1 else b"".join(self._lines)
        if self._torn:
            data = data[self._torn :]
        try:
            written = os.write(self._fd, data)
        except OSError as error:
            self._fail(error)
            return False
        self._size += written
        if written == len(data):
            self._lines.clear()
            self._torn = 0
            return True
        self._keep_rest(written)
        self._fail(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))  # what a short write to a file means
        return False

    def _open(self, now_ms: int) -> None:
        self._fd = create(self._folder, next_number(self._folder, now_ms))
        self._size = self._torn = 0
        self._opened_ms = now_ms
        self._opened_at = self.sequence
        prune(self._folder, self._keep, now_ms, self._say)

    def _leave(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _look_after_segment(self, now_ms: int) -> None:
        try:
            if os.fstat(self._fd).st_nlink == 0:
                self._unrecorded += self.sequence - self._opened_at
                raise FileNotFoundError(errno.ENOENT, "its file was removed")
            is_old = now_ms - self._opened_ms >= self._keep.segment_ms
            if self._size >= self._keep.segment_bytes or (is_old and self._size):
                self.flush()
                self._leave()
                self._open(now_ms)
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        """Nothing is written until a tick can; a segment that failed but for room is not written again."""
        is_news = not self.trouble
        self.trouble = error.strerror or str(error)
        if error.errno not in _FULL:
            self._leave()
        if is_news:
            self._say(f"journal: {self.trouble}; calls go on and are not recorded beyond {MOST_PENDING} rows")

    def _keep_rest(self, written: int) -> None:
        on_file = self._torn + written
        lines = self._lines
        done = 0
        while on_file >= len(lines[done]):
            on_file -= len(lines[done])
            done += 1
        del lines[:done]
        self._torn = on_file
