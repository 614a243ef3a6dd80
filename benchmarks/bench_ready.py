"""
How soon ten calls start that are ready, while 1,000 others wait in line for another host, or were just sent away from it.

    python benchmarks/bench_ready.py [--json] [--quick]

Real sockets: 1,000 callers with a connection each, the gate, and both hosts, all in one process. Told is the time from a
ready call's first byte until its host has the whole request, of ten calls at once, over several rounds.
"""

import argparse
import asyncio
import json
import resource
import statistics

from swarmgate import config, wiring

TEXT = """
[egress]
presets = "off"
[policies.busy]
hosts = ["busy.org"]
limits = ["10 per 60s"]
[policies.free]
hosts = ["free.org"]
limits = ["60_000 per 60s"]
[resolve]
"busy.org" = "127.0.0.1:{port}"
"free.org" = "127.0.0.1:{port}"
"""
WAITING, READY = 1_000, 10
GOAL_MS = 100


class Host(asyncio.Protocol):
    """One connection of either host: it answers at once, and tells `seen` when it had which path."""

    def __init__(self, seen, now_s):
        self.seen = seen
        self.now_s = now_s
        self.had = b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        *heads, self.had = (self.had + data).split(b"\r\n\r\n")
        for head in heads:
            self.seen[head.split(b" ", 2)[1].decode()] = self.now_s()
            self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")


class Caller:
    """One connection to the gate."""

    def __init__(self, streams):
        self.reader, self.writer = streams

    async def ask(self, host, path, wait):
        head = f"GET /to/http/{host}{path} HTTP/1.1\r\nhost: gate\r\nx-swarmgate-wait: {wait}\r\n\r\n"
        self.writer.write(head.encode())
        said = await self.reader.readuntil(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in said.lower().split(b"\r\n") if b"content-length" in line), 0
        )
        await self.reader.readexactly(length)
        return int(said.split(b" ", 2)[1])


async def round_of(number, ready, seen, wait="0s"):
    """Milliseconds of the ten; all are answered."""
    began = asyncio.get_running_loop().time()
    statuses = await asyncio.gather(
        *[caller.ask("free.org", f"/{number}/{one}", wait) for one, caller in enumerate(ready)]
    )
    assert statuses == [200] * READY, statuses
    return [(seen[f"/{number}/{one}"] - began) * 1_000 for one in range(READY)]


async def measure(rounds, *, waits):
    """The times of every ready call while 1,000 wait (`waits`), or right after 1,000 were deferred."""
    loop = asyncio.get_running_loop()
    seen = {}
    server = await loop.create_server(lambda: Host(seen, loop.time), "127.0.0.1", 0)
    place = server.sockets[0].getsockname()[1]
    gate = wiring.gate(loop, config.parse(TEXT.format(port=place), {}), lambda _call, error: print(error))
    port = await gate.start("127.0.0.1", 0)
    callers = [Caller(await asyncio.open_connection("127.0.0.1", port)) for _ in range(WAITING + READY)]
    crowd, ready = callers[:WAITING], callers[WAITING:]
    await round_of("warm", ready, seen, "30s")
    times = []
    waiting = [loop.create_task(one.ask("busy.org", f"/busy/{n}", "300s")) for n, one in enumerate(crowd) if waits]
    while waits and len(gate.pump.room) < WAITING - 20:  # noqa: ASYNC110  a line tells nobody how long it is
        await asyncio.sleep(0.01)
    for number in range(rounds):
        if not waits:
            await asyncio.gather(*[one.ask("busy.org", f"/busy/{number}/{n}", "0s") for n, one in enumerate(crowd)])
        times += await round_of(number, ready, seen)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    for caller in callers:
        caller.writer.close()
    await gate.stop(drain_s=0)
    server.close()
    return sorted(times)


def main():
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="3 rounds instead of 20")
    asked = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8_192)), hard))
    rounds = 3 if asked.quick else 20
    figures = {}
    for name, waits in (("waiting in line", True), ("deferred before", False)):
        times = asyncio.run(measure(rounds, waits=waits))
        figures[name] = {
            "p50_ms": round(statistics.median(times), 1),
            "max_ms": round(times[-1], 1),
            "calls": len(times),
        }
    if asked.json:
        print(json.dumps(figures))
        return
    for name, told in figures.items():
        print(
            f"1,000 {name}: ten ready start within {told['p50_ms']} ms (p50), {told['max_ms']} ms (worst of {told['calls']})"
        )
    print(f"goal: {GOAL_MS} ms")


if __name__ == "__main__":
    main()
