"""Segments begin, end and are removed while the gate may die at any call of the system (reliability LG-15)."""

import errno

from disk import Desk, everything

from swarmgate.engine.disk import DISK
from swarmgate.stores.journal import rows
from swarmgate.stores.journal.segments import Retention, listed

KEEP = Retention(segment_bytes=1_000, segment_ms=10_000, total_bytes=3_000, age_ms=60_000)
CALLS = 14  # some six segments


class Killed(BaseException):
    """The process is gone: nothing of it runs afterwards."""


class MortalDisk:
    """The disk, which the process asks `left` more times; from `is_full` on it has no room for another file."""

    def __init__(self, left):
        self._left = left
        self.is_full = False

    def _dies(self):
        self._left -= 1
        if self._left < 0:
            raise Killed

    def __getattr__(self, name):
        self._dies()
        return getattr(DISK, name)

    def reserve(self, path, size):
        self._dies()
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return MortalFile(DISK.reserve(path, size), self._dies)


class MortalFile:
    def __init__(self, file, dies):
        self._file = file
        self._dies = dies
        self.write = file.write

    def __getattr__(self, name):
        self._dies()
        return getattr(self._file, name)


def lives(folder, disk, start_ms):
    """A gate of this disk, until it is killed or done: the calls it wrote down."""
    written = []
    try:
        desk = Desk(folder, KEEP, start_ms, disk)
        for number in range(CALLS):
            call = desk.call(f"{start_ms}-{number}")
            desk.leaves(call)
            desk.answered(call)
            written.append(call.id)
            if number % 4 == 3:
                desk.loop.second()
    except Killed:
        pass
    return written


def room(folder):
    return sum(one.path.stat().st_size for one in listed(folder))


def told(folder, wanted):
    """The calls that stand there whole, in order; nothing is torn, and what is missing is the oldest."""
    found, bad = everything(folder)
    assert bad == 0
    ended = [row.call for row in found if isinstance(row, rows.Done)]
    assert ended == wanted[len(wanted) - len(ended) :]
    return ended


def test_killed_at_any_call_of_the_system_the_journal_stays_whole_and_bounded(tmp_path):
    ends = set()
    for left in range(90):
        folder = tmp_path / str(left)
        folder.mkdir()
        written = lives(folder, MortalDisk(left), 1_600_000_000_000)
        ends.add(len(written))
        told(folder, written)
        assert room(folder) <= KEEP.total_bytes
        written += lives(folder, MortalDisk(10_000), 1_600_000_900_000)
        assert told(folder, written)
        assert room(folder) <= KEEP.total_bytes
    assert len(ends) > CALLS // 2  # it died here and there


def test_a_gate_that_dies_at_every_start_fills_no_disk(tmp_path):
    for start in range(120):
        lives(tmp_path, MortalDisk(start % 40), 1_600_000_000_000 + start * 1_000)
        assert room(tmp_path) <= KEEP.total_bytes
    assert everything(tmp_path)[1] == 0


def test_killed_on_a_full_disk_what_had_room_stands(tmp_path):
    disk = MortalDisk(10_000)
    desk = Desk(tmp_path, KEEP, 1_600_000_000_000, disk)
    disk.is_full = True
    for number in range(CALLS):
        call = desk.call(f"c{number}")
        desk.leaves(call)
        desk.answered(call)
    assert desk.journal.writer.trouble == "No space left on device"
    found, bad = everything(tmp_path)  # killed here
    assert bad == 0
    assert [row.seq for row in found] == list(range(found[0].seq, found[0].seq + len(found)))
    assert room(tmp_path) <= KEEP.segment_bytes
    again = lives(tmp_path, MortalDisk(10_000), 1_600_000_900_000)
    assert len(again) == CALLS
    assert everything(tmp_path)[1] == 0
