"""HI-10 where nobody reads: a caller leaves behind an upload that is larger than what the buffers of all kernels hold."""

import asyncio
import contextlib
import socket
import struct

import pytest
from stage import TARGET, stage
from test_front import request

from eventually import eventually
from kernels import TELLS_OF_SOCKETS
from swarmgate.engine.loops import new_event_loop
from swarmgate.http1.client_limits import LOOK_MS

WHOLE, PIECE = 64 * 1024 * 1024, bytes(256 * 1024)
UPLOAD = b"POST /v1/files HTTP/1.1\r\nhost: g\r\ncontent-length: %d\r\n\r\n" % WHOLE
RESET = struct.pack("ii", 1, 0)  # SO_LINGER 0: close with RST


def closes(caller):
    caller.close()


def resets(caller):
    caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    caller.close()


def half_closes(caller):
    caller.shutdown(socket.SHUT_WR)


LEAVES = pytest.mark.parametrize("leave", [closes, resets, half_closes])
LOOPS = pytest.mark.parametrize("loop", [asyncio.new_event_loop, new_event_loop], ids=["asyncio", "chosen"])


def run(play, loop=new_event_loop):
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(play())


def takes_no_more(caller):
    """Write what the kernels take now; whether that was nothing."""
    sent = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            sent += caller.send(PIECE)
    return not sent


@contextlib.asynccontextmanager
async def stuck_caller(on):
    """A caller whose bytes the gate has ceased to read, with more of them than the kernels hold."""
    with socket.create_connection(("127.0.0.1", on.port)) as caller:
        caller.setblocking(False)
        caller.send(UPLOAD)

        def is_stuck():
            ends = [call.client.end for call in on.gate.pump.open]
            return takes_no_more(caller) and ends and ends[-1]._paused

        await eventually(is_stuck, 20)
        yield caller


@contextlib.asynccontextmanager
async def deaf_target():
    """A target that reads nothing until it is told to; its port, the word, and what it had read when its caller left."""
    listens, heard = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def serve(reader, writer):
        size = 0
        with contextlib.closing(writer):
            await listens.wait()
            with contextlib.suppress(ConnectionError):
                while data := await reader.read(len(PIECE)):
                    size += len(data)
            heard.set_result(size)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], listens, heard
    finally:
        server.close()


async def nothing_is_left(on, calls=0):
    """The caller's call is cancelled, and holds nothing."""
    await eventually(lambda: on.ends == ["cancelled"])
    assert len(on.gate.pump.open) == calls
    assert on.reserved == calls
    assert on.gate.store.book.line("up: 1 concurrent").order == []


@TELLS_OF_SOCKETS
@LOOPS
@TELLS_OF_SOCKETS
@LEAVES
def test_hi_10_who_leaves_while_its_target_does_not_read_is_cancelled_there(leave, loop):
    async def play():
        async with deaf_target() as (port, listens, heard):
            text = TARGET.replace("{port}", str(port)) + 'limits = ["1 concurrent"]\n'
            async with stage(text=text) as on, stuck_caller(on) as caller:
                leave(caller)
                await nothing_is_left(on)
                listens.set()
                assert await heard < WHOLE

    run(play, loop)


@TELLS_OF_SOCKETS
@LEAVES
def test_hi_10_who_leaves_while_it_waits_in_line_is_out_of_it(leave):
    async def play():
        text = TARGET + 'limits = ["1 concurrent"]\n'
        async with stage(lambda stand_in, _hit, _writer: stand_in.go_on.wait(), text) as on:
            _, first = await asyncio.open_connection("127.0.0.1", on.port)
            first.write(request("/v1/files", b"x"))
            await eventually(lambda: len(on.stand_in.hits) == 1)
            async with stuck_caller(on) as caller:
                leave(caller)
                try:
                    await nothing_is_left(on, calls=1)
                finally:
                    on.stand_in.go_on.set()
                    first.close()
            assert len(on.stand_in.hits) == 1

    run(play)


@LOOPS
def test_who_stays_while_nobody_reads_is_served_in_the_end(loop):
    async def play():
        async with deaf_target() as (port, listens, heard), stage(text=TARGET.replace("{port}", str(port))) as on:
            async with stuck_caller(on) as caller:
                looked = on.gate.sweep.now_ms
                await eventually(lambda: on.gate.sweep.now_ms - looked > 2 * LOOK_MS)
                assert on.ends == []
                listens.set()
                await eventually(lambda: not takes_no_more(caller))
            assert await heard > 0
            await eventually(lambda: on.ends == ["cancelled"])

    run(play, loop)
