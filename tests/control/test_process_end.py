"""How the control process ends: nothing is closed under a thread that still works."""

import asyncio
import threading

import pytest

from swarmgate.control import process


class Files:
    def __init__(self, log):
        self.log = log

    def close(self):
        self.log.append("closed")


def test_files_are_closed_after_the_last_thread_has_left_them(monkeypatch):
    log, go_on = [], threading.Event()

    class Broken:
        def __init__(self, _options, _files):
            pass

        async def run(self, _door, _secret):
            def work():
                go_on.wait(10)
                log.append("worked")

            loop = asyncio.get_running_loop()
            loop.run_in_executor(None, work)
            loop.call_later(0.05, go_on.set)
            raise RuntimeError("a bug elsewhere")

    monkeypatch.setattr(process, "Control", Broken)
    with pytest.raises(RuntimeError, match="elsewhere"):
        asyncio.run(process._run(None, Files(log), None, ""))
    assert log == ["worked", "closed"]
