"""
The recipe of docs/closing-the-door.md as it stands there: its rules between two rooms, and the whole of it with a gate.

Where nft is not installed, the page says how to unpack it beside: it only has to be in PATH.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/closing-the-door.md"
RULES = re.search(r"```\n(table inet agents.*?)```", PAGE.read_text(), re.DOTALL)[1]
ROOM_OF_PAGE = re.search(r"```sh\n(ip netns add agents.*?)```", PAGE.read_text(), re.DOTALL)[1]
HOST, ROOM = f"sg-host-{os.getpid()}", f"sg-room-{os.getpid()}"
GATE, OTHER, TRIES = 8787, 2222, 60
BUILD = f"""
ip netns add {HOST}
ip netns add {ROOM}
ip link add gate0 netns {HOST} type veth peer name eth0 netns {ROOM}
ip -n {HOST} addr add 10.200.0.1/30 dev gate0
ip -n {HOST} link set gate0 up
ip -n {ROOM} addr add 10.200.0.2/30 dev eth0
ip -n {ROOM} link set eth0 up
"""
SERVE = f"""
import select, socket
doors = [socket.create_server(("10.200.0.1", port), backlog=256) for port in ({GATE}, {OTHER})]
print("ready", flush=True)
while True:
    for door in select.select(doors, (), ())[0]:
        with door.accept()[0] as caller:
            caller.sendall(b"in")
"""
CALL = """
import select, socket, sys, time
port, tries, wait_s = map(float, sys.argv[1:])
callers = [socket.socket() for _ in range(int(tries))]
for one in callers:
    one.setblocking(False)
    one.connect_ex(("10.200.0.1", int(port)))
got, ends = 0, time.monotonic() + wait_s
while callers and time.monotonic() < ends:
    for one in select.select(callers, (), (), max(0, ends - time.monotonic()))[0]:
        callers.remove(one)
        got += one.recv(2) == b"in"
print(got)
"""


def run(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, check=True, text=True).stdout


def may():
    tools = os.geteuid() == 0 and shutil.which("ip") and shutil.which("nft")
    return sys.platform == "linux" and tools and not subprocess.run(["unshare", "-n", "true"], check=False).returncode


def got(port, tries, wait_s):
    """How many of so many connections at once are answered."""
    return int(run("ip", "netns", "exec", ROOM, sys.executable, "-c", CALL, str(port), str(tries), str(wait_s)))


@pytest.mark.skipif(not may(), reason="needs root, iproute2, nft and network namespaces")
def test_only_the_gate_s_port_is_open_and_what_else_was_tried_is_counted():
    built = subprocess.run(["sh", "-e", "-c", BUILD], capture_output=True, check=False, text=True)
    server = None
    try:
        if built.returncode:
            pytest.skip(f"no rooms here: {built.stderr.strip()}")
        inside = ["ip", "netns", "exec", HOST]
        server = subprocess.Popen([*inside, sys.executable, "-c", SERVE], stdout=subprocess.PIPE)
        assert server.stdout.readline() == b"ready\n"
        assert got(OTHER, TRIES, 20) == TRIES  # the cable reaches it
        run(*inside, "nft", "-f", "-", text=RULES)
        assert got(GATE, TRIES, 20) == TRIES
        assert got(OTHER, TRIES, 1) == 0
        counted = re.search(r"counter packets (\d+)", run(*inside, "nft", "list", "table", "inet", "agents"))
        assert int(counted[1]) >= TRIES
    finally:
        if server is not None:
            server.kill()
            server.communicate()
        for room in (HOST, ROOM):
            subprocess.run(["ip", "netns", "del", room], capture_output=True, check=False)


SWARMGATE = f"{sys.executable} -c 'from swarmgate.cli import main; main()'"
SCENE = f"""
mkdir -p /run/netns
mount -t tmpfs none /run/netns
mount -t tmpfs none /etc/netns
ip link set lo up
ip addr add 203.0.113.7/32 dev lo
{ROOM_OF_PAGE}
inside="ip netns exec agents setpriv --bounding-set -all --inh-caps -all"
verify="$inside {SWARMGATE} verify-egress --canary 203.0.113.7:9999 --gate http://10.200.0.1:8787 --json"
printf 'listen = "10.200.0.1:8787"\n[access]\nagent_keys = "required"\n' > gate.toml
{SWARMGATE} up --config gate.toml --state state > gate.log 2>&1 &
{SWARMGATE} verify-egress --serve 203.0.113.7:9999 > canary.log 2>&1 &
for _ in $(seq 300); do
    if grep -q listens gate.log && grep -q canary canary.log; then break; fi
    sleep 0.1
done
nft -f rules.nft
eval "$verify" > shut.json
cp canary.log heard_shut.log
ip -n agents route add default via 10.200.0.1
nft delete table inet agents
eval "$verify" > open.json || true
kill $(jobs -p)
wait
"""


@pytest.mark.skipif(not may(), reason="needs root, iproute2, nft and network namespaces")
def test_the_whole_recipe_with_a_gate_and_what_a_window_that_is_left_open_looks_like(tmp_path):
    (tmp_path / "rules.nft").write_text(RULES)
    ours = not Path("/etc/netns").exists()
    Path("/etc/netns").mkdir(exist_ok=True)
    try:
        command = ["unshare", "-n", "-m", "--propagation", "private", "bash", "-e", "-c", SCENE]
        environment = {**os.environ, "PYTHONPATH": str(PAGE.parents[1] / "src"), "HOME": str(tmp_path)}
        ran = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=100
        )
        if not (tmp_path / "gate.log").exists():
            pytest.skip(f"no room here: {ran.stderr.strip()}")
    finally:
        if ours:
            Path("/etc/netns").rmdir()
    shut, left_open = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("shut", "open"))
    assert shut["gate_reachable"]
    ways = {one["way"]: one["state"] for one in shut["ways"]}
    ways.pop("raw frames")  # root may keep them
    assert set(ways.values()) == {"blocked"}
    assert len((tmp_path / "heard_shut.log").read_text().splitlines()) == 1  # where it listens, and nobody came
    leaked = {one["way"] for one in left_open["ways"] if one["state"] == "leaked"}
    assert {"TCP", "UDP (QUIC)"} <= leaked
    assert len((tmp_path / "canary.log").read_text().splitlines()) == 3
