import pytest

from swarmgate.http1.faults import Fault
from swarmgate.http1.framing import READ, BadBody
from swarmgate.http1.response_reader import MAX_INTERIM, BrokenResponse, ResponseReader

SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


def feed(reader: ResponseReader, parts: list[bytes]) -> bytes:
    payload = b""
    for part in parts:
        rest = reader.feed_head(part) if reader.wants_head else part
        if not reader.wants_head:
            payload += rest if reader.body is READ else reader.body.feed(rest)
    return payload


@pytest.mark.parametrize("raw", [SIZED, CHUNKED, INTERIM + SIZED, b"HTTP/1.1 100 Continue\r\n\r\n" + INTERIM + CHUNKED])
def test_every_split_gives_the_same_response_and_every_cut_is_seen(raw):
    for at in range(len(raw) + 1):
        whole, short = ResponseReader(), ResponseReader()
        whole.begin(b"GET")
        assert feed(whole, [raw[:at], raw[at:]]) == b"hello"
        assert whole.ended_cleanly
        short.begin(b"GET")
        feed(short, [raw[:at]])
        assert short.ended_cleanly is (at == len(raw))
        assert not short.body.eof() or short.wants_head or at == len(raw)


@pytest.mark.parametrize("raw", [SIZED, CHUNKED])
@pytest.mark.parametrize("extra", [b"!", b"\r\n", SIZED])
def test_leftover_bytes_end_the_reuse(raw, extra):
    for at in range(len(raw) + len(extra) + 1):
        if raw == SIZED and at == len(raw):
            continue  # the exchange is over: what comes later meets an idle connection (test_upstream_end.py)
        reader = ResponseReader()
        reader.begin(b"GET")
        assert feed(reader, [(raw + extra)[:at], (raw + extra)[at:]]) == b"hello"
        assert reader.body.done
        assert not reader.ended_cleanly


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (INTERIM * (MAX_INTERIM + 1) + SIZED, Fault.TOO_MANY_INTERIM),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", Fault.UNASKED_UPGRADE),
        (b"SSH-2.0-OpenSSH_9.2\r\n", Fault.BAD_HEAD),
        (b"HTTP/1.1 200 OK\r\nX\0: y\r\n\r\n", Fault.BAD_HEAD),
        (b"HTTP/1.1 200 " + b"x" * 65_536, Fault.BAD_HEAD),
        (b"hello, this is HTTP/0.9\r\n\r\n", Fault.BAD_HEAD),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_is_no_response(raw, fault):
    for step in (1, 7, len(raw)):
        reader = ResponseReader()
        reader.begin(b"GET")
        with pytest.raises(BrokenResponse) as caught:
            feed(reader, [raw[at : at + step] for at in range(0, len(raw), step)])
        assert caught.value.fault is fault


def test_as_many_interim_responses_as_allowed_are_skipped():
    reader = ResponseReader()
    reader.begin(b"GET")
    assert feed(reader, [INTERIM * MAX_INTERIM + SIZED]) == b"hello"


def test_a_body_of_a_head_response_is_left_over():
    reader = ResponseReader()
    reader.begin(b"HEAD")
    assert feed(reader, [SIZED]) == b""
    assert reader.body.leftover == b"hello"
    assert not reader.ended_cleanly


@pytest.mark.parametrize(
    "raw",
    [b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", SIZED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")],
)
def test_an_announced_close_ends_the_reuse(raw):
    reader = ResponseReader()
    reader.begin(b"GET")
    feed(reader, [raw])
    assert reader.body.done
    assert not reader.ended_cleanly


def test_one_reader_reads_one_response_after_another():
    reader = ResponseReader()
    for method, raw, payload in ((b"GET", SIZED, b"hello"), (b"HEAD", SIZED[:-5], b""), (b"GET", CHUNKED, b"hello")):
        reader.begin(method)
        assert feed(reader, [raw]) == payload
        assert reader.ended_cleanly


def test_in_a_tunnel_everything_is_payload():
    reader = ResponseReader()
    reader.begin_tunnel()
    assert feed(reader, [SIZED, b"\0"]) == SIZED + b"\0"
    assert reader.body.eof()


def test_broken_chunks_are_an_error_of_the_body():
    reader = ResponseReader()
    reader.begin(b"GET")
    with pytest.raises(BadBody):
        feed(reader, [CHUNKED.replace(b"3\r\n", b"2\r\n")])
