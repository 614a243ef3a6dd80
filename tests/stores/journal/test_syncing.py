"""A slow disk holds nobody up, and one that fails is not believed again (reliability LG-02, LG-05)."""

import asyncio
import errno
import os
import threading

from disk import Desk

from eventually import eventually
from swarmgate.core.effect import Effect
from swarmgate.stores.journal.syncing import Syncing


class SlowDisk:
    """Syncs end when the test lets them; `begun` were begun, `error` is what they fail with."""

    def __init__(self, monkeypatch):
        self.begun = 0
        self.error = None
        self.may_end = threading.Semaphore(0)
        self._fsync = os.fsync
        monkeypatch.setattr(os, "fsync", self.fsync)

    def fsync(self, descriptor):
        if threading.current_thread() is threading.main_thread():
            return
        self.begun += 1
        assert self.may_end.acquire(timeout=10)
        if self.error is not None:
            raise OSError(self.error, os.strerror(self.error))
        self._fsync(descriptor)


def play(tmp_path, monkeypatch, act):
    async def whole():
        desk, disk = Desk(tmp_path), SlowDisk(monkeypatch)
        desk.journal.sync = Syncing(asyncio.get_running_loop(), desk.journal.writer, 0.0)
        try:
            await act(desk, disk)
        finally:
            disk.may_end.release(99)
            await asyncio.get_running_loop().shutdown_default_executor()

    asyncio.run(whole())


def writes(desk, name):
    desk.leaves(desk.call(name, effect=Effect.WRITE, keyed=True))


def test_lg_05_who_asks_does_not_wait_and_many_are_one_sync(tmp_path, monkeypatch):
    async def act(desk, disk):
        for number in range(50):  # each returns, though no sync does
            writes(desk, f"w{number}")
        await eventually(lambda: disk.begun == 1)
        writes(desk, "meanwhile")
        disk.may_end.release()
        await eventually(lambda: disk.begun >= 2)  # one for all that came meanwhile ...
        disk.may_end.release(2)  # ... and the name of the file in its folder
        await eventually(lambda: not desk.journal.sync._is_busy)
        assert disk.begun <= 3
        assert desk.journal.writer.is_sound

    play(tmp_path, monkeypatch, act)


def test_only_what_must_survive_a_loss_of_power_is_synced(tmp_path, monkeypatch):
    async def act(desk, disk):
        desk.leaves(desk.call("read"))
        desk.leaves(desk.call("write", effect=Effect.WRITE))
        assert not desk.journal.sync._is_busy
        writes(desk, "once")
        assert desk.journal.sync._is_busy

    play(tmp_path, monkeypatch, act)


def test_lg_02_a_sync_that_failed_in_its_thread_is_told_once_and_never_repeated(tmp_path, monkeypatch):
    async def act(desk, disk):
        disk.error = errno.EIO
        disk.may_end.release(9)
        writes(desk, "w")
        await eventually(lambda: not desk.journal.writer.durable)
        disk.error = None
        writes(desk, "w2")
        await eventually(lambda: not desk.journal.sync._is_busy)
        writes(desk, "w3")
        assert not desk.journal.writer.is_sound
        assert disk.begun == 1
        assert len(desk.said) == 1
        assert "a sync failed" in desk.said[0]

    play(tmp_path, monkeypatch, act)


def test_the_file_may_be_closed_while_it_is_synced(tmp_path, monkeypatch):
    async def act(desk, disk):
        writes(desk, "w")
        await eventually(lambda: disk.begun == 1)
        desk.journal.close(0)
        disk.may_end.release(9)
        await eventually(lambda: not desk.journal.sync._is_busy)
        assert desk.said == []

    play(tmp_path, monkeypatch, act)
