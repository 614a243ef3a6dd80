import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire import Far

from swarmgate.http1.connection import FULL_READ_BYTES
from swarmgate.http1.cork import Cork
from swarmgate.http1.faults import Fault
from swarmgate.http1.sweep import NEVER
from swarmgate.http1.upstream_end import READ_MS

REQUEST = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n\r\nhello"
BARE = b"HTTP/1.1 204 No Content\r\n\r\n"


def begun(then=None) -> Far:
    far = Far(then)
    assert far.end.send(far.owner, b"GET", REQUEST)
    return far


def test_after_a_full_read_others_are_heard_first():
    far, later = begun(), []
    far.sweep.cork = Cork(later.append)
    far.receive(SIZED.replace(b": 5", b": 999999") + bytes(FULL_READ_BYTES))
    assert far.transport.paused
    far.end.pause()
    later.pop()()
    assert far.transport.paused
    far.end.resume()
    far.receive(bytes(FULL_READ_BYTES))
    later.pop()()
    assert not far.transport.paused


@pytest.mark.parametrize("raw", [SIZED, CHUNKED])
def test_a_whole_response_is_told_at_every_split_and_the_connection_is_free_before_the_end(raw):
    for at in range(len(raw) + 1):
        far = begun()
        far.receive(raw[:at], raw[at:])
        assert far.events == [("head", 200), ("free",), ("end", b"hello")]
        assert far.transport.written == REQUEST
        assert far.end.deadline_ms == NEVER


@pytest.mark.parametrize("raw", [SIZED, CHUNKED, b"HTTP/1.1 103 Hi\r\n\r\n" + CHUNKED])
@pytest.mark.parametrize("reset", [None, ConnectionResetError()])
def test_a_response_cut_anywhere_is_lost_and_never_ends(raw, reset):
    for at in range(len(raw)):
        far = begun()
        far.receive(raw[:at])
        if reset is None:
            far.end.eof_received()
        far.end.connection_lost(reset)
        fault = Fault.TRUNCATED if ("head", 200) in far.events else Fault.CLOSED_EARLY
        assert far.events[-2:] == [("lost", fault, at > 0), ("closed",)]
        assert not any(event[0] in {"end", "free"} for event in far.events)


def test_a_body_until_close_ends_by_eof_and_is_lost_by_reset():
    far = begun()
    far.receive(UNTIL_CLOSE)
    far.end.eof_received()
    far.end.connection_lost(None)
    assert far.events == [("head", 200), ("end", b"hello"), ("closed",)]
    reset = begun()
    reset.receive(UNTIL_CLOSE)
    reset.end.connection_lost(ConnectionResetError())
    assert reset.events == [("head", 200), ("lost", Fault.TRUNCATED, True), ("closed",)]


@pytest.mark.parametrize(
    "raw",
    [SIZED + b"!", CHUNKED + SIZED, BARE + b"hello", SIZED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")],
)
def test_doubt_ends_the_reuse_but_not_the_exchange(raw):
    far = begun()
    far.receive(raw)
    assert far.events[-1][0] == "end"
    assert ("free",) not in far.events
    assert far.transport.closed


def test_bytes_while_idle_close_the_connection_and_reach_nobody():
    far = begun()
    far.receive(SIZED)
    far.receive(SIZED)
    assert far.transport.aborted
    assert far.events == [("head", 200), ("free",), ("end", b"hello")]
    assert not far.end.send(far.owner, b"GET", REQUEST)
    assert far.transport.written == REQUEST


def test_one_exchange_follows_another():
    far = begun()
    far.receive(SIZED)
    for method, raw, body in ((b"HEAD", SIZED[:-5], b""), (b"GET", CHUNKED, b"hello"), (b"GET", BARE, b"")):
        assert far.end.send(far.owner, method, REQUEST)
        assert not far.end.first_byte_seen
        far.receive(raw)
        assert far.events[-2:] == [("free",), ("end", body)]
    assert far.end.exchanges == 4


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (b"SSH-2.0-x\r\n", Fault.BAD_HEAD),
        (b"HTTP/1.1 103 Hi\r\n\r\n" * 17, Fault.TOO_MANY_INTERIM),
        (b"HTTP/1.1 101 Hi\r\n\r\n", Fault.UNASKED_UPGRADE),
        (CHUNKED[:-9] + b"oops", Fault.BAD_BODY),
        (CHUNKED[:-9] + b"\r\nzz\r\n", Fault.BAD_BODY),
    ],
)
def test_nonsense_is_typed_and_closes(raw, fault):
    far = begun()
    far.receive(raw)
    assert far.events[-1] == ("lost", fault, True)
    assert far.transport.aborted
    far.end.connection_lost(None)
    assert far.events[-1] == ("closed",)


def test_silence_has_a_limit_from_the_last_byte():
    far = begun()
    far.pass_ms(READ_MS - 1)
    far.receive(SIZED[:-1])
    far.pass_ms(READ_MS - 1)
    assert not far.transport.closed
    far.pass_ms(1)
    assert far.events == [("head", 200), ("lost", Fault.TIMEOUT, True)]
    silent = Far()
    silent.end.send(silent.owner, b"GET", REQUEST, read_ms=5)
    silent.pass_ms(5)
    assert silent.events == [("lost", Fault.TIMEOUT, False)]


def test_our_own_slowness_is_not_the_targets_silence():
    far = begun()
    far.receive(SIZED[:-1])
    far.end.pause()
    assert far.transport.paused
    far.pass_ms(10 * READ_MS)
    far.end.resume()
    assert not far.transport.paused
    far.pass_ms(READ_MS - 1)
    far.receive(SIZED[-1:])
    assert far.events[-1] == ("end", b"hello")


def test_a_connection_paused_at_its_end_reads_again_for_the_next():
    far = begun()
    far.owner.then = {"chunk": far.end.pause}
    far.receive(SIZED)
    assert not far.transport.paused
    assert far.end.deadline_ms == NEVER
    assert far.events[-2:] == [("free",), ("end", b"hello")]


@pytest.mark.parametrize("at", ["head", "chunk"])
@pytest.mark.parametrize("reads", [[SIZED], [CHUNKED], [CHUNKED[:-8], CHUNKED[-8:]]])
def test_after_abandon_the_owner_hears_nothing(at, reads):
    far = begun()
    far.owner.then = {at: far.end.abandon}
    far.receive(*reads)
    far.end.connection_lost(None)
    assert far.events == [("head", 200), ("closed",)]
    assert far.transport.aborted


def test_an_early_answer_is_whole_but_the_connection_is_not_used_again():
    far = Far()
    far.end.send(far.owner, b"POST", REQUEST, complete=False)
    far.end.send_more(b"1", complete=False)
    far.receive(SIZED)
    far.end.send_more(b"2", complete=True)
    assert far.events == [("head", 200), ("end", b"hello")]
    assert far.transport.closed
    assert far.transport.written == REQUEST + b"1"


def test_a_streamed_upload_that_was_sent_whole_leaves_the_connection_usable():
    far = Far()
    far.end.send(far.owner, b"POST", REQUEST, complete=False)
    far.end.pause_writing()
    far.end.resume_writing()
    far.end.send_more(b"", complete=True)
    far.receive(SIZED)
    assert far.events == [("pause",), ("resume",), ("head", 200), ("free",), ("end", b"hello")]


@pytest.mark.parametrize(
    ("hint", "keep_ms"),
    [(b"timeout=5", 4000), (b"max=3, Timeout=5", 4000), (b"timeout=0", 0), (b"x", NEVER), (b"idletimeout=5", NEVER)],
)
def test_what_the_target_says_about_keeping_is_heard(hint, keep_ms):
    far = begun()
    assert far.end.keep_ms == NEVER
    far.receive(SIZED.replace(b"\r\n\r\n", b"\r\nKeep-Alive: " + hint + b"\r\n\r\n"))
    assert far.end.keep_ms == keep_ms


def test_a_connection_may_go_back_unused():
    far = Far()
    far.end.release()
    assert far.events == [("free",)]
    assert far.end.exchanges == 0


def test_a_tunnel_is_bytes_until_its_end():
    far = Far()
    far.end.open_tunnel(far.owner, read_ms=7)
    far.end.send_more(b"\x16", complete=False)
    far.receive(SIZED, b"\0")
    assert far.owner.body == SIZED + b"\0"
    assert far.transport.written == b"\x16"
    far.end.eof_received()
    assert far.events[-1] == ("end", SIZED + b"\0")
    assert far.transport.closed


PIECES = st.sampled_from(
    [SIZED, CHUNKED, BARE, UNTIL_CLOSE, b"HTTP/1.1 103 Hi\r\n\r\n", b"0\r\n\r\n", b"\r\n", b"x", b"HTTP/1."]
)


@given(st.lists(PIECES | st.binary(max_size=5), max_size=5), st.lists(st.integers(1, 40), max_size=9), st.booleans())
def test_each_exchange_ends_exactly_once_whatever_comes(pieces, sizes, reset):
    far, raw = begun(), b"".join(pieces)
    for size in [*sizes, len(raw)]:
        far.receive(raw[:size])
        raw = raw[size:]
    if not reset:
        far.end.eof_received()
    far.end.connection_lost(ConnectionResetError() if reset else None)
    names = [event[0] for event in far.events]
    assert names.count("end") + names.count("lost") == 1
    assert names.count("free") <= names.count("end")
    assert names[-1] == "closed"
    assert len(far.sweep) == 0
