from itertools import pairwise
from socket import SHUT_WR, socketpair

import pytest
from wire import Line

from swarmgate.http1.client_end import MAX_WAITING_BYTES, MOST_A_TURN
from swarmgate.http1.client_limits import BODY_MS, HEAD_MS, KEEP_ALIVE_MS, LEAST_BODY_BYTES, LOOK_MS
from swarmgate.http1.connection import FULL_READ_BYTES
from swarmgate.http1.cork import Cork
from swarmgate.http1.goodbye import GOODBYE_MS
from swarmgate.http1.reader_pace import STALLED_WRITE_MS
from swarmgate.http1.sweep import NEVER

GET = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
UPLOAD = b"POST /u HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
GOT = [("request", b"GET", b"/a"), ("complete", b"")]


def say_ok(end):
    end.respond(200, [], b"ok")


def test_silence_has_a_limit_and_a_call_has_none():
    idle = Line()
    idle.pass_ms(KEEP_ALIVE_MS - 1)
    assert not idle.transport.closed
    idle.pass_ms(1)
    assert (idle.transport.closed, idle.written) == (True, b"")
    busy = Line()
    busy.send(GET)
    assert busy.end.deadline_ms == NEVER
    say_ok(busy.end)
    assert busy.end.deadline_ms == KEEP_ALIVE_MS


def test_who_does_not_read_an_answer_given_at_once_has_the_limit_of_a_stalled_reader():
    line = Line(say_ok)

    def write(_data):
        line.transport.unread = 5
        line.end.pause_writing()

    line.transport.write = write
    line.send(GET)
    assert line.end.deadline_ms <= STALLED_WRITE_MS
    line.end.resume_writing()
    assert line.end.deadline_ms == KEEP_ALIVE_MS


def test_hi_04_a_slow_head_gets_its_limit_from_its_first_byte():
    line = Line()
    for at in range(HEAD_MS // 1000):
        line.send(GET[at : at + 1])
        line.pass_ms(1000)
    assert line.events == [("refused", "head_timeout")]
    assert line.written.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("drip", [b"", b"1", b"1" * (LEAST_BODY_BYTES // 30 - 1)])
def test_hi_04_an_upload_that_drips_is_cancelled_as_a_silent_one_is(drip):
    line = Line()
    line.send(UPLOAD.replace(b"9", b"99999"))
    for _ in range(BODY_MS // 1_000):
        assert len(line.events) == 1
        line.send(*([drip] if drip else []))
        line.pass_ms(1_000)
    assert line.events == [("request", b"POST", b"/u"), ("gone",), ("refused", "body_timeout")]
    assert line.written.startswith(b"HTTP/1.1 408 ")


def test_a_slow_upload_has_its_time_anew_for_each_bit_of_it():
    line = Line()
    line.send(UPLOAD.replace(b"9", b"%d" % (20 * LEAST_BODY_BYTES)))
    for _ in range(20):
        line.send(b"1" * (LEAST_BODY_BYTES - 1))
        line.pass_ms(BODY_MS - 1)
        line.send(b"1")
    assert line.events[-1][0] == "complete"


def test_a_paused_upload_has_no_limit():
    line = Line()
    line.send(UPLOAD)
    line.end.pause()
    assert line.transport.paused
    line.pass_ms(10 * BODY_MS)
    line.end.resume()
    assert not line.transport.paused
    line.pass_ms(BODY_MS - 1)
    assert not line.transport.closed
    line.pass_ms(1)
    assert ("refused", "body_timeout") in line.events


def test_an_upload_paused_while_the_answer_flows_has_no_limit():
    line = Line()
    line.send(UPLOAD)
    line.end.start_stream(200, [])
    line.end.pause()
    line.end.pause_writing()
    line.end.resume_writing()
    line.pass_ms(10 * BODY_MS)
    assert not line.transport.closed


@pytest.mark.parametrize("raw", [UPLOAD + b"1234", GET + b"x" * MAX_WAITING_BYTES], ids=["upload", "pipelined"])
def test_hi_10_who_leaves_while_its_bytes_are_not_read_has_left(raw):
    line = Line()
    ours, theirs = socketpair()
    line.transport.fileno = ours.fileno
    with ours, theirs:
        line.send(raw)
        line.end.pause()
        line.pass_ms(10 * LOOK_MS)
        assert ("gone",) not in line.events
        theirs.sendall(b"unread")
        theirs.shutdown(SHUT_WR)
        line.pass_ms(LOOK_MS)
    assert line.events[-1] == ("gone",)
    assert line.transport.aborted


def test_who_does_not_read_its_answer_is_cut_off_although_its_upload_is_paused():
    line = Line()
    line.send(UPLOAD)
    line.end.start_stream(200, [])
    line.transport.unread = 100_000
    line.end.pause_writing()
    line.end.pause()
    line.pass_ms(STALLED_WRITE_MS)
    assert line.transport.aborted


def test_a_stalled_reader_pauses_the_source_and_is_cut_off_in_the_end():
    line = Line()
    line.send(GET)
    line.end.start_stream(200, [])
    line.end.pause_writing()
    line.pass_ms(STALLED_WRITE_MS - 1)
    line.end.resume_writing()
    line.pass_ms(STALLED_WRITE_MS)
    assert not line.transport.closed
    line.end.pause_writing()
    line.pass_ms(STALLED_WRITE_MS)
    assert line.transport.aborted
    line.end.connection_lost(None)
    assert line.events == [*GOT, ("pause",), ("resume",), ("pause",), ("gone",)]


def test_a_slow_reader_is_none_that_stalls():
    line = Line()
    line.send(GET)
    line.end.start_stream(200, [])
    line.transport.unread = 100_000
    line.end.pause_writing()
    for unread in (87_500, 70_000, 60_000, 20_000, 15_904):
        line.transport.unread = unread
        line.pass_ms(STALLED_WRITE_MS)
        assert not line.transport.closed
    line.transport.unread -= 4_095
    line.pass_ms(STALLED_WRITE_MS)
    assert line.transport.aborted


@pytest.mark.parametrize("leaves", ["half", "whole"])
def test_who_has_left_is_not_full_any_more(leaves):
    """An answer that outlives its caller (a write with a key) would be paused for good."""
    line = Line()
    line.send(GET)
    line.end.pause_writing()
    assert line.end.is_full
    if leaves == "half":
        line.end.eof_received()
    else:
        line.end.connection_lost(None)
    assert not line.end.is_full


def test_a_reader_is_stalled_after_30_s():
    assert STALLED_WRITE_MS == 30_000


def test_the_last_answer_has_its_time_to_leave_and_no_more():
    line = Line()
    line.send(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    say_ok(line.end)
    assert line.transport.closed
    line.pass_ms(GOODBYE_MS - 1)
    line.end.resume_writing()
    assert not line.transport.aborted
    line.pass_ms(1)
    assert line.transport.aborted


def test_pipelined_requests_leave_the_rest_of_a_turn_to_others():
    line, later, answered = Line(say_ok), [], [0]
    line.sweep.cork = Cork(later.append)
    line.send(GET * 3000)
    assert line.transport.paused
    line.send(GET * 10)  # what had been read already
    while later:
        answered.append(len(line.events) // 2)
        turn, later[:] = later[:], []
        for act in turn:
            act()
    assert max(after - before for before, after in pairwise(answered)) == MOST_A_TURN
    assert line.written == ANSWER * 3010
    assert not line.transport.paused


def test_after_a_full_read_others_are_heard_first():
    line, later = Line(), []
    line.sweep.cork = Cork(later.append)
    line.send(UPLOAD.replace(b": 9", b": 999999") + bytes(FULL_READ_BYTES))
    assert line.transport.paused
    later.pop()()
    assert not line.transport.paused
    line.send(bytes(FULL_READ_BYTES))
    line.end.pause()
    later.pop()()
    assert line.transport.paused
    line.end.resume()
    assert not line.transport.paused


def test_whoever_reads_no_answers_gets_no_more_and_is_read_no_further():
    line = Line(say_ok)
    line.send(GET)
    line.end.pause_writing()
    for _ in range(2):
        line.send(GET * (MAX_WAITING_BYTES // len(GET)))
    assert line.written == ANSWER
    assert line.transport.paused
    line.end.resume_writing()
    assert line.written == ANSWER * (1 + 2 * (MAX_WAITING_BYTES // len(GET)))
    assert not line.transport.paused
