"""A gate in this process and the hosts of the world as one stand-in on loopback: shared by the tests of egress."""

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from swarmgate import config, wiring
from swarmgate.gate.service import Gate


class Hit(NamedTuple):
    """One request as its host saw it."""

    method: str
    host: str
    path: str
    headers: dict[str, str]
    body: bytes
    at_s: float


class Answer(NamedTuple):
    """One answer as the caller saw it; a header that came twice has a comma between its values."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def said(self):
        return json.loads(self.body)


class Cut(bytes):
    """An answer after which its host closes the connection."""


class Reset(Cut):
    """An answer after which its host resets the connection."""


Reply = Callable[[Hit], bytes]


def whole(status: int = 200, body: bytes = b"page", **headers: object) -> bytes:
    """An answer with its head; `_` in a name is `-`."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = "\r\n".join([f"HTTP/1.1 {status} X", *lines, f"content-length: {len(body)}", "", ""])
    return head.encode() + body


async def read_message(reader):
    """A start line, headers by lower-case name, and the body."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    start, *lines = head.split("\r\n")[:-2]
    headers = {}
    for name, value in (line.split(": ", 1) for line in lines):
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    body = b""
    if "content-length" in headers:
        body = await reader.readexactly(int(headers["content-length"]))
    elif "chunked" in headers.get("transfer-encoding", ""):
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readuntil(b"\r\n")
    return start, headers, body


class World:
    """Every host there is; `reply` says what a hit is answered with, `hits` are what was seen."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.hits: list[Hit] = []
        self.connections = 0
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader, writer):
        self.connections += 1
        self.writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError), contextlib.closing(writer):
            while True:
                start, headers, body = await read_message(reader)
                method, path, _ = start.split(" ")
                hit = Hit(method, headers.get("host", ""), path, headers, body, asyncio.get_running_loop().time())
                self.hits.append(hit)
                said = self.reply(hit)
                if not said:
                    return
                writer.write(said)
                await writer.drain()
                if isinstance(said, Reset):
                    link = writer.get_extra_info("socket")
                    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                if isinstance(said, Cut):
                    return


class Caller:
    """One kept connection to the gate, as an agent's client has it."""

    def __init__(self, port):
        self.port = port
        self.streams = None

    async def send(self, data):
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        self.streams[1].write(data)
        await self.streams[1].drain()

    async def ask(self, method, target, headers=(), body=b""):
        """The answer to one request."""
        lines = [f"{name}: {value}" for name, value in dict(headers).items()]
        if not any(line.startswith("host:") for line in lines):
            lines.insert(0, "host: gate")
        if body:
            lines.append(f"content-length: {len(body)}")
        await self.send("\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""]).encode() + body)
        return await self.answer(method)

    async def answer(self, method="GET"):
        reader = self.streams[0]
        if method == "HEAD":
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lines = head.split("\r\n")[:-2]
            fields = dict(line.lower().split(": ", 1) for line in lines[1:])
            return Answer(int(lines[0].split(" ")[1]), fields, b"")
        start, headers, body = await read_message(reader)
        return Answer(int(start.split(" ")[1]), headers, body)

    def close(self):
        if self.streams is not None:
            self.streams[1].close()


class Stage(NamedTuple):
    """A running gate, the world behind it, and a caller before it."""

    gate: Gate
    world: World
    caller: Caller
    bugs: list[Exception]

    async def get(self, url, **headers):
        """GET through `/to/`, in headers `_` is `-`."""
        return await self.caller.ask("GET", to(url), {name.replace("_", "-"): said for name, said in headers.items()})

    @property
    def ends(self):
        """How the calls ended, in order."""
        return [entry.noted.end.value for entry in self.gate.journal.entries if hasattr(entry.noted, "end")]

    @property
    def reserved(self):
        cells = self.gate.store.book.cells.values()
        return sum(lease.amount for cell in cells for lease in cell.leases.values() if not lease.firm)


def to(url):
    """A URL as a path of the gate."""
    scheme, _, rest = url.partition("://")
    return f"/to/{scheme}/{rest}"


HOSTS = ("a.org", "b.org", "www.a.org", "api.c.net", "d.io")
FAST = """
[egress]
unknown = "100_000 per 1s"
ceiling = "100_000 per 1s"
in_flight = 1_000
most_in_flight = 1_000
wait = "5s"
"""


@contextlib.asynccontextmanager
async def stage(reply: Reply = lambda _hit: whole(), text: str = FAST, hosts=HOSTS) -> AsyncIterator[Stage]:
    """Start everything, and stop it in order; every test also proves that no bug was met and nothing stays reserved."""
    loop = asyncio.get_running_loop()
    world = World(reply)
    server = await asyncio.start_server(world.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    pins = "".join(f'"{host}" = "127.0.0.1:{port}"\n' for host in hosts)
    bugs: list[Exception] = []
    gate = wiring.gate(loop, config.parse(f"{text}\n[resolve]\n{pins}", {}), lambda _call, error: bugs.append(error))
    warm(gate)
    running = Stage(gate, world, Caller(await gate.start("127.0.0.1", 0)), bugs)
    try:
        yield running
    finally:
        running.caller.close()
        await gate.stop(drain_s=1)
        server.close()
        for writer in world.writers:
            writer.close()
        await asyncio.sleep(0)
    if bugs:
        raise bugs[0]
    assert running.reserved == 0


def warm(gate: Gate) -> None:
    """As if the gate had been up for long: a new one must assume that its budgets are used up."""
    book = gate.store.book
    book.birth_ms = -(2**51)
    for cell in book.cells.values():
        cell.level = cell.pending = 0
        cell.leases.clear()
