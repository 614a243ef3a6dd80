"""The disk of this machine: what it does beside a simulated one stands in tests/lab/test_sim_disk.py."""

import errno
import os

import pytest

from swarmgate.engine import disk
from swarmgate.engine.disk import DISK


def failing(number):
    def sync(_descriptor):
        raise OSError(number, os.strerror(number))

    return sync


def test_a_file_system_that_cannot_sync_names_is_taken_as_it_is_and_one_that_fails_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", failing(errno.EINVAL))
    DISK.sync(tmp_path)
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    with pytest.raises(OSError, match="Input/output"):
        DISK.sync(tmp_path)


def test_what_cannot_be_synced_leaves_the_old_file(tmp_path, monkeypatch):
    DISK.write(tmp_path / "a", b"old")
    monkeypatch.setattr(os, "fsync", failing(errno.ENOSPC))
    with pytest.raises(OSError, match="No space"):
        DISK.write(tmp_path / "a", b"new")
    assert DISK.read(tmp_path / "a") == b"old"


def test_files_are_for_their_owner_alone(tmp_path):
    DISK.make(tmp_path / "s")
    DISK.write(tmp_path / "s" / "a", b"")
    DISK.reserve(tmp_path / "s" / "b", 10).close()
    modes = [path.stat().st_mode & 0o077 for path in (tmp_path / "s", *(tmp_path / "s").iterdir())]
    assert modes == [0, 0, 0]


@pytest.mark.interpreted  # replaces a constant
def test_a_start_of_the_machine_has_one_name_for_all_or_for_nobody(tmp_path, monkeypatch):
    assert DISK.boot_id() == DISK.boot_id() != ""
    monkeypatch.setattr(disk, "BOOT_ID", tmp_path / "none")
    assert str(os.getpid()) in DISK.boot_id()


@pytest.mark.parametrize(
    ("before", "after"), [(0o777, 0o755), (0o775, 0o755), (0o755, 0o755), (0o700, 0o700), (0o1777, 0o1755)]
)
def test_sc_04_in_a_folder_that_was_there_nobody_else_may_write_any_more(tmp_path, before, after):
    folder = tmp_path / "state"
    folder.mkdir()
    folder.chmod(before)
    DISK.make(folder)
    assert folder.stat().st_mode & 0o7777 == after
