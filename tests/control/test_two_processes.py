"""A gate as an operator runs it: what dies alone, what drains, who refuses to start; the witness at the target counts."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys

import pytest
from processes import KEY, http, provider, query, up

from eventually import eventually
from swarmgate.control import link
from swarmgate.control.process import Files
from swarmgate.core.errors import BadInput
from swarmgate.stores.sql import ledger, writes
from swarmgate.stores.sql.writes import Writes

HEAVY = ("sqlalchemy", "alembic", "prometheus_client", "structlog", "starlette", "uvicorn")


def test_the_data_process_loads_nothing_heavy():
    script = f"import sys, swarmgate.cli, swarmgate.cli.up; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_one_life(tmp_path):
    async def play():
        async with provider() as (witness, port), up(tmp_path / "state", port, limits='["60 per 60s"]') as gate:
            await gate.ready()
            assert os.getpriority(os.PRIO_PROCESS, gate.child) > os.getpriority(os.PRIO_PROCESS, 0)
            assert not hasattr(os, "SCHED_BATCH") or os.sched_getscheduler(gate.child) == os.SCHED_BATCH
            assert (await gate.operate("GET", "/health/live")).said["live"]
            assert (await http(gate.operator_port, "GET", "/health/ready")).status == 401
            await orders_change_the_gate(gate)
            await the_control_process_dies(gate)
            await it_drains(gate, witness)
            they_stand_in_the_ledger(gate.folder)
            assert set(witness.hits.values()) == {1}
            assert not (gate.folder / link.SOCKET).exists()
            kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
            assert witness.keys == {KEY}
            assert KEY.encode() not in kept
            assert KEY not in "".join(gate.said)

    asyncio.run(play())


async def orders_change_the_gate(gate):
    assert (await gate.call("before", wait="0s")).status == 200
    why = {"target": "up", "author": "ann", "reason": "the owner asked us to stop"}
    paused = await gate.operate("POST", "/orders/pause", why)
    assert [row["revision"] for row in paused.said] == [2], paused
    deferred = await gate.call("paused", wait="0s")
    assert deferred.status == 429
    assert [block["revision"] for block in deferred.said["error"]["deferral"]["blocking"]] == [2]
    assert [row["revision"] for row in (await gate.operate("POST", "/orders/resume", why)).said] == [3]
    assert (await gate.call("after", wait="0s")).status == 200
    assert (await gate.operate("POST", "/orders/limit", why | {"amount": "600"})).status == 200
    (budget,) = [one for one in (await gate.operate("GET", "/budgets")).said if one["target"] == "up"]
    assert (budget["amount"], budget["revision"]) == (600, 4)
    for wrong in (
        {"target": "up"},
        why | {"target": "nobody"},
        why | {"amount": "many"},
        why | {"amount": 9, "window_ms": 0},
    ):
        assert (await gate.operate("POST", "/orders/limit", wrong)).status == 400


async def the_control_process_dies(gate):
    first = gate.child
    os.kill(first, signal.SIGKILL)
    assert (await gate.call("alone", wait="0s")).status == 200
    await eventually(lambda: gate.child not in {0, first}, 20)
    assert any("calls go on" in text for text in gate.said)


async def it_drains(gate, witness):
    witness.hold.clear()
    slow = asyncio.get_running_loop().create_task(gate.call("slow", wait="0s"), name="open call")
    await eventually(lambda: witness.hits["slow"], 20)
    await gate.ready()
    gate.process.send_signal(signal.SIGTERM)
    ready = await gate.operate("GET", "/health/ready")
    while ready.status == 200:
        ready = await gate.operate("GET", "/health/ready")
    assert "stopping" in ready.said["wrong"]
    assert (await gate.operate("GET", "/health/live")).status == 200
    assert (await gate.call("late")).status in {0, 503}
    assert "late" not in witness.hits
    witness.hold.set()
    assert (await slow).status == 200
    assert await gate.process.wait() == 0


def they_stand_in_the_ledger(folder):
    ends = query(folder, "SELECT step, end FROM calls ORDER BY arrived_ms")
    assert ends == [
        ("before", "answered"),
        ("paused", "deferred"),
        ("after", "answered"),
        ("alone", "answered"),
        ("slow", "answered"),
    ]
    assert query(folder, "SELECT kind FROM events ORDER BY seq") == [("boot",), ("stop",)]
    asked = "SELECT revision, amount, paused, author, policy FROM revisions WHERE target = 'up' ORDER BY revision"
    found = query(folder, asked)
    words = [(1, 60, 0, "configuration"), (2, 60, 1, "ann"), (3, 60, 0, "ann"), (4, 600, 0, "ann")]
    assert [row[:4] for row in found] == words
    assert query(folder, "SELECT budget FROM deferrals") == [("up: requests per 60s",)]
    policies = dict(query(folder, "SELECT c.step, a.policy FROM attempts a JOIN calls c ON c.id = a.call"))
    assert policies["before"] == found[0][4]
    assert policies["after"] == found[2][4]
    assert policies["slow"] == found[3][4]


def test_who_refuses_to_start_says_why(tmp_path):
    async def play():
        state = tmp_path / "state"
        async with provider() as (_, port):
            state.mkdir()
            for kind in (ledger.Ledger, Writes):
                kind.opened(state).close()
            with sqlite3.connect(state / ledger.FILE) as opened:
                opened.execute("UPDATE alembic_version SET version_num = '9999'")
            opened.close()
            async with up(state, port) as gate:
                assert await gate.process.wait() == 2
                await gate._reader
                assert any("9999" in text and "newer" in text for text in gate.said)
            async with up(tmp_path / "other", port, "--operator-port", str(port)) as gate:
                assert await gate.process.wait() == 3
                await gate._reader
                assert any(str(port) in text for text in gate.said)

    asyncio.run(play())


def test_who_lost_what_was_done_already_does_not_start(tmp_path):
    for kind in (ledger.Ledger, Writes):
        kind.opened(tmp_path).close()
    (tmp_path / writes.FILE).unlink()
    with pytest.raises(BadInput, match="what was done already"):
        Files.opened(tmp_path)
