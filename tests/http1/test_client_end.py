import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire import Line

from swarmgate.http1.client_end import MAX_WAITING_BYTES
from swarmgate.http1.client_limits import BODY_MS
from swarmgate.http1.goodbye import GOODBYE_MS
from swarmgate.http1.render import BadField

GET = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
UPLOAD = b"POST /u HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"
CONNECT = b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"
OLD = b"GET /o HTTP/1.0\r\n\r\n"


def say_ok(end):
    end.respond(200, [(b"x-a", b"b")], b"ok")


OK = b"HTTP/1.1 200 OK\r\nx-a: b\r\ncontent-length: 2\r\n\r\nok"
THREE = [
    ("request", b"GET", b"/a"),
    ("complete", b""),
    ("request", b"POST", b"/b"),
    ("complete", b"hello"),
    ("request", b"POST", b"/c"),
    ("complete", b"hello"),
]


def test_pipelined_requests_are_the_same_at_every_split():
    raw = GET + POST + CHUNKED
    for at in range(len(raw) + 1):
        line = Line(say_ok)
        line.send(raw[:at], raw[at:])
        assert line.events == THREE
        assert line.written == OK * 3
        assert not line.transport.closed


def test_one_byte_per_read_is_the_same():
    line = Line(say_ok)
    line.send(*[bytes([byte]) for byte in GET + POST + CHUNKED])
    assert line.events == THREE


def test_one_call_at_a_time_however_much_has_come():
    line = Line()
    raw = GET + POST + CHUNKED
    for at in range(0, len(raw), 9):
        line.send(raw[at : at + 9])
    for count in (2, 4, 6):
        assert line.events == THREE[:count]
        say_ok(line.end)
    assert line.events == THREE
    assert line.written == OK * 3


@pytest.mark.parametrize("at_once", [True, False])
def test_a_thousand_pipelined_requests_keep_their_order_and_the_stack(at_once):
    line = Line(say_ok if at_once else None)
    line.send(b"".join([b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % at for at in range(1000)]))
    while not at_once and line.end.head is not None:
        say_ok(line.end)
    assert [target for _, _, target in line.events[::2]] == [b"/%d" % at for at in range(1000)]
    assert line.written == OK * 1000


def test_pipelined_bytes_wait_up_to_a_cap_and_reading_goes_on_afterwards():
    line = Line()
    line.send(GET)
    line.send(GET + b"x" * (MAX_WAITING_BYTES - len(GET) - 1))
    assert not line.transport.paused
    line.send(b"x")
    assert line.transport.paused
    say_ok(line.end)
    assert not line.transport.paused


@pytest.mark.parametrize("leave", [lambda end: end.eof_received(), lambda end: end.connection_lost(None)])
def test_a_client_that_leaves_is_told_once_and_gets_nothing_more(leave):
    line = Line()
    line.send(GET)
    line.end.start_stream(200, [])
    before = line.written
    leave(line.end)
    line.end.connection_lost(None)
    line.end.write_chunk(b"late")
    line.end.finish()
    say_ok(line.end)
    assert line.events == [*THREE[:2], ("gone",)]
    assert line.written == before
    assert len(line.sweep) == 0


def test_a_client_that_leaves_between_calls_is_not_gone_from_one():
    line = Line(say_ok)
    line.send(GET)
    line.end.eof_received()
    assert line.events == THREE[:2]


def test_a_stream_is_chunks_and_then_the_next_request():
    line = Line()
    line.send(GET + GET)
    line.end.start_stream(200, [(b"content-type", b"text/event-stream")])
    for payload in (b"data: 1\n\n", b"", b"x" * 16):
        line.end.write_chunk(payload)
    line.end.finish()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    assert line.written == head + b"9\r\ndata: 1\n\n\r\n10\r\n" + b"x" * 16 + b"\r\n0\r\n\r\n"
    assert line.events == THREE[:2] * 2


def test_a_stream_of_known_length_is_not_framed():
    line = Line()
    line.send(GET)
    line.end.start_stream(206, [], 4)
    line.end.write_chunk(b"ab")
    line.end.write_chunk(b"cd")
    line.end.finish()
    assert line.written == b"HTTP/1.1 206 Partial Content\r\ncontent-length: 4\r\n\r\nabcd"


@pytest.mark.parametrize("written", [b"", b"abc", b"abcde"])
def test_a_promised_length_that_is_not_kept_ends_the_connection(written):
    line = Line()
    line.send(GET + GET)
    line.end.start_stream(200, [], 4)
    line.end.write_chunk(written)
    line.end.finish()
    assert line.transport.closed
    assert line.events == THREE[:2]


def test_an_answer_that_cannot_be_rendered_leaves_the_call_to_be_answered():
    line = Line()
    line.send(GET)
    with pytest.raises(BadField):
        line.end.start_stream(200, [(b"x", b"a\r\nb")])
    say_ok(line.end)
    assert line.written == OK


def test_cutting_what_is_over_harms_nobody():
    line = Line(say_ok)
    line.send(GET)
    line.end.cut()
    line.send(GET)
    assert line.written == OK * 2


def test_a_stream_to_http_1_0_ends_with_the_connection():
    line = Line()
    line.send(OLD)
    line.end.start_stream(200, [])
    line.end.write_chunk(b"ab")
    line.end.finish()
    assert line.written == b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nab"
    assert line.transport.closed
    assert not line.transport.options


@pytest.mark.parametrize(("raw", "length", "resets"), [(GET, None, False), (OLD, None, True), (OLD, 9, False)])
def test_a_cut_answer_cannot_be_taken_for_whole(raw, length, resets):
    line = Line()
    line.send(raw)
    line.end.start_stream(200, [], length)
    line.end.write_chunk(b"ab")
    line.end.cut()
    line.end.write_chunk(b"late")
    assert line.transport.closed
    assert not line.written.endswith(b"0\r\n\r\n")
    assert not line.written.endswith(b"late")
    assert bool(line.transport.options) is resets
    line.end.connection_lost(None)
    assert ("gone",) not in line.events


@pytest.mark.parametrize(
    ("request_raw", "status"), [(GET.replace(b"GET", b"HEAD"), 200), (GET, 204), (GET, 304)], ids=["HEAD", "204", "304"]
)
@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_without_body_leaves_the_next_intact(request_raw, status, streamed):
    line = Line()
    line.send(request_raw + GET)
    if streamed:
        line.end.start_stream(status, [])
        line.end.write_chunk(b"body")
        line.end.finish()
    else:
        line.end.respond(status, [], b"body")
    say_ok(line.end)
    head, _, rest = line.written.partition(b"\r\n\r\n")
    assert rest == OK
    assert (b"content-length: 4" in head) is (status == 200 and not streamed)


def test_a_body_is_asked_for_only_by_the_handler():
    line = Line()
    line.send(UPLOAD.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))
    assert line.written == b""
    line.end.want_body()
    assert line.written == b"HTTP/1.1 100 Continue\r\n\r\n"
    line.send(b"123456789")
    line.end.want_body()
    say_ok(line.end)
    assert line.written == b"HTTP/1.1 100 Continue\r\n\r\n" + OK


def test_a_denied_upload_is_answered_before_its_body_and_never_with_100():
    line = Line()
    line.send(UPLOAD.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))
    line.end.respond(429, [], b"no")
    line.end.want_body()
    assert line.written.startswith(b"HTTP/1.1 429 ")
    assert b"connection: close\r\n" in line.written
    assert b"100" not in line.written


def test_an_answer_before_the_end_of_the_body_is_the_last_and_the_rest_is_swallowed():
    line = Line()
    line.send(UPLOAD + b"123")
    line.end.respond(413, [], b"no")
    assert line.transport.eof_written
    assert not line.transport.closed
    line.send(b"456789" + GET)
    assert line.events == [("request", b"POST", b"/u")]
    line.pass_ms(GOODBYE_MS)
    assert line.transport.aborted


def test_who_is_answered_while_its_upload_is_not_read_can_write_to_its_end():
    """Else a client that reads its answer after its request gets a reset in its place."""
    line = Line()
    line.send(UPLOAD + b"123")
    line.end.pause()
    line.end.respond(403, [], b"no")
    assert not line.transport.paused
    line.pass_ms(GOODBYE_MS)
    assert line.transport.aborted


@pytest.mark.parametrize("reads", [[POST], [POST[:-5], b"hello"], [POST[:-2], b"lo"], [CHUNKED], [GET]])
def test_a_call_answered_at_its_head_hears_nothing_more(reads):
    line = Line()
    line.heard.at_once = say_ok
    line.send(*reads)
    assert [event[0] for event in line.events] == ["request"]
    assert line.heard.body == b""
    assert line.written.endswith(b"\r\n\r\nok")
    line.pass_ms(GOODBYE_MS)
    assert line.transport.aborted is (reads not in ([GET], [POST]))  # nothing of these is still to come


@pytest.mark.parametrize("last", [True, False])
def test_a_call_answered_at_its_body_hears_nothing_more(last):
    line = Line()
    line.heard.at_body = say_ok
    line.send(POST if last else POST[:-1], GET)
    assert ("complete", b"hello") not in line.events
    assert line.events == ([THREE[2], *THREE[:2]] if last else [THREE[2]])


def test_without_expect_nobody_is_asked():
    line = Line()
    line.send(UPLOAD)
    line.end.want_body()
    assert line.written == b""


def test_a_wish_to_close_is_kept():
    line = Line(say_ok)
    line.send(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + GET)
    assert line.events == THREE[:2]
    assert b"connection: close\r\n" in line.written
    assert line.transport.closed


@pytest.mark.parametrize(
    ("raw", "status", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400, "host_missing"),
        (b"\x16\x03\x01", 400, "not_http"),
        (POST.replace(b"Content", b"Transfer-Encoding: chunked\r\nContent"), 400, "te_and_cl"),
        (b"GET /" + b"a" * 40_000, 431, "head_too_large"),
    ],
)
def test_a_refused_head_is_answered_and_no_call_begins(raw, status, reason):
    line = Line(say_ok)
    line.send(raw, GET)
    assert line.events == [("refused", reason)]
    assert line.written.startswith(b"HTTP/1.1 %d " % status)
    assert reason.encode() in line.written
    assert line.transport.eof_written


def test_a_refusal_behind_a_good_request_comes_after_its_answer():
    line = Line()
    line.send(GET + b"bad\r\n\r\n")
    assert line.events == THREE[:2]
    say_ok(line.end)
    assert line.events == [*THREE[:2], ("refused", "http_0_9")]
    assert line.written.startswith(OK + b"HTTP/1.1 400 ")


def test_a_broken_body_cancels_the_call_and_is_answered_unless_the_answer_has_begun():
    line = Line()
    line.send(CHUNKED[:-8] + b"oops")
    assert line.events == [("request", b"POST", b"/c"), ("gone",), ("refused", "bad_chunk_end")]
    assert line.written.startswith(b"HTTP/1.1 400 ")
    begun = Line()
    begun.send(CHUNKED[:-8])
    begun.end.start_stream(200, [])
    before = begun.written
    begun.send(b"oops")
    assert begun.events == [("request", b"POST", b"/c"), ("gone",)]
    assert (begun.written, begun.transport.aborted) == (before, True)


def test_a_call_is_answered_once():
    line = Line()
    line.send(GET)
    line.end.start_stream(200, [])
    with pytest.raises(RuntimeError):
        line.end.start_stream(200, [])
    with pytest.raises(RuntimeError):
        say_ok(line.end)


def test_the_call_of_the_handler_lives_as_long_as_the_call():
    line = Line(lambda end: setattr(end, "call", "mine"))
    line.send(GET)
    assert line.end.call == "mine"
    assert line.end.peer == "127.0.0.1"
    say_ok(line.end)
    assert line.end.call is None


PIECES = st.sampled_from(
    [GET, POST, CHUNKED, UPLOAD, b"hello", b"\r\n", b"0\r\n\r\n", b"5\r\nhello\r\n", b"GET ", b"\xff", OLD, CONNECT]
)
READS = st.lists(st.lists(PIECES | st.binary(max_size=5), max_size=4).map(b"".join), max_size=8)
MOVES = st.lists(
    st.sampled_from(["answer", "stream", "chunk", "finish", "cut", "want", "pause", "resume", "wait", "eof"])
)


@given(READS, MOVES)
def test_no_bytes_and_no_moves_break_the_connection(reads, moves):
    line = Line()
    steps = {
        "answer": lambda: line.end._begun or line.end.respond(200, [], b"ok"),
        "stream": lambda: line.end._begun or line.end.start_stream(200, []),
        "chunk": lambda: line.end.write_chunk(b"x"),
        "finish": lambda: line.end._begun and line.end.finish(),
        "cut": lambda: line.end._begun and line.end.cut(),
        "want": line.end.want_body,
        "pause": line.end.pause,
        "resume": line.end.resume,
        "wait": lambda: line.pass_ms(BODY_MS),
        "eof": line.end.eof_received,
    }
    for at in range(max(len(reads), len(moves))):
        line.send(*reads[at : at + 1])
        for move in moves[at : at + 1]:
            steps[move]()
    line.end.connection_lost(None)
    names = [event[0] for event in line.events]
    assert names.count("gone") <= 1
    assert names.count("request") >= names.count("complete")
    assert line.end.head is None
    assert len(line.sweep) == 0


@given(st.lists(st.sampled_from([GET, POST, CHUNKED]), min_size=1, max_size=5), st.lists(st.integers(1, 60)))
def test_h11_as_the_client_reads_every_answer(requests, sizes):
    line, raw = Line(say_ok), b"".join(requests)
    for size in [*sizes, len(raw)]:
        line.send(raw[:size])
        raw = raw[size:]
    stream = line.written
    for _ in requests:
        peer = h11.Connection(h11.CLIENT)
        peer.send(h11.Request(method="GET", target="/", headers=[("host", "a")]))
        peer.send(h11.EndOfMessage())
        peer.receive_data(stream[: len(OK)])
        stream = stream[len(OK) :]
        assert peer.next_event().status_code == 200
        assert peer.next_event().data == b"ok"
        assert isinstance(peer.next_event(), h11.EndOfMessage)
    assert stream == b""
