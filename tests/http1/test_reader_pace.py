"""A client that stops reading is cut 30 s after it last took enough, and never so that a part passes for the whole."""

import asyncio
import contextlib
import socket
import threading

import pytest
from plain_relay import LOOPS, PlainRelay, run
from slow_readers import TARGETS, pour
from wire import Line

from eventually import eventually
from swarmgate.http1.acknowledged import waiting_bytes
from swarmgate.http1.client_limits import BODY_MS, LOOK_MS
from swarmgate.http1.goodbye import GOODBYE_MS
from swarmgate.http1.reader_pace import LEAST_READ_BYTES, LOOK_AT_READER_MS, STALLED_WRITE_MS

GET = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
OLD = b"GET /a HTTP/1.0\r\nHost: a\r\n\r\n"
OLD_UPLOAD = b"POST /u HTTP/1.0\r\nHost: a\r\nContent-Length: 9\r\n\r\n"
RESET = socket.SOL_SOCKET, socket.SO_LINGER
QUIET = 20  # looks that found the same
SECONDS = STALLED_WRITE_MS // LOOK_AT_READER_MS


def full(raw=GET, unread=100_000):
    line = Line()
    line.send(raw)
    line.end.start_stream(200, [])
    line.transport.unread = unread
    line.end.pause_writing()
    return line


def is_reset(line):
    return line.transport.aborted and [option[:2] for option in line.transport.options] == [RESET]


def test_what_the_kernels_still_moved_gives_no_second_half_minute():
    line = full()
    line.transport.unread = 50_000
    for _ in range(SECONDS):
        assert not line.transport.closed
        line.pass_ms(LOOK_AT_READER_MS)
    assert not line.transport.closed
    line.pass_ms(LOOK_AT_READER_MS)
    assert line.transport.aborted


@pytest.mark.parametrize("drip", [0, 1, (LEAST_READ_BYTES - 1) // SECONDS])
def test_hi_04_a_reader_that_trickles_is_cut_as_one_that_stands(drip):
    line = full(unread=20_000)
    for _ in range(SECONDS):
        assert not line.transport.closed
        line.transport.unread -= drip
        line.pass_ms(LOOK_AT_READER_MS)
    assert line.transport.aborted


def test_who_takes_enough_in_small_bits_is_no_stalled_one():
    line = full(unread=1_000_000)
    for _ in range(3 * SECONDS):
        line.transport.unread -= max(LEAST_READ_BYTES, line.transport.unread >> 3) // (SECONDS - 2)
        line.pass_ms(LOOK_AT_READER_MS)
        assert not line.transport.closed


def test_a_full_reader_keeps_its_limit_while_it_uploads():
    line = Line()
    line.send(b"POST /u HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
    line.end.start_stream(200, [])
    line.transport.unread = 100_000
    line.end.pause_writing()
    for _ in range(SECONDS):
        assert not line.transport.closed
        line.send(b"x" * 8_192)
        line.end.pause()
        line.end.resume()
        line.pass_ms(LOOK_AT_READER_MS)
    assert line.transport.aborted


def test_the_end_of_its_upload_gives_a_full_reader_no_time_for_good():
    line = Line()
    line.send(b"POST /u HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n")
    line.end.start_stream(200, [])
    line.transport.unread = 100_000
    line.end.pause_writing()
    line.send(b"body")
    line.pass_ms(STALLED_WRITE_MS)
    assert line.transport.aborted


def test_the_last_answer_has_the_limit_of_a_reader_while_it_waits_here():
    line = full(OLD)
    line.end.finish()
    for _ in range(SECONDS):
        assert not line.transport.aborted
        line.pass_ms(LOOK_AT_READER_MS)
    assert is_reset(line)


def quiet_line():
    seen = []

    def is_quiet(end):
        seen.append(waiting_bytes(end._transport))
        return end.is_full and len(seen) > QUIET and len(set(seen[-QUIET:])) == 1

    return is_quiet


def stall(line):
    line.transport.unread = 100_000
    line.end.pause_writing()
    line.pass_ms(STALLED_WRITE_MS)


def leave_half(line):
    line.end.eof_received()


def end_too_late(line):
    line.end.finish()
    line.transport.unread = 1
    line.pass_ms(GOODBYE_MS)


@pytest.mark.parametrize("ends", [stall, leave_half, end_too_late, lambda line: line.end.cut()])
def test_no_part_of_an_answer_that_ends_with_its_connection_passes_for_the_whole(ends):
    line = Line()
    line.send(OLD)
    line.end.start_stream(200, [])
    line.end.write_chunk(b"part")
    ends(line)
    assert is_reset(line)


def test_an_upload_that_breaks_under_such_an_answer_resets_it():
    line = Line()
    line.send(OLD_UPLOAD)
    line.end.start_stream(200, [])
    line.end.write_chunk(b"part")
    line.pass_ms(BODY_MS)
    assert is_reset(line)
    assert line.events[-1] == ("gone",)


def test_who_half_closed_behind_bytes_that_are_not_read_is_reset_too():
    line = Line()
    ours, theirs = socket.socketpair()
    line.transport.fileno = ours.fileno
    with ours, theirs:
        line.send(OLD_UPLOAD)
        line.end.start_stream(200, [])
        line.end.pause()
        theirs.shutdown(socket.SHUT_WR)
        line.pass_ms(LOOK_MS)
    assert is_reset(line)


def test_a_tunnel_whose_client_said_its_last_byte_ends_cleanly():
    line = Line(lambda end: end.open_tunnel(idle_ms=1000))
    line.send(b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n")
    line.end.eof_received()
    assert not line.transport.options


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize("loop_name", sorted(LOOPS))
def test_a_default_socket_that_stops_reading_is_cut_after_30_s_and_reads_no_clean_end(loop_name, version):
    async def scenario():
        loop = asyncio.get_running_loop()
        async with PlainRelay(listener.getsockname()[1]) as relay:
            link = socket.create_connection(("127.0.0.1", relay.port))
            relay.cleanup.append(link.close)
            link.setblocking(False)
            await loop.sock_sendall(link, b"GET / HTTP/%s\r\nHost: a\r\n\r\n" % version)
            await eventually(lambda: "pause" in relay.log)
            relay.sweep.stop()
            (end,) = relay.ends
            await eventually(lambda: is_quiet(end))  # the kernels have moved what they could since the first pause
            for _ in range(2 + SECONDS):
                relay.sweep.look(relay.sweep.now_ms + LOOK_AT_READER_MS)
                looks.append(end.is_closing())
            await eventually(lambda: "gone" in relay.log)
            with contextlib.suppress(ConnectionResetError):
                while await loop.sock_recv(link, 0x10000):
                    pass
                ended.append("clean")

    looks, ended, is_quiet = [], [], quiet_line()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=pour, args=(listener, *TARGETS["chunked"]))
        thread.start()
        run(loop_name, scenario)
        thread.join()
    assert looks.index(True) >= SECONDS - 1
    assert not ended
