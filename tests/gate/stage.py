"""A gate in this process, before it a stand-in for a provider that counts what it sees: shared by the tests of the gate."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

from swarmgate import config, wiring
from swarmgate.core.record import Call
from swarmgate.gate.service import Gate

KEY, OTHER_KEY = "sk-canary-p4xh8wzq3nvk", "sk-canary-y6tj2mrs9gwu"
UNARY = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "four"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
}


class Hit(NamedTuple):
    """One request as the stand-in saw it, and the second at which it did."""

    path: str
    headers: dict[str, str]
    body: bytes
    at_s: float

    @property
    def said(self) -> dict[str, object]:
        return json.loads(self.body)


Script = Callable[["StandIn", Hit, asyncio.StreamWriter], Awaitable[None]]


class StandIn:
    """An OpenAI-like server over a raw socket; `script` answers each hit, `closed` tells that a peer left mid-answer."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.hits: list[Hit] = []
        self.closed = asyncio.Event()
        self.go_on = asyncio.Event()
        self.connections = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._writers: list[asyncio.StreamWriter] = []

    async def close(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)  # what was accepted a moment ago begins to be served, so that it can be closed
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*self._tasks)
        for writer in self._writers:
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._tasks.append(asyncio.current_task())
        self._writers.append(writer)
        self._tell_its_end(reader)
        with contextlib.closing(writer), contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                start, *lines = head.split("\r\n")[:-2]
                headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                hit = Hit(start.split(" ")[1], headers, body, asyncio.get_running_loop().time())
                self.hits.append(hit)
                await self._script(self, hit, writer)
                await writer.drain()

    def _tell_its_end(self, reader: asyncio.StreamReader) -> None:
        """Set `closed` when the peer's end is seen, while the script may still be writing."""
        feed_eof, set_exception = reader.feed_eof, reader.set_exception

        def ended() -> None:
            self.closed.set()
            feed_eof()

        def broken(error: Exception) -> None:
            self.closed.set()
            set_exception(error)

        reader.feed_eof, reader.set_exception = ended, broken


def whole(said: object, status: str = "200 OK", extra: str = "") -> bytes:
    """A JSON answer with its head."""
    body = json.dumps(said).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{extra}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"


def framed(payload: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(payload), payload)


def event(said: object) -> bytes:
    return b"data: " + json.dumps(said, separators=(",", ":")).encode() + b"\n\n"


def token(text: str) -> bytes:
    return event({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": text}}]})


ROLE = event({"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
FINISH = event({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
USAGE = event({"id": "c", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}})
DONE = b"data: [DONE]\n\n"


async def unary(_stand_in: StandIn, _hit: Hit, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(UNARY))


async def streamed(_stand_in: StandIn, _hit: Hit, writer: asyncio.StreamWriter) -> None:
    writer.write(STREAM_HEAD)
    for payload in (ROLE, token("fo"), token("ur"), FINISH, USAGE, DONE):
        writer.write(framed(payload))
        await writer.drain()
    writer.write(LAST)


async def either(stand_in: StandIn, hit: Hit, writer: asyncio.StreamWriter) -> None:
    await (streamed if hit.said.get("stream") else unary)(stand_in, hit, writer)


class Stage(NamedTuple):
    """A running gate and its only target."""

    gate: Gate
    stand_in: StandIn
    port: int
    bugs: list[Exception]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def reserved(self) -> int:
        """What all budgets still hold reserved; the known end of a used slot is no reservation."""
        cells = self.gate.store.book.cells.values()
        return sum(lease.amount for cell in cells for lease in cell.leases.values() if not lease.firm)

    @property
    def ends(self) -> list[str]:
        """How the calls ended, in order."""
        entries = self.gate.journal.entries
        return [entry.noted.end.value for entry in entries if hasattr(entry.noted, "end")]


TARGET = """
[targets.up]
base_url = "http://127.0.0.1:{port}/v1"
keys = {{ first = "env:KEY" }}
key_limits = ["900000000 per 1s", "900000000 tokens per 1s"]
"""


def warm(gate: Gate) -> None:
    """As if the gate had been up for long: a new one must assume that its budgets are used up."""
    for cell in gate.store.book.cells.values():
        cell.level = cell.pending = 0
        cell.leases.clear()


@contextlib.asynccontextmanager
async def stage(script: Script = either, text: str = TARGET, **secrets: str) -> AsyncIterator[Stage]:
    """Start both, and stop them in order; every test also proves that no bug was met and nothing stays reserved."""
    loop = asyncio.get_running_loop()
    stand_in = StandIn(script)
    server = await asyncio.start_server(stand_in.serve, "127.0.0.1", 0)
    read = config.parse(
        text.format(port=server.sockets[0].getsockname()[1]), {"KEY": KEY, "OTHER_KEY": OTHER_KEY} | secrets
    )
    bugs: list[Exception] = []

    def failed(_call: Call, error: Exception) -> None:
        bugs.append(error)

    gate = wiring.gate(loop, read, failed)
    warm(gate)
    port = await gate.start("127.0.0.1", 0)
    running = Stage(gate, stand_in, port, bugs)
    try:
        yield running
    finally:
        await gate.stop(drain_s=1)
        server.close()
        await stand_in.close()
        await asyncio.sleep(0)  # the transports' last callbacks
    if bugs:
        raise bugs[0]
    assert running.reserved == 0
