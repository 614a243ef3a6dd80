import asyncio
import socket
import struct

import pytest
from plain_relay import LOOPS, PlainRelay, Target, run

from eventually import eventually
from swarmgate.http1.faults import Fault

GET = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
SIZED = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
CHUNKS_HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"

on_both_loops = pytest.mark.parametrize("loop_name", sorted(LOOPS))


def answers(raw):
    return lambda transport, request: transport.write(raw)


async def ask(port: int, raw: bytes, *, until: bytes = b"") -> bytes:
    """Send and read: to the end of the connection, or until the answer ends so."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(raw)
    try:
        return await (reader.readuntil(until) if until else reader.read())
    finally:
        writer.close()


@on_both_loops
def test_calls_share_connections_and_clients_keep_theirs(loop_name):
    async def scenario():
        async with Target(answers(CHUNKED)) as target, PlainRelay(target.port) as relay:
            reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
            for at in range(20):
                writer.write(b"POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n%02d" % (at, at))
                assert (await reader.readuntil(b"0\r\n\r\n")).endswith(b"hello\r\n0\r\n\r\n")
            writer.close()
            assert [request[-2:] for request in target.requests] == [b"%02d" % at for at in range(20)]
            assert len(target.connections) == 1
            assert (relay.pool.uses, relay.pool.dials) == (20, 1)
            await eventually(lambda: len(relay.sweep) == 2)  # the pools' own and one idle connection

    run(loop_name, scenario)


@on_both_loops
def test_pipelined_requests_are_answered_in_order(loop_name):
    async def scenario():
        def echo(transport, request):
            path = request.split()[1]
            transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(path), path))

        async with Target(echo) as target, PlainRelay(target.port) as relay:
            raw = b"".join([b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % at for at in range(1000)])
            got = await ask(relay.port, raw, until=b"/999")
            assert got.count(b"HTTP/1.1 200 OK") == 1000
            assert [part.split(b"HTTP")[0] for part in got.split(b"\r\n\r\n/")[1:]] == [
                b"%d" % at for at in range(1000)
            ]

    run(loop_name, scenario)


@on_both_loops
@pytest.mark.parametrize(
    "raw", [SIZED, CHUNKED, CHUNKS_HEAD.replace(b"transfer-encoding: chunked\r\n", b"") + b"hello"]
)
def test_a_target_that_dies_anywhere_never_looks_whole(loop_name, raw):
    async def scenario():
        until_close = raw.endswith(b"\r\n\r\nhello") and b"content-length" not in raw

        def dies(at):
            def play(transport, request):
                transport.write(raw[:at])
                if until_close:
                    transport.get_extra_info("socket").setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                    )
                    asyncio.get_running_loop().call_later(0.01, transport.abort)
                else:
                    transport.close()

            return play

        for at in range(0, len(raw), 1 if not until_close else 7):
            async with Target(dies(at)) as target, PlainRelay(target.port) as relay:
                got = await ask(relay.port, GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
                if b"200 OK" in got:
                    assert not got.endswith((b"0\r\n\r\n", b"hello"))
                    assert relay.log[-1] == ("fault", Fault.TRUNCATED)
                else:
                    assert got.startswith(b"HTTP/1.1 502 ")
                    assert relay.log[-1] == ("fault", Fault.CLOSED_EARLY)

    run(loop_name, scenario)


@on_both_loops
def test_leftover_bytes_never_reach_the_next_caller(loop_name):
    async def scenario():
        async with (
            Target(answers(SIZED + SIZED.replace(b"hello", b"OTHER"))) as target,
            PlainRelay(target.port) as relay,
        ):
            for _ in range(5):
                assert b"OTHER" not in await ask(relay.port, GET, until=b"hello")
            assert len(target.connections) == 5

    run(loop_name, scenario)


@on_both_loops
def test_a_kept_connection_that_the_target_closed_is_not_used(loop_name):
    async def scenario():
        async with Target(answers(SIZED)) as target, PlainRelay(target.port) as relay:
            await ask(relay.port, GET, until=b"hello")
            target.connections[0].transport.close()
            await eventually(lambda: not relay.pool.idle())
            await ask(relay.port, GET, until=b"hello")
            assert len(target.connections) == 2
            assert not relay.log

    run(loop_name, scenario)


@on_both_loops
@pytest.mark.parametrize("half", [True, False])
def test_a_client_that_leaves_frees_the_target(loop_name, half):
    async def scenario():
        async with Target(lambda transport, request: None) as target, PlainRelay(target.port) as relay:
            _, writer = await asyncio.open_connection("127.0.0.1", relay.port)
            writer.write(GET)
            await eventually(lambda: target.requests)
            if half:
                writer.write_eof()
            else:
                writer.transport.abort()
            await eventually(lambda: target.connections[0].lost)
            assert relay.log == ["gone"]
            writer.close()

    run(loop_name, scenario)


@on_both_loops
def test_a_client_that_reads_slowly_stops_the_target(loop_name):
    async def scenario():
        loop, chunk, sent = asyncio.get_running_loop(), b"10000\r\n" + b"x" * 0x10000 + b"\r\n", []

        def pour(transport):
            if transport.get_write_buffer_size() == 0:
                sent.append(len(chunk))
                transport.write(chunk if len(sent) < 1000 else b"0\r\n\r\n")
            if len(sent) < 1000 and not transport.is_closing():
                loop.call_soon(pour, transport)

        def play(transport, request):
            transport.write(CHUNKS_HEAD)
            pour(transport)

        async with Target(play) as target, PlainRelay(target.port) as relay:
            link = socket.create_connection(("127.0.0.1", relay.port))
            link.setblocking(False)
            await loop.sock_sendall(link, GET)
            await eventually(lambda: "pause" in relay.log, 20)
            assert len(sent) < 500  # 64 MB would be all; two sockets and our buffer hold a part
            got = tail = b""
            while tail != b"0\r\n\r\n":
                got = await loop.sock_recv(link, 1 << 20)
                tail = (tail + got)[-5:]
            assert len(sent) == 1000
            link.close()

    run(loop_name, scenario)


@on_both_loops
def test_a_broken_request_is_answered_and_the_answer_arrives(loop_name):
    async def scenario():
        async with Target(answers(SIZED)) as target, PlainRelay(target.port) as relay:
            flood = (
                b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
                + b"x" * 100_000
            )
            got = await ask(relay.port, flood)
            assert got.startswith(b"HTTP/1.1 400 ")
            assert b"te_and_cl" in got
            assert not target.requests

    run(loop_name, scenario)


@on_both_loops
def test_a_cut_answer_to_http_1_0_is_a_reset(loop_name):
    async def scenario():
        def play(transport, request):
            transport.write(CHUNKED[:-8])
            transport.close()

        async with Target(play) as target, PlainRelay(target.port) as relay:
            with pytest.raises(ConnectionResetError):
                await ask(relay.port, b"GET / HTTP/1.0\r\n\r\n")

    run(loop_name, scenario)
