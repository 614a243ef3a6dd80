"""What a program can send around the gate: found in the open, and not found in a room without windows."""

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eventually import eventually
from swarmgate.cli import app
from swarmgate.cli.verify_egress import WAYS, Canary, State, attempt, listening

SOURCE = Path(__file__).parents[2] / "src"


@contextlib.contextmanager
def canary(host="127.0.0.1"):
    """A canary in a thread of its own; what it heard, and where it listens."""
    heard, started = [], threading.Event()
    state = {}

    async def run():
        async with listening(Canary(host, 0), heard.append) as state["port"]:
            state["stop"] = asyncio.Event()
            state["loop"] = asyncio.get_running_loop()
            started.set()
            await state["stop"].wait()
        await asyncio.sleep(0)  # the transports' last callbacks

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    started.wait(5)
    try:
        yield heard, Canary(host, state["port"])
    finally:
        state["loop"].call_soon_threadsafe(state["stop"].set)
        thread.join(5)


def test_what_gets_through_is_a_leak_and_the_canary_hears_it():
    with canary() as (heard, where):
        assert attempt("TCP", where).state is State.LEAKED
        assert attempt("UDP (QUIC)", where).state is State.LEAKED
        asyncio.run(eventually(lambda: {line.split()[0] for line in heard} == {"TCP", "UDP"}))


def test_a_refusal_shows_that_the_packet_got_there():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        assert attempt("TCP", Canary("127.0.0.1", unused.getsockname()[1])).state is State.LEAKED


def test_silence_is_told_apart(monkeypatch):
    monkeypatch.setattr("swarmgate.cli.verify_egress.WITHIN_S", 0.05)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as deaf:
        deaf.bind(("127.0.0.1", 0))
        assert attempt("UDP (QUIC)", Canary("127.0.0.1", deaf.getsockname()[1])).state is State.SILENT


def test_the_command_in_the_open():
    with canary() as (_, where):
        result = CliRunner().invoke(
            app, ["verify-egress", "--canary", f"127.0.0.1:{where.port}", "--gate", "http://127.0.0.1:1", "--json"]
        )
    said = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [one["way"] for one in said["ways"]] == list(WAYS)
    assert said["gate_reachable"] is False


@pytest.mark.parametrize("canary_said", ["", "example.com:1", "1.2.3.4", "1.2.3.4:x", "1.2.3.4:70000"])
def test_a_canary_that_is_none_is_a_usage_error(canary_said):
    assert CliRunner().invoke(app, ["verify-egress", "--canary", canary_said]).exit_code == 2


def may_build_a_room():
    return (
        os.geteuid() == 0
        and shutil.which("ip")
        and not subprocess.run(["unshare", "-n", "true"], check=False).returncode
    )


ROOM = f"swarmgate-{os.getpid()}"
CABLE = f"sg{os.getpid() % 100_000}"
BUILD = f"""
ip netns add {ROOM}
ip link add {CABLE} type veth peer name eth0 netns {ROOM}
ip addr add 10.213.7.1/30 dev {CABLE}
ip link set {CABLE} up
ip -n {ROOM} addr add 10.213.7.2/30 dev eth0
ip -n {ROOM} link set lo up
ip -n {ROOM} link set eth0 up
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not may_build_a_room(), reason="needs root, iproute2 and network namespaces"
)
def test_in_a_room_with_one_cable_nothing_leaves_but_to_the_gate():
    """The recipe of docs/closing-the-door.md; the gate is whoever listens at the cable's end."""
    built = subprocess.run(["sh", "-e", "-c", BUILD], capture_output=True, check=False, text=True)
    try:
        if built.returncode:
            pytest.skip(f"no room here: {built.stderr.strip()}")
        with canary() as (heard, outside), canary("10.213.7.1") as (_, gate):
            assert attempt("TCP", outside).state is State.LEAKED  # from here it can be reached
            asyncio.run(eventually(lambda: heard))
            heard.clear()
            command = [
                sys.executable,
                "-c",
                "from swarmgate.cli import main; main()",
                "verify-egress",
                "--canary",
                "192.0.2.9:9999",
            ]
            command += ["--gate", f"http://10.213.7.1:{gate.port}", "--json"]
            inside = ["ip", "netns", "exec", ROOM, "setpriv", "--bounding-set", "-all", "--inh-caps", "-all", *command]
            ran = subprocess.run(
                inside, capture_output=True, check=False, text=True, env={**os.environ, "PYTHONPATH": str(SOURCE)}
            )
        said = json.loads(ran.stdout)
        states = {one["way"]: one["state"] for one in said["ways"]}
        assert set(states) == set(WAYS)
        assert [way for way, state in states.items() if state == "leaked"] in (
            [],
            ["raw frames"],
        )  # root keeps the latter
        assert states["TCP"] == states["UDP (QUIC)"] == states["IPv6 route"] == "blocked"
        assert heard == []
    finally:
        subprocess.run(["ip", "netns", "del", ROOM], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", CABLE], capture_output=True, check=False)
