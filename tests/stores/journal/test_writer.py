"""Disks that are full, break or lose the file: calls go on, nothing is torn, and what is missing is counted and told."""

import errno
import os

import pytest
from disk import Desk, Disk, everything
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmgate.stores.journal import rows
from swarmgate.stores.journal.segments import Retention, listed

SMALL = Retention(segment_bytes=2_000, segment_ms=10_000, total_bytes=6_000, age_ms=60_000)


def kinds(folder):
    return [type(row).__name__ for row in everything(folder)[0] if not isinstance(row, rows.Way)]


def run(desk, number):
    for each in range(number):
        call = desk.call(f"c{each}")
        desk.leaves(call)
        desk.answered(call)


@given(st.integers(600, 3_000), st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=8))
@settings(max_examples=40, deadline=None)
def test_however_often_the_disk_is_full_no_row_is_torn_or_lost_without_a_word(tmp_path_factory, size, turns):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("full")
        disk, desk = Disk(patch), Desk(folder, Retention(segment_bytes=size, pending_rows=6))
        for number, is_full in turns:
            disk.error = errno.ENOSPC if is_full else None
            run(desk, number)
            desk.loop.second()
        disk.error = None
        desk.loop.second()
        desk.journal.close(0)
        found, bad = everything(folder)
        assert bad == 0
        gaps = sum(row.rows for row in found if isinstance(row, rows.Gap))
        numbers = [row.seq for row in found]
        assert numbers == sorted(set(numbers))
        assert numbers[-1] - numbers[0] + 1 == len(found) + gaps
        calls = sum(number for number, _ in turns)
        assert sum(not isinstance(row, rows.Gap) for row in found) + gaps == 2 + 2 * calls + bool(calls)


def test_what_a_full_disk_does_not_take_is_counted_and_told(tmp_path, monkeypatch):
    disk, desk = Disk(monkeypatch), Desk(tmp_path, SMALL._replace(pending_rows=10))
    disk.error = errno.ENOSPC
    run(desk, 20)
    assert len(desk.said) == 1
    assert "No space left" in desk.said[0]
    assert disk.asked == 2  # a disk in trouble is asked once a second, not by every call
    before = len(everything(tmp_path)[0])
    assert before >= 5  # what there was room for
    desk.loop.second()
    disk.error = None
    desk.loop.second()
    found, bad = everything(tmp_path)
    assert bad == 0
    gap = found[-1]
    assert isinstance(gap, rows.Gap)
    assert gap.rows == 42 - before - 10
    assert gap.reason == "No space left on device"
    assert gap.seq - found[-2].seq - 1 == gap.rows
    assert "written again" in desk.said[-1]
    run(desk, 1)
    assert kinds(tmp_path)[-2:] == ["Intent", "Done"]


def test_a_row_that_no_segment_can_hold_is_counted(tmp_path):
    desk = Desk(tmp_path, Retention(segment_bytes=600))
    huge = desk.call("x" * 700)
    desk.leaves(huge)
    run(desk, 1)
    assert [row.call for row in everything(tmp_path)[0][2:]] == ["c0", "c0"]


def test_a_crash_leaves_zeros_that_are_no_rows(tmp_path):
    desk = Desk(tmp_path)
    run(desk, 3)
    assert listed(tmp_path)[0].path.stat().st_size == Retention().segment_bytes  # it was not closed
    Desk(tmp_path)
    found, bad = everything(tmp_path)
    assert (len(found), bad) == (9, 0)


def test_a_file_that_is_removed_while_in_use_is_missed(tmp_path, monkeypatch):
    desk = Desk(tmp_path / "journal")
    run(desk, 3)
    for segment in listed(desk.folder):
        segment.path.unlink()
    desk.folder.rmdir()
    desk.loop.second()
    assert "removed" in desk.said[0]
    desk.loop.second()
    run(desk, 1)
    found, _ = everything(desk.folder)
    assert isinstance(found[0], rows.Gap)
    assert found[0].rows == 8
    assert len(found) == 3


def test_a_sync_that_failed_is_never_believed_again(tmp_path, monkeypatch):
    disk, desk = Disk(monkeypatch), Desk(tmp_path)
    assert desk.journal.writer.sync()
    disk.sync_error = errno.EIO
    assert not desk.journal.writer.sync()
    disk.sync_error = None
    assert not desk.journal.writer.sync()
    assert [text for text in desk.said if "sync failed" in text] == desk.said
    run(desk, 1)
    assert kinds(tmp_path) == ["Boot", "Intent", "Done"]


def test_segments_end_by_size_and_age_and_the_past_is_bounded(tmp_path):
    desk = Desk(tmp_path, SMALL)
    for _ in range(30):
        run(desk, 4)
        desk.loop.second()
    segments = listed(tmp_path)
    assert 2 <= len(segments) <= 5
    assert sum(one.path.stat().st_size for one in segments) <= SMALL.total_bytes + 2 * SMALL.segment_bytes
    assert any("more than is kept" in text for text in desk.said)
    before = len(listed(tmp_path))
    for _ in range(11):
        desk.loop.second()
    run(desk, 1)
    desk.loop.second()
    assert len(listed(tmp_path)) <= before + 1
    old = listed(tmp_path)[0].path
    os.utime(old, (1, 1))
    for _ in range(12):
        run(desk, 1)
        desk.loop.second()
    assert not old.exists()


def test_nobody_else_may_read_it(tmp_path):
    desk = Desk(tmp_path / "journal")
    assert desk.folder.stat().st_mode & 0o777 == 0o700
    assert listed(desk.folder)[0].path.stat().st_mode & 0o777 == 0o600


def test_a_folder_that_cannot_be_written_is_an_error_at_once(tmp_path):
    (tmp_path / "journal").write_text("no folder")
    with pytest.raises(OSError, match="Not a directory"):
        Desk(tmp_path / "journal")


def test_numbers_go_on_over_restarts_even_if_the_clock_went_back(tmp_path):
    first = Desk(tmp_path)
    run(first, 3)
    first.journal.close(0)
    run(Desk(tmp_path, start_ms=first.loop.ms - 50_000_000), 1)
    found, _ = everything(tmp_path)
    numbers = [row.seq for row in found]
    assert numbers == sorted(set(numbers))
