"""
What calls notice of an importer at 5,000 rows/s: halves of 0.8 s with and without it, in turn (bench_journal.py asks).

The importer has CPU 1 for itself; gate, load and stand-in share CPU 0, which 500 calls/s use to a third. A quarter of the
pairs counts as quiet: those whose larger P99 is least, so that neither kind of half is preferred.

`python benchmarks/beside_importer.py STATE` is that importer.
"""

import asyncio
import bisect
import collections
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import gate_lab as lab
from swarmgate.control.importer import Importer, give_way
from swarmgate.control.watching import Watching
from swarmgate.engine.loops import new_event_loop
from swarmgate.stores.journal import reader

ROWS_PER_S = 5_000
CALLS_PER_S = 500
CONNECTIONS = 64
HALF_S = 0.8
LOOK_S = 0.4  # between two looks of the control process at its journal (control/process.py)
ROW_BYTES = 165
DRAWS = 2_000
QUIET_SHARE = 4


def feed(state):
    """What the control process does with its journal, at `ROWS_PER_S` as long as there is anything; the count stands in `fed`."""
    give_way()
    reader._CHUNK_BYTES = int(ROWS_PER_S * LOOK_S * ROW_BYTES)  # noqa: SLF001  what would have been written since the last look
    importer = Importer.opened(state)
    told = os.open(state / "fed", os.O_WRONLY | os.O_CREAT)
    with Path(os.devnull).open("w") as nowhere:
        importer.listeners.append(Watching(importer.price, nowhere).hear)
        while True:
            start_s = time.perf_counter()
            if importer.step():
                return
            os.pwrite(told, b"%012d" % importer.rows, 0)
            time.sleep(max(0.0, LOOK_S - (time.perf_counter() - start_s)))


class Feeder:
    """The importer as a process of its own, stopped until it is wanted."""

    def __init__(self, state):
        self._fed = state / "fed"
        command = ["taskset", "-c", "1", sys.executable, __file__, str(state)]
        self._process = subprocess.Popen(command)
        while not self.rows:
            time.sleep(0.05)
        self.pause()

    @property
    def rows(self):
        return int(self._fed.read_text() or 0) if self._fed.exists() else 0

    def pause(self):
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self._process.send_signal(signal.SIGCONT)

    def end(self):
        self._process.kill()
        self._process.wait()


class Caller(asyncio.Protocol):
    """One connection of the load: a call at a time, the next one that is `due`; `told` gets the second it was due and what it took."""

    def __init__(self, request, due, idle, told):
        self._request, self._due, self._idle, self._told = request, due, idle, told
        self._got, self._due_s = b"", 0.0

    def connection_made(self, transport):
        self._transport = transport
        self._idle.append(self)

    def go_on(self):
        if self._due:
            self._due_s = self._due.popleft()
            self._transport.write(self._request)
        else:
            self._idle.append(self)

    def data_received(self, data):
        self._got += data
        head, end, body = self._got.partition(b"\r\n\r\n")
        if end and len(body) >= int(re.search(rb"(?i)content-length: (\d+)", head)[1]):
            if not head.startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"an answer was no success: {head[:200]}")
            self._told.append((self._due_s, time.perf_counter() - self._due_s))
            self._got = b""
            self.go_on()


async def load(port, until_s, told):
    """`CALLS_PER_S` calls, each due at its own instant, whatever became of the ones before."""
    loop, due, idle = asyncio.get_running_loop(), collections.deque(), collections.deque()
    body = json.dumps({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Summarise. " * 180}]}).encode()
    head = f"POST {lab.PATH} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nx-swarmgate-agent: bench\r\n"
    request = f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
    for _ in range(CONNECTIONS):
        await loop.create_connection(lambda: Caller(request, due, idle, told), "127.0.0.1", port)
    due_s = time.perf_counter()
    while due_s < until_s:
        due_s += 1 / CALLS_PER_S
        await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
        due.append(due_s)
        if idle:
            idle.popleft().go_on()  # the one that has rested longest: the gate closes those that rest for long
    await asyncio.sleep(1)  # for the last answers


class Half:
    """What happened in the halves of one kind: latencies in us by pair, and what the gate took."""

    def __init__(self, pairs):
        self.pairs, self.cpu_us, self.waited_us = [[] for _ in range(pairs)], 0.0, 0.0

    @property
    def calls(self):
        return sum(map(len, self.pairs))


def p99_us(half):
    return percentile([half], 990)


def added_us(alone, importing, which, lot):
    """What the importer adds to the P99 of these pairs; the interval of 95 in 100 when they are drawn anew."""
    drawn = []
    for _ in range(DRAWS):
        again = lot.choices(which, k=len(which))
        one, other = ([half.pairs[index] for index in again] for half in (alone, importing))
        drawn.append(percentile(other, 990) - percentile(one, 990))
    drawn.sort()
    one, other = ([half.pairs[index] for index in which] for half in (alone, importing))
    return percentile(other, 990) - percentile(one, 990), [drawn[DRAWS // 40], drawn[-DRAWS // 40]]


def percentile(pairs, permille):
    pooled = sorted(itertools.chain.from_iterable(pairs))
    return pooled[len(pooled) * permille // 1_000]


def spent_us(pid):
    """On a processor, and waiting for one."""
    ran, waited, _ = Path(f"/proc/{pid}/schedstat").read_text().split()
    return int(ran) / 1e3, int(waited) / 1e3


async def in_halves(port, pid, feeder, pairs, lot):
    """The halves with and without the importer, pair by pair in an order drawn by lot; rows imported per second of theirs."""
    told, began, rows = [], [], 0
    alone, importing = Half(pairs), Half(pairs)
    until_s = time.perf_counter() + 1 + 2 * pairs * HALF_S
    calls = asyncio.get_running_loop().create_task(load(port, until_s, told), name="load")
    await asyncio.sleep(1)
    for pair in range(pairs):
        for half in lot.sample((alone, importing), 2):
            before, spent = feeder.rows, spent_us(pid)
            if half is importing:
                feeder.go_on()
            began.append((time.perf_counter(), half.pairs[pair]))
            await asyncio.sleep(HALF_S)
            ran_us, waited_us = spent_us(pid)
            half.cpu_us += ran_us - spent[0]
            half.waited_us += waited_us - spent[1]
            if half is importing:
                feeder.pause()
                rows += feeder.rows - before
    began.append((time.perf_counter(), []))
    await calls
    starts_s = [start_s for start_s, _ in began]
    for due_s, took_s in told:  # a call belongs to the half in which it was due
        at = bisect.bisect(starts_s, due_s)
        if at:
            began[at - 1][1].append(took_s * 1e6)
    return alone, importing, rows / (pairs * HALF_S)


def beside_calls(state, pairs):
    """What calls notice of an importer of this state folder beside them; us."""
    lab.build()
    os.sched_setaffinity(0, {0})
    lot = random.Random(1)
    with lab.start_upstream(cpu=0) as upstream, lab.start_gate(upstream.port) as gate:
        feeder = Feeder(state)
        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                alone, importing, rate = runner.run(in_halves(gate.port, gate.pid, feeder, pairs, lot))
        finally:
            feeder.end()
    found = {"beside calls, rows/s": rate}
    for name, half in (("alone", alone), ("importing", importing)):
        found |= {
            f"p{permille / 10:g} of calls, us, {name}": percentile(half.pairs, permille) for permille in (500, 990)
        }
        found[f"gate's CPU, us a call, {name}"] = half.cpu_us / half.calls
        found[f"gate waited for a CPU, us a call, {name}"] = half.waited_us / half.calls
    by_calm = sorted(range(pairs), key=lambda pair: max(p99_us(alone.pairs[pair]), p99_us(importing.pairs[pair])))
    for name, which in (("", by_calm), (f", {pairs // QUIET_SHARE} quiet pairs", by_calm[: pairs // QUIET_SHARE])):
        found[f"added to p99, us{name}"], within = added_us(alone, importing, which, lot)
        found[f"95 of 100 within{name}"] = within
    return found


if __name__ == "__main__":
    feed(Path(sys.argv[1]))
