"""Minutes on real sockets: many agents, streams and short answers mixed, one key that is refused now and then."""

import asyncio
import gc
import itertools
import os
import resource
from pathlib import Path

import pytest
from stage import UNARY, stage, streamed, whole

pytestmark = pytest.mark.soak

AGENTS = int(os.environ.get("SOAK_AGENTS", "200"))
SECONDS = int(os.environ.get("SOAK_SECONDS", "120"))
LIMIT, WINDOW_S = 3_000, 10
KEYS = ", ".join(f'k{number} = "env:KEY"' for number in range(20))
TEXT = f"""
[targets.up]
base_url = "http://127.0.0.1:{{port}}/v1"
limits = ["{LIMIT} per {WINDOW_S}s"]
keys = {{{{ {KEYS} }}}}
key_limits = ["100000000 tokens per 60s"]
"""
REFUSED = {
    "error": {
        "message": "Rate limit reached, please try again in 1s.",
        "type": "requests",
        "code": "rate_limit_exceeded",
    }
}


async def mixed(stand_in, hit, writer):
    turn = next(TURNS)
    if turn % 500 == 499:
        writer.write(whole(REFUSED, "429 Too Many Requests", "retry-after: 1\r\n"))
    elif turn % 3:
        writer.write(whole(UNARY))
    else:
        await streamed(stand_in, hit, writer)


TURNS = itertools.count()


async def agent(port, number, until_s, seen):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    loop = asyncio.get_running_loop()
    body = b'{"model":"m","stream":%b,"messages":[{"role":"user","content":"hi"}]}'
    while loop.time() < until_s:
        said = body % (b"true" if number % 2 else b"false")
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nx-swarmgate-agent: a%d\r\ncontent-length: %d\r\n\r\n"
        writer.write(head % (number, len(said)) + said)
        got = (await reader.readuntil(b"\r\n\r\n")).lower()
        seen.append(int(got.split(b" ")[1]))
        if b"chunked" in got:
            while await reader.readuntil(b"\r\n") != b"0\r\n":
                await reader.readuntil(b"\r\n")
            await reader.readexactly(2)
        else:
            await reader.readexactly(int(got.split(b"content-length: ")[1].split(b"\r")[0]))
    writer.close()


def memory_mib():
    """Resident memory; 0 where it cannot be read."""
    gc.collect()
    told = Path("/proc/self/statm")
    return int(told.read_text().split()[1]) * resource.getpagesize() / 2**20 if told.exists() else 0


def most_in_a_window(arrivals):
    first, most = 0, 0
    for last, at_s in enumerate(arrivals):
        while arrivals[first] <= at_s - WINDOW_S:
            first += 1
        most = max(most, last - first + 1)
    return most


async def soak():
    async with stage(mixed, TEXT) as running:
        loop = asyncio.get_running_loop()
        seen: list[int] = []
        began_s, marks = loop.time(), []
        runs = [loop.create_task(agent(running.port, number, began_s + SECONDS, seen)) for number in range(AGENTS)]
        for part in (1, 2):
            done, _ = await asyncio.wait(runs, timeout=SECONDS / 2 if part == 1 else None)
            marks.append(memory_mib() - len(running.stand_in.hits) * 2e-3)
        assert not [one.exception() for one in done if one.exception()]
        assert most_in_a_window([hit.at_s for hit in running.stand_in.hits]) <= LIMIT
        assert set(seen) == {200}
        assert running.bugs == []
        assert marks[1] < marks[0] * 1.3 + 20


@pytest.mark.timeout(SECONDS + 120)
def test_a_swarm_works_for_minutes_within_its_budget():
    asyncio.run(soak())
