"""
Rows to disk: each is on file when `append` returns, without a call of the system; and what happens when there is no room.

A row is copied into the memory of its file (0.3 us; a write costs 1.2), which the system keeps when this process dies. A disk
that is full or broken stops no call: rows go on into the room that is reserved, then wait in a bounded buffer; those beyond it
are counted, and once there is room again the journal says what is missing (reliability LG-03, LG-04). A sync that failed is
never repeated and believed: `durable` stays False while the process lives (LG-02).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from swarmgate.engine.disk import DISK
from swarmgate.ports import Disk, Reserved
from swarmgate.stores.journal.frame import to_line
from swarmgate.stores.journal.rows import Row
from swarmgate.stores.journal.segments import Retention, begin, next_number, prune

_USUAL: Final = Retention()

Say = Callable[[str], None]


def _nowhere(_line: bytes) -> None:
    """What a line is put into while there is no segment. Errors: ValueError, as of a segment that is full."""
    raise ValueError("there is no segment")


class Missed(NamedTuple):
    """Rows that could not be recorded, since when, and why."""

    rows: int
    since_ms: int
    reason: str


class Writer:
    """
    The end of the journal in `folder`; `sequence` is the number of the newest row, `trouble` why nothing is written now.

    Errors: OSError if no segment can be made.
    """

    __slots__ = (
        "_disk",
        "_first",
        "_folder",
        "_keep",
        "_now_ms",
        "_opened_ms",
        "_pending",
        "_put",
        "_say",
        "_segment",
        "_unrecorded",
        "boot_id",
        "durable",
        "sequence",
        "trouble",
    )

    def __init__(self, folder: Path, now_ms: int, say: Say, keep: Retention = _USUAL, disk: Disk = DISK) -> None:
        self._folder = folder
        self._disk = disk
        self._keep = keep
        self._say = say
        self._pending: list[bytes] = []
        self._unrecorded = 0
        self._now_ms = now_ms  # of the last tick without trouble
        self.durable = True
        self.trouble = ""
        self.boot_id = disk.boot_id()
        self.sequence = next_number(folder, now_ms, disk)
        self._segment: Reserved | None = None
        self._put: Callable[[bytes], object] = _nowhere
        self._first = self._opened_ms = 0
        self._open(now_ms)

    def append(self, row: Row) -> None:
        """One more row, which has the number after the last; on file when this returns, unless there is trouble."""
        self.sequence += 1
        self.write(row)

    def write(self, row: Row | tuple[object, ...]) -> None:
        """A row, or its name and fields, whose number was taken from `sequence`; as `append`."""
        line = to_line(row)
        try:
            self._put(line)
        except ValueError:  # there is no room for it
            self._make_room(line)

    def sync(self) -> bool:
        """Whether what was appended survives a loss of power; blocks as long as the disk does."""
        if self.durable and self._segment is not None:
            try:
                self._segment.sync()
            except OSError as error:
                self.mistrust(error)
        return self.is_sound

    def apart(self) -> Callable[[], None] | None:
        """What a thread calls to sync; None if there is nothing to be synced. Its OSError is for `mistrust`."""
        if self._segment is None or not self.durable:
            return None
        try:
            return self._segment.apart()
        except OSError as error:
            self.mistrust(error)
            return None

    def mistrust(self, error: OSError) -> None:
        """A sync failed: what was written since the last one may be lost, and the next one would not say so."""
        self.durable = False
        self._say(f"journal: a sync failed ({error.strerror}): what must survive a loss of power is refused")

    @property
    def is_sound(self) -> bool:
        """Whether rows are written now, and have been synced whenever that was asked for."""
        return self.durable and self._segment is not None

    def tick(self, now_ms: int) -> Missed | None:
        """Once a second: begin a segment where one is due; what was missed, once trouble has ended."""
        if self._segment is None:
            return self._mend(now_ms)
        self._now_ms = now_ms
        try:
            if not self._segment.is_there():
                self._unrecorded += self.sequence - self._first
                self._fail("its file was removed")
            elif self._segment.written() and now_ms - self._opened_ms >= self._keep.segment_ms:
                self._open(now_ms)
        except OSError as error:
            self._fail(error.strerror or str(error))
        return None

    def close(self) -> None:
        """The end of the file; one that cannot be cut to what was written keeps its empty rest, which readers pass over."""
        segment, self._segment, self._put = self._segment, None, _nowhere
        if segment is not None:
            try:
                segment.close()
            except OSError as error:
                self._say(f"journal: a file keeps its empty rest ({error.strerror})")

    def _make_room(self, line: bytes) -> None:
        """The segment is full, or there is none."""
        if self._segment is not None and len(line) <= self._keep.segment_bytes:
            try:
                self._open(self._now_ms)
            except OSError as error:
                self._fail(error.strerror or str(error))
            else:
                self._put(line)
                return
        if len(self._pending) < self._keep.pending_rows:
            self._pending.append(line)
        else:
            self._unrecorded += 1

    def _mend(self, now_ms: int) -> Missed | None:
        try:
            self._open(now_ms)
        except OSError as error:
            self.trouble = error.strerror or str(error)
            return None
        missed = Missed(self._unrecorded, self._now_ms, self.trouble)
        pending, self._pending = self._pending, []
        self._unrecorded, self.trouble = 0, ""
        for line in pending:
            try:
                self._put(line)
            except ValueError:
                self._make_room(line)
        self._say("journal: it is written again")
        return missed

    def _open(self, now_ms: int) -> None:
        """Go on in a new segment; the old one stays as it is if there is no room for another."""
        prune(self._folder, self._keep, now_ms, self._say, self._disk)
        fresh = begin(self._folder, now_ms, self._keep.segment_bytes, self._disk)
        self.close()
        self._segment, self._put, self._opened_ms = fresh, fresh.write, now_ms
        self._first = self.sequence

    def _fail(self, reason: str) -> None:
        """Nothing is written until a tick can."""
        self.trouble = reason
        self._say(f"journal: {reason}; calls go on and are not recorded beyond {self._keep.pending_rows} rows")
        self.close()
