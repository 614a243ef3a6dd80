"""
Two thousand streams at once for ten minutes, each of them a chain of tokens (SE-07): none is lost, doubled or moved, memory is flat.

As many as one gate lets live (live_streams.py). Stand-in, gate and callers share a process, so pieces come slowly: one a second each.
"""

import asyncio
import gc
import os
import time

import pytest
from stage import DONE, FINISH, LAST, STREAM_HEAD, TARGET, framed, stage, token
from test_front import request
from test_soak import own_mib

from swarmgate.gate.live_streams import MOST_LIVE
from swarmgate.lab.chain import CHARS_PER_TOKEN, chained, heard

pytestmark = pytest.mark.soak

STREAMS = int(os.environ.get("SOAK_STREAMS", str(MOST_LIVE)))
SECONDS = int(os.environ.get("SOAK_SECONDS", "600"))
TOKENS_A_PIECE = 5
MOST_GROWTH_MIB = 8
TEXT = TARGET + '[routes]\nfast = "up/m"\n'


class Run:
    """What all streams share: how many are open, and when the last piece is due."""

    def __init__(self):
        self.open = self.most_open = 0
        self.all_open = asyncio.Event()
        self.memory = []

    async def script(self, _stand_in, hit, writer):
        """A chain of `SECONDS` pieces, from the instant at which all are open."""
        words = chained(hit.said["user"], SECONDS * TOKENS_A_PIECE)
        writer.write(STREAM_HEAD + framed(token(words[:CHARS_PER_TOKEN])))
        await self.all_open.wait()
        size = TOKENS_A_PIECE * CHARS_PER_TOKEN
        pieces = [words[CHARS_PER_TOKEN:size], *[words[at : at + size] for at in range(size, len(words), size)]]
        loop, began_s = asyncio.get_running_loop(), asyncio.get_running_loop().time()
        for number, piece in enumerate(pieces):
            await asyncio.sleep(began_s + number - loop.time())
            writer.write(framed(token(piece)))
        writer.write(framed(FINISH + DONE) + LAST)

    async def call(self, port, number):
        """What was heard of one stream; only what is not as it should be is kept, so that memory is the gate's."""
        name = f"stream-{number}"
        body = b'{"model":"fast","stream":true,"user":"%b","messages":[]}' % name.encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
        writer.write(request("/v1/chat/completions", body, "POST", "x-swarmgate-timeout: 3600s", "connection: close"))
        should, at, rest = chained(name, SECONDS * TOKENS_A_PIECE), 0, ""
        async for line in reader:
            if b'"content":"' in line:
                if not at:
                    self.opened()
                piece = line.partition(b'"content":"')[2].partition(b'"')[0].decode()
                if not rest and should.startswith(piece, at):
                    at += len(piece)
                else:
                    rest += piece
        self.open -= 1
        writer.close()
        return heard(name, SECONDS * TOKENS_A_PIECE, should[:at] + rest)

    def opened(self):
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        if self.open == STREAMS:
            self.all_open.set()

    async def watch(self):
        """Memory, five times in the run."""
        await self.all_open.wait()
        for _ in range(5):
            await asyncio.sleep(SECONDS / 6)
            gc.collect()
            self.memory.append(round(own_mib(os.getpid()), 1))


@pytest.mark.timeout(SECONDS + 240)
def test_se_07_two_thousand_streams_lose_double_and_move_nothing(capsys):
    async def play():
        run = Run()
        async with stage(run.script, TEXT) as on:
            calls = [run.call(on.port, number) for number in range(STREAMS)]
            _, *came = await asyncio.gather(run.watch(), *calls)
            assert on.ends == ["answered"] * STREAMS
        return run, came

    began_s = time.monotonic()
    run, came = asyncio.run(play())
    sums = {name: sum(getattr(one, name) for one in came) for name in ("tokens", "lost", "doubled", "moved")}
    with capsys.disabled():
        print(f"\n{run.most_open} streams at once, {time.monotonic() - began_s:.0f} s: {sums}, MiB {run.memory}")
    assert run.most_open == STREAMS
    assert sums == {"tokens": STREAMS * SECONDS * TOKENS_A_PIECE, "lost": 0, "doubled": 0, "moved": 0}
    assert run.memory[-1] <= run.memory[1] + MOST_GROWTH_MIB
