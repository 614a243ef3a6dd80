"""AZ-09: connections that say nothing, heads without end and floods of connections keep no operator out."""

import asyncio
import contextlib
import socket

import pytest
import uvicorn

from eventually import eventually
from swarmgate.control import connections
from swarmgate.control.connections import OperatorConnection
from swarmgate.control.process import _Server

REQUEST = b"GET / HTTP/1.1\r\nhost: g\r\n\r\n"


class Port:
    """A server whose answer to `/slow` waits until it is told to come."""

    def __init__(self):
        self.go_on = asyncio.Event()
        self.door = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(self, lifespan="off", log_config=None, access_log=False, http=OperatorConnection)
        self.server = _Server(config)

    async def __call__(self, scope, _receive, send):
        if scope["path"] == "/slow":
            await self.go_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    @contextlib.asynccontextmanager
    async def serving(self):
        task = asyncio.get_running_loop().create_task(self.server.serve([self.door]), name="port")
        await eventually(lambda: self.server.started)
        try:
            yield self
        finally:
            self.go_on.set()
            self.server.should_exit = True
            await task

    @contextlib.asynccontextmanager
    async def caller(self):
        reader, writer = await asyncio.open_connection(*self.door.getsockname())
        with contextlib.closing(writer):
            yield reader, writer


def run(scene):
    async def play():
        async with Port().serving() as port, contextlib.AsyncExitStack() as stack:
            await asyncio.wait_for(scene(port, lambda: stack.enter_async_context(port.caller())), 20)

    asyncio.run(play())


async def asked(caller, raw=REQUEST):
    reader, writer = caller
    writer.write(raw)
    return await reader.readuntil(b"\r\n\r\nok")


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nhost: g\r\nx-a: "], ids=["nothing", "half a head"])
@pytest.mark.parametrize("before", [0, 2])
def test_az_09_who_never_finishes_a_head_is_let_go(begun, before, monkeypatch):
    monkeypatch.setattr(connections, "HEAD_S", 0.1)

    async def scene(port, come):
        reader, writer = caller = await come()
        for _ in range(before):
            assert (await asked(caller)).startswith(b"HTTP/1.1 200")
        writer.write(begun)
        if begun or not before:  # between two requests uvicorn's own time counts
            assert await reader.read() == b""

    run(scene)


def test_az_09_a_head_without_end_is_cut_off(monkeypatch):
    monkeypatch.setattr(connections, "HEAD_S", 60.0)

    async def scene(port, come):
        reader, writer = await come()
        with contextlib.suppress(ConnectionError):
            writer.write(b"GET / HTTP/1.1\r\nx-a: " + b"a" * (4 * connections.MOST_HEAD_BYTES))
            assert await reader.read() == b""
        assert (await asked(await come())).startswith(b"HTTP/1.1 200")

    run(scene)


def test_az_09_a_flood_of_connections_keeps_no_operator_out_and_cuts_no_answer(monkeypatch):
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 8)

    async def scene(port, come):
        slow = await come()
        slow[1].write(REQUEST.replace(b"/ ", b"/slow ", 1))
        await eventually(lambda: len(port.server.server_state.tasks) == 1)
        with contextlib.ExitStack() as flood:
            address = port.door.getsockname()
            sockets = [
                flood.enter_context(socket.create_connection(address)) for _ in range(60)
            ]  # come in one turn of the loop
            assert (await asked(await come())).startswith(b"HTTP/1.1 200")
            sockets[0].settimeout(5)
            assert sockets[0].recv(1) == b""
            held = port.server.server_state.connections
            await eventually(lambda: len(held) <= 8 and sum(is_open(one) for one in sockets) <= 8)
            port.go_on.set()
            assert await slow[0].readuntil(b"\r\n\r\nok")

    run(scene)


def is_open(one):
    """Whether the other end has not closed it."""
    one.setblocking(False)
    try:
        return one.recv(1) != b""
    except BlockingIOError:
        return True
