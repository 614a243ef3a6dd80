"""Who reads slowly where TLS stands on a side of the gate (reliability SE-05): what is held for him, in the TLS layers too."""

import asyncio
import contextlib
import socket
import ssl
import threading

import pytest
from plain_relay import LOOPS, PlainRelay, run
from slow_readers import PIECE, SIZE, TARGETS, counted, held, pour

from certificates import made_in
from eventually import eventually
from swarmgate.http1.small_reads import SMALL_READ_BYTES
from swarmgate.http1.tls import Contexts, client_context, server_context

PAUSES, MOST_TURNS = 3, 4_000
SIDES = {"targets": 96 * 1024, "callers": 256 * 1024, "both": 256 * 1024}  # where TLS is


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made_in(tmp_path_factory.mktemp("tls"))


async def shake_hands(link):
    while True:
        with contextlib.suppress(ssl.SSLWantReadError):
            return link.do_handshake()
        await asyncio.sleep(0)


def in_layers(relay):
    """Bytes in TLS layers, of which the allocator does not know."""
    layers = []
    for end in relay.ends:
        if end.call is not None and end.call.up is not None:
            if relay.tls.callers is not None:
                layers.append(end._transport.get_write_buffer_size)
            layers.append(getattr(end.call.up._transport, "get_read_buffer_size", int))
    return sum(size() for size in layers)


@pytest.mark.parametrize("framing", ["chunked", "sized"])
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("loop_name", sorted(LOOPS))
def test_se_05_what_waits_for_a_slow_reader_is_bounded_in_tls_too(loop_name, side, framing, folder):
    own = server_context(folder / "leaf.pem", folder / "leaf.key")
    theirs = client_context(folder / "ca.pem")
    tls = Contexts(theirs if side != "callers" else None, own if side != "targets" else None)

    async def scenario():
        taken, most, turn, room = 0, 0, 0, bytearray(0x10000)
        async with PlainRelay(listener.getsockname()[1], tls=tls) as relay:
            link = socket.socket()
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0x8000)  # of a reader that is full often
            link.connect(("127.0.0.1", relay.port))
            link.setblocking(False)
            if tls.callers:
                link = theirs.wrap_socket(link, server_hostname="127.0.0.1", do_handshake_on_connect=False)
                await shake_hands(link)
            relay.cleanup.append(link.close)
            before = held()
            assert link.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            while relay.log.count("pause") < PAUSES and turn < MOST_TURNS:
                await asyncio.sleep(0)
                most = max(most, held() - before + in_layers(relay))
                if "pause" in relay.log:
                    turn += 1
                    with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError):
                        taken += link.recv_into(room, 1 + turn * 79_193 % len(room))
        assert turn < MOST_TURNS
        assert taken < SIZE
        assert SMALL_READ_BYTES < most <= SIDES[side]

    with socket.create_server(("127.0.0.1", 0)) as listener, counted():
        context = own if tls.targets else None
        thread = threading.Thread(target=pour, args=(listener, *TARGETS[framing], context))
        thread.start()
        run(loop_name, scenario)
        thread.join()


@pytest.mark.parametrize("loop_name", sorted(LOOPS))
def test_se_05_what_a_target_said_before_it_closed_reaches_a_slow_reader_whole(loop_name, folder):
    own = server_context(folder / "leaf.pem", folder / "leaf.key")
    tls = Contexts(client_context(folder / "ca.pem"), None)
    size = 128 * len(PIECE)

    def say(listener):
        link = own.wrap_socket(listener.accept()[0], server_side=True)
        with link:
            link.recv(65_536)
            link.sendall(TARGETS["until close"][0])
            for _ in range(size // len(PIECE)):
                link.sendall(PIECE)
            with contextlib.suppress(OSError):  # the gate closes without a word of its own
                link.unwrap()

    async def scenario():
        loop = asyncio.get_running_loop()
        async with PlainRelay(listener.getsockname()[1], tls=tls) as relay:
            link = socket.socket()
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0x8000)
            link.connect(("127.0.0.1", relay.port))
            link.setblocking(False)
            relay.cleanup.append(link.close)
            await loop.sock_sendall(link, b"GET / HTTP/1.0\r\nHost: a\r\n\r\n")
            await eventually(lambda: "pause" in relay.log)
            got = 0
            while piece := await loop.sock_recv(link, 0x10000):
                got += len(piece)
            assert size < got < size + 200  # and the head
        await eventually(lambda: not thread.is_alive())

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=say, args=(listener,))
        thread.start()
        run(loop_name, scenario)
        thread.join()
