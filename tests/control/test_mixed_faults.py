"""Any mix of faults, and then kill -9: every hit of the witness is an attempt with its step and its limits' revision (LG-13, LG-10)."""

import asyncio
import contextlib
import json
import re
import signal
from collections import Counter
from random import Random

from processes import query, up

from eventually import eventually

WAYS = {
    "whole": 40,
    "stream": 30,
    "late": 12,
    "refused": 6,
    "cut": 4,
    "reset": 4,
    "silent": 4,
}  # more, and the circuit opens
AGENTS = 10
HITS = 400


class Witness:
    """A provider that does what the request's marker says, and counts for itself: hits, and tokens of whole answers."""

    def __init__(self):
        self.hits = Counter()
        self.tokens = Counter()
        self._tasks = set()

    async def serve(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        with contextlib.closing(writer), contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(int(re.search(rb"content-length: (\d+)", head)[1]))
                marker = json.loads(body)["messages"][0]["content"]
                self.hits[marker] += 1
                await getattr(self, marker.partition(":")[0])(writer, marker)
                await writer.drain()

    async def whole(self, writer, marker):
        used = 1 + len(marker)
        said = {"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": 7, "completion_tokens": used}}
        _json(writer, b"200 OK", said)
        self.tokens[marker] += used

    async def stream(self, writer, marker, pieces=3):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(pieces):
            _event(writer, {"choices": [{"index": 0, "delta": {"content": "x"}}]})
            await asyncio.sleep(0.002)
        used = 1 + len(marker)
        _event(writer, {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": used}})
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        self.tokens[marker] += used

    async def cut(self, writer, _marker):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        _event(writer, {"choices": [{"index": 0, "delta": {"content": "x"}}]})
        await writer.drain()
        writer.close()

    async def reset(self, writer, _marker):
        writer.transport.abort()

    async def silent(self, _writer, _marker):
        await asyncio.Event().wait()

    async def refused(self, writer, _marker):
        _json(writer, b"400 Bad Request", {"error": {"message": "no", "type": "invalid_request_error"}})

    async def late(self, writer, marker):
        await asyncio.sleep(0.05)
        await self.whole(writer, marker)

    async def end(self):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _json(writer, status, said):
    body = json.dumps(said).encode()
    head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    writer.write(head % (status, len(body)) + body)


def _event(writer, said):
    payload = b"data: " + json.dumps(said).encode() + b"\n\n"
    writer.write(b"%x\r\n%b\r\n" % (len(payload), payload))


async def call(port, marker, *, patience_s):
    """Whether an end of the answer was seen before the caller lost its patience."""
    stream = marker.startswith(("stream", "cut"))
    body = json.dumps({"model": "m", "stream": stream, "messages": [{"role": "user", "content": marker}]}).encode()
    names = {"agent": "a1", "goal": "g1", "step": marker, "timeout": "400ms", "task-type": "mix"}
    fields = "".join(f"x-swarmgate-{name}: {value}\r\n" for name, value in names.items())
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nconnection: close\r\n{fields}content-length: {len(body)}\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.closing(writer), contextlib.suppress(TimeoutError, ConnectionError):
        async with asyncio.timeout(patience_s):
            writer.write(head.encode() + body)
            return bool(await reader.read(-1))
    return False


async def agent(port, number, unseen):
    """One call after another, until the gate is gone; every fifth caller leaves in a hurry."""
    chance = Random(number)
    for turn in range(10_000):
        marker = f"{chance.choices(list(WAYS), WAYS.values())[0]}:{number}-{turn}"
        hurry = chance.random() < 0.2
        unseen.add(marker)
        try:
            if await call(port, marker, patience_s=chance.random() / 30 if hurry else 5) or hurry:
                unseen.discard(marker)
        except OSError:
            return


def test_every_hit_joins_to_an_attempt_with_step_and_revision(tmp_path):
    async def play():
        witness, unseen = Witness(), set()
        server = await asyncio.start_server(witness.serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with up(tmp_path / "state", port, limits='["100000 per 1s"]') as gate:
            await gate.ready()
            agents = [
                asyncio.get_running_loop().create_task(agent(gate.port, n, unseen), name="agent") for n in range(AGENTS)
            ]
            await eventually(lambda: sum(witness.hits.values()) > HITS, 60)
            await gate.end(signal.SIGKILL)
            await asyncio.gather(*agents)
        async with up(tmp_path / "state", port) as gate:
            await gate.ready()
            assert await gate.end() == 0
        server.close()
        await witness.end()
        return witness, unseen

    witness, unseen = asyncio.run(play())
    found = query(
        tmp_path / "state",
        "SELECT c.step, c.agent, c.goal, c.task_type, a.fate, a.kind, a.policy, a.key, a.output_tokens, a.sent, r.amount "
        "FROM attempts a JOIN calls c ON c.id = a.call "
        "LEFT JOIN ways w ON w.target = a.target AND w.key = a.key "
        "LEFT JOIN revisions r ON r.budget = w.budget AND r.policy <= a.policy",
    )
    attempts = Counter(row[0] for row in found)
    assert {way for way in WAYS if any(step.startswith(way) for step in attempts)} == set(WAYS)
    assert not witness.hits - attempts, "hits that nobody caused"
    in_doubt = attempts - witness.hits  # their intent was noted, and nothing arrived: the kill, or a caller that left
    assert sum(in_doubt.values()) <= 3 * AGENTS
    assert {row[1:4] for row in found} == {("a1", "g1", "mix")}
    assert {row[6] > 0 and row[7] == "first" and row[10] == 100_000 for row in found} == {True}
    crashed = [row[0] for row in found if row[4] == "crash"]
    assert len(crashed) <= AGENTS + 1
    assert {row[4] for row in found} <= {"ended", "crash"}
    told = Counter()
    for step, *_, fate, kind, _policy, _key, tokens, _sent, _amount in found:
        if fate == "ended" and kind == "ok":
            told[step] += tokens or 0
    whole = {step for step in told if all(row[5] == "ok" for row in found if row[0] == step)}
    complete = {step for step in told if step.startswith(("whole", "late", "refused"))}
    complete |= {step for step in whole if step.startswith("stream")}
    assert any(step.startswith("stream") for step in complete)
    assert {step: told[step] for step in complete} == {step: witness.tokens[step] for step in complete}
    assert len(unseen) <= 4 * AGENTS  # some of them for every fault of the plan, and more on a slow machine
