"""Who reads slowly (reliability SE-05): what the gate holds for him, counted by the allocator, over real sockets."""

import asyncio
import contextlib
import socket
import threading

import pytest
from plain_relay import LOOPS, PlainRelay, run
from slow_readers import PIECE, SIZE, TARGETS, counted, held, pour

from eventually import eventually
from swarmgate.http1.acknowledged import waiting_bytes
from swarmgate.http1.reader_pace import STALLED_WRITE_MS

MOST_HELD = 256 * 1024 + 16  # of one stream; asyncio reads 256 KiB at once, and a chunk has a size line
PAUSES, MOST_TURNS = 4, 4_000


@pytest.mark.parametrize("framing", TARGETS)
@pytest.mark.parametrize("loop_name", sorted(LOOPS))
def test_se_05_at_most_256_kib_wait_for_a_slow_reader(loop_name, framing):
    async def scenario():
        loop = asyncio.get_running_loop()
        taken, most, room = 0, 0, bytearray(0x10000)
        async with PlainRelay(listener.getsockname()[1]) as relay:
            link = socket.socket()
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0x8000)  # of a reader that is full often
            link.connect(("127.0.0.1", relay.port))
            before = held()  # its modules are loaded
            relay.cleanup.append(link.close)
            link.setblocking(False)
            await loop.sock_sendall(link, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            turn = 0
            while relay.log.count("pause") < PAUSES and turn < MOST_TURNS:
                await asyncio.sleep(0)
                most = max(most, held() - before)
                if "pause" in relay.log:
                    turn += 1
                    with contextlib.suppress(BlockingIOError):
                        taken += link.recv_into(room, 1 + turn * 79_193 % len(room))  # in odd pieces
        assert turn < MOST_TURNS
        assert taken < SIZE
        assert len(PIECE) // 2 < most <= MOST_HELD

    with socket.create_server(("127.0.0.1", 0)) as listener, counted():
        thread = threading.Thread(target=pour, args=(listener, *TARGETS[framing]))
        thread.start()
        run(loop_name, scenario)
        thread.join()


@pytest.mark.parametrize("loop_name", sorted(LOOPS))
def test_hi_04_a_reader_that_takes_4_kib_in_30_s_out_of_the_kernels_buffer_is_no_stalled_one(loop_name):
    """While a few hundred kilobytes are taken from megabytes in the kernel, nothing of what waits here moves."""

    async def scenario():
        loop = asyncio.get_running_loop()
        async with PlainRelay(listener.getsockname()[1]) as relay:
            link = socket.create_connection(("127.0.0.1", relay.port))
            relay.cleanup.append(link.close)
            link.setblocking(False)
            await loop.sock_sendall(link, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await eventually(lambda: "pause" in relay.log)
            (end,) = relay.ends
            for number in range(1, 5):
                before = waiting_bytes(end._transport)
                while waiting_bytes(end._transport) > before - 4_096 and end.is_full:
                    with contextlib.suppress(BlockingIOError):
                        link.recv(16_384)
                    await asyncio.sleep(0)
                relay.sweep.look(relay.sweep.now_ms + STALLED_WRITE_MS)
                assert "gone" not in relay.log, number
                assert not end.is_closing(), number
            relay.sweep.look(relay.sweep.now_ms + 2 * STALLED_WRITE_MS)
            await eventually(lambda: "gone" in relay.log)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=pour, args=(listener, *TARGETS["sized"]))
        thread.start()
        run(loop_name, scenario)
        thread.join()
