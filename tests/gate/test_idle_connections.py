"""HI-18: what a connection that says nothing keeps of what it once asked, and what happens when no more can be opened."""

import gc
import json
import resource
import socket
import subprocess
import sys
import tracemalloc
from collections import deque
from pathlib import Path

import pytest
from stage import UNARY, warm, whole
from test_front import request
from wires import Bench, Wire

from swarmgate.gate.service import Door

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { one = "env:KEY" }
"""
LONG = request(body=json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 130_000}]}).encode())
MOST_BYTES = 12 * 1024  # of Python's own memory; what a process grows by is measured in benchmarks/bench_idle.py


def visit(bench, door, asked):
    """One call; what it leaves in this test's own transports is forgotten."""
    door.data_received(asked)
    if bench.dialler.dials:
        bench.dialler.succeed()
    end, wire = bench.dialler.opened[0]
    end.data_received(whole(UNARY))
    door._transport.written.clear()
    wire.written.clear()
    bench.gate.journal.entries.clear()


def test_hi_18_an_idle_connection_keeps_little_of_what_it_asked():
    bench = Bench(TEXT)
    warm(bench.gate)
    bench.gate.callers.ended = deque(maxlen=1)  # how many calls are remembered has a bound of its own
    visit(bench, bench.client, LONG)
    doors = []
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(50):
            doors.append(Door(bench.gate.front, bench.gate.sweep, bench.gate.doors, 1_000))
            doors[-1].connection_made(Wire())
            visit(bench, doors[-1], LONG)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / len(doors) < MOST_BYTES


LISTENS = """
import asyncio, os, resource, sys, time, uvloop
from swarmgate.http1.listen import listen

class Greets(asyncio.Protocol):
    def connection_made(self, transport):
        transport.write(b"hello")

async def serve():
    loop = asyncio.get_running_loop()
    listening = await listen(loop, Greets, "127.0.0.1", 0)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 8, most))
    print(listening.port, flush=True)
    await loop.run_in_executor(None, sys.stdin.readline)
    began_s, cpu_s = time.perf_counter(), time.process_time()
    await asyncio.sleep(0.5)
    print((time.process_time() - cpu_s) / (time.perf_counter() - began_s), flush=True)
    await loop.run_in_executor(None, sys.stdin.readline)

asyncio.Runner(loop_factory=uvloop.new_event_loop if sys.argv[1] == "uvloop" else None).run(serve())
"""


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_hi_18_a_port_that_can_open_no_more_files_does_not_spin_and_goes_on(loop):
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("open files are counted in /proc")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert most > 100
    command = [sys.executable, "-c", LISTENS, loop]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        port = int(process.stdout.readline())
        links = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(40)]
        process.stdin.write("\n")
        process.stdin.flush()
        share = float(process.stdout.readline())
        for link in links:
            link.close()
        assert any(greeting(port) for _ in range(100))  # files are free once it has seen that the others left
        process.communicate("\n", timeout=10)
    assert share < 0.5  # of a core


def greeting(port):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as link:
        return link.recv(5)
