"""The control process that cannot be started, or will not run: told, and tried again once it has worked."""

import asyncio
import sys

import pytest

from eventually import eventually
from swarmgate.control import child, data
from swarmgate.control.child import Child

FINAL = frozenset({2, 3})


def play(act, monkeypatch):
    """`act` with a child that does what its newest script says."""

    async def whole():
        said = []
        one = Child([], FINAL, said.append)
        monkeypatch.setattr(child, "delay_ms", lambda _name, _deaths: 1)
        try:
            await act(one, said)
        finally:
            await one.finish(0)

    asyncio.run(whole())


def told(one, script):
    """From its next start on it is this script."""
    one._command = (sys.executable, "-c", script)


def test_one_that_cannot_be_started_again_is_tried_until_it_can(monkeypatch):
    async def act(one, said):
        told(one, "pass")
        await one.start()
        one._command = ("/nowhere/python",)  # as after an upgrade, or with no process or descriptor left
        await eventually(lambda: any("cannot be started (No such file or directory)" in text for text in said))
        told(one, "import time; time.sleep(60)")
        await eventually(lambda: one.pid)

    play(act, monkeypatch)


@pytest.mark.parametrize("code", sorted(FINAL))
def test_what_it_refuses_at_first_is_final_and_afterwards_only_told(monkeypatch, code):
    async def first(one, said):
        told(one, f"raise SystemExit({code})")
        await one.start()
        await one.ready.wait()
        assert (one.refused, said) == (code, [])

    async def later(one, said):
        told(one, f"raise SystemExit({code})")
        one.ready.set()  # it has worked once
        await one.start()
        await eventually(lambda: len(said) > 2)
        assert f"ended ({code}); calls go on" in said[0]
        assert one.refused is None

    play(first, monkeypatch)
    play(later, monkeypatch)


def test_a_gate_whose_control_process_cannot_be_started_says_so(tmp_path, monkeypatch):
    async def fail(_self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Child, "start", fail)
    one = data._Data.__new__(data._Data)
    one.setting = data.Setting(data.Listen("127.0.0.1", 0), tmp_path, None, print, print, print)
    with pytest.raises(data.Stop, match="cannot be started: Permission denied") as caught:
        asyncio.run(one._start_control(data.Listen("127.0.0.1", 0)))
    assert caught.value.code == data.REFUSED
