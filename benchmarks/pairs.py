"""
What one thing adds to the latency of calls: 500 of them a second, in pairs of 0.8 s with and 0.8 s without it, in an order drawn by lot.

What a busy machine does mostly lasts longer than that, so it meets both halves. A quarter of the pairs counts as quiet: those whose
larger P99 is least, so that neither side is preferred. What is added is told with the interval that 95 of 100 repetitions would
fall into (the pairs drawn anew, 2,000 times); one wider than what is asked about says that the machine was too busy to tell.
"""

import asyncio
import bisect
import collections
import itertools
import json
import random
import re
import time

from gate_lab import PATH
from swarmgate.engine.loops import new_event_loop

CALLS_PER_S = 500
CONNECTIONS = 64
HALF_S = 0.8
LAST_ANSWERS_S = 60
DRAWS = 2_000
QUIET_SHARE = 4
BODY = json.dumps({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Summarise. " * 180}]}).encode()


class Side:
    """One of the two that are compared: who listens, and latencies in us by pair. `began` and `ended` enclose each half."""

    def __init__(self, name, port, pairs):
        self.name, self.port, self.pairs = name, port, [[] for _ in range(pairs)]
        self.due, self.idle = collections.deque(), collections.deque()

    def began(self):
        pass

    def ended(self):
        pass

    @property
    def calls(self):
        return sum(map(len, self.pairs))

    async def connect(self, told):
        head = f"POST {PATH} HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\nx-swarmgate-agent: bench\r\n"
        request = f"{head}content-type: application/json\r\ncontent-length: {len(BODY)}\r\n\r\n".encode() + BODY
        for _ in range(CONNECTIONS):
            await asyncio.get_running_loop().create_connection(
                lambda: Caller(request, self.due, self.idle, told), "127.0.0.1", self.port
            )


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


async def _call(side, until_s):
    """Calls, each due at its own instant, whatever became of the ones before."""
    due_s = time.perf_counter()
    while due_s < until_s:
        due_s += 1 / CALLS_PER_S
        await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
        side.due.append(due_s)
        if side.idle:
            side.idle.popleft().go_on()  # the one that has rested longest: servers close those that rest for long


async def _play(sides, pairs, lot):
    told, began = [], []
    for side in sides:
        await side.connect(told)
        await _call(side, time.perf_counter() + 1)
    for pair in range(pairs):
        for side in lot.sample(sides, 2):
            side.began()
            began.append((time.perf_counter(), side.pairs[pair]))
            await _call(side, began[-1][0] + HALF_S)
            side.ended()
    began.append((time.perf_counter(), []))
    async with asyncio.timeout(LAST_ANSWERS_S):
        while any(side.due or len(side.idle) < CONNECTIONS for side in sides):  # noqa: ASYNC110  no event tells it
            await asyncio.sleep(0.05)
    starts_s = [start_s for start_s, _ in began]
    for due_s, took_s in told:  # a call belongs to the half in which it was due
        at = bisect.bisect(starts_s, due_s)
        if at:
            began[at - 1][1].append(took_s * 1e6)


def compare(sides, pairs):
    """Fill both sides; what the second adds to the first, us."""
    lot = random.Random(1)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_play(sides, pairs, lot))
    found = {
        f"p{permille / 10:g} of calls, us, {side.name}": percentile(side.pairs, permille)
        for side in sides
        for permille in (500, 990)
    }
    by_calm = sorted(range(pairs), key=lambda pair: max(percentile([side.pairs[pair]], 990) for side in sides))
    quiet = by_calm[: max(1, pairs // QUIET_SHARE)]
    for name, which in ((f"{pairs} pairs", by_calm), (f"the {len(quiet)} quiet ones", quiet)):
        for permille in (500, 990):
            drawn = sorted(_added(sides, lot.choices(which, k=len(which)), permille) for _ in range(DRAWS))
            found[f"added to p{permille / 10:g}, us, {name}"] = _added(sides, which, permille)
            found[f"95 of 100 within, p{permille / 10:g}, {name}"] = [drawn[DRAWS // 40], drawn[-DRAWS // 40]]
    return found


def _added(sides, which, permille):
    one, other = ([side.pairs[index] for index in which] for side in sides)
    return percentile(other, permille) - percentile(one, permille)


def percentile(pairs, permille):
    pooled = sorted(itertools.chain.from_iterable(pairs))
    return pooled[len(pooled) * permille // 1_000]
