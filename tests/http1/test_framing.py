import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.http1.framing import (
    MAX_EXTENSION_BYTES,
    MAX_TRAILER_BYTES,
    BadBody,
    BodyReader,
    no_body,
    until_close,
)
from swarmgate.http1.head import parse_request, parse_response
from swarmgate.http1.render import LAST_CHUNK, frame
from swarmgate.http1.request_body import request_body
from swarmgate.http1.response_reader import response_body


def of_chunks() -> BodyReader:
    return response_body(parse_response(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), b"GET")


def of_length(length: int) -> BodyReader:
    return response_body(parse_response(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length), b"GET")


def cut(raw: bytes, sizes: list[int]) -> list[bytes]:
    parts = []
    for size in sizes:
        parts.append(raw[:size])
        raw = raw[size:]
    return [part for part in [*parts, raw] if part]


def read(reader: BodyReader, parts: list[bytes]) -> tuple[bytes, bool, bytes]:
    payload = b"".join([reader.feed(part) for part in parts])
    return payload, reader.done, reader.leftover


SIZES = st.lists(st.integers(1, 9), max_size=60)
CHUNKS = st.lists(st.binary(min_size=1, max_size=40), max_size=6)
EXTENSIONS = st.sampled_from([b"", b"", b";a=b", b"; a", b";" + b"x" * MAX_EXTENSION_BYTES])
TRAILERS = st.sampled_from([b"", b"", b"Expires: 0\r\n", b"A: b\r\nContent-Length: 5\r\n"])


@st.composite
def chunked_bodies(draw):
    payloads = draw(CHUNKS)
    upper = draw(st.booleans())
    sizes = [b"%X" % len(payload) if upper else b"0%x" % len(payload) for payload in payloads]
    chunks = [size + draw(EXTENSIONS) + b"\r\n" + p + b"\r\n" for size, p in zip(sizes, payloads, strict=True)]
    return b"".join(payloads), b"".join(chunks) + b"0" + draw(EXTENSIONS) + b"\r\n" + draw(TRAILERS) + b"\r\n"


@given(chunked_bodies(), st.binary(max_size=9), SIZES)
def test_chunks_come_out_whole_however_they_are_cut(body, leftover, sizes):
    payload, raw = body
    assert read(of_chunks(), cut(raw + leftover, sizes)) == (payload, True, leftover)


@given(st.binary(max_size=60), st.binary(max_size=9), SIZES)
def test_a_length_is_exact(payload, leftover, sizes):
    reader = of_length(len(payload))
    assert reader.done is (not payload)
    assert read(reader, cut(payload + leftover, sizes)) == (payload, True, leftover)


@given(chunked_bodies(), SIZES)
def test_an_unfinished_body_is_never_done(body, sizes):
    _, raw = body
    reader = of_chunks()
    assert read(reader, cut(raw[:-1], sizes))[1:] == (False, b"")
    assert not reader.eof()


@given(st.binary(max_size=60), SIZES)
def test_until_close_everything_is_payload_and_only_the_end_ends_it(payload, sizes):
    reader = until_close()
    assert read(reader, cut(payload, sizes)) == (payload, False, b"")
    assert reader.eof()


def test_no_body_leaves_every_byte_over():
    reader = no_body()
    assert reader.done
    assert read(reader, [b"ab", b"c"]) == (b"", True, b"abc")


BROKEN = [
    (b"\r\n", "bad_chunk_size"),
    (b"g\r\n", "bad_chunk_size"),
    (b"-1\r\n", "bad_chunk_size"),
    (b"+5\r\nhello\r\n", "bad_chunk_size"),
    (b"0x5\r\nhello\r\n", "bad_chunk_size"),
    (b"1_0\r\n", "bad_chunk_size"),
    (b" 5\r\nhello\r\n", "bad_chunk_size"),
    (b"5 \r\nhello\r\n", "bad_chunk_size"),
    (b"5 ;a\r\nhello\r\n", "bad_chunk_size"),
    (b";a\r\n", "bad_chunk_size"),
    (b"\xd9\xa5\r\n", "bad_chunk_size"),
    (b"5\nhello\r\n", "bad_chunk_size"),
    (b"5\rhello\r\n", "bad_chunk_size"),
    (b"5;a\nb\r\nhello\r\n", "bad_chunk_size"),
    (b"5;a\rb\r\nhello\r\n", "bad_chunk_size"),
    (b"5;a\0b\r\nhello\r\n", "bad_chunk_size"),
    (b"5;" + b"x" * (MAX_EXTENSION_BYTES + 1) + b"\r\n", "bad_chunk_size"),
    (b"5;" + b"x" * 9999, "bad_chunk_size"),
    (b"5" + b" " * 9999, "bad_chunk_size"),
    (b"f" * 16 + b"\r\n", "bad_chunk_size"),
    (b"0" * 9999, "bad_chunk_size"),
    (b"5\r\nhello0\r\n\r\n", "bad_chunk_end"),
    (b"5\r\nhello\n0\r\n\r\n", "bad_chunk_end"),
    (b"5\r\nhello\r\r\n", "bad_chunk_end"),
    (b"5\r\nhello!\r\n0\r\n\r\n", "bad_chunk_end"),
    (b"5\r\nhell\r\n0\r\n\r\n", "bad_chunk_end"),
    (b"0\r\nno trailer\r\n\r\n", "bad_trailer"),
    (b"0\r\nA : b\r\n\r\n", "bad_trailer"),
    (b"0\r\nA: b\nC: d\r\n\r\n", "bad_trailer"),
    (b"0\r\nA: b\r\n folded\r\n\r\n", "bad_trailer"),
    (b"0\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "bad_trailer"),
    (b"0\r\nA: " + b"x" * MAX_TRAILER_BYTES + b"\r\n\r\n", "trailer_too_large"),
    (b"0\r\n" + b"A: b\r\n" * MAX_TRAILER_BYTES, "trailer_too_large"),
]


def test_chunks_of_a_byte_each_are_refused_before_many_of_them_are_read():
    reader, read_ = of_chunks(), b"1\r\nx\r\n" * 40_000
    with pytest.raises(BadBody) as caught:
        reader.feed(read_)
    assert (caught.value.field, caught.value.reason) == ("chunk", "chunks_too_small")


@pytest.mark.parametrize("a_read", [100, 1_000])
def test_chunks_of_a_byte_each_are_refused_however_they_come(a_read):
    with pytest.raises(BadBody):
        read(of_chunks(), [b"1\r\nx\r\n" * a_read] * (1_000_000 // a_read))


@pytest.mark.parametrize(
    ("size", "a_read"), [(1, 1), (4, 64), (9, 100), (16, 11_000)], ids=["bytes", "tokens", "words", "lines"]
)
def test_what_writes_as_it_goes_is_read_for_ever(size, a_read):
    reader, chunk = of_chunks(), b"%x\r\n%b\r\n" % (size, b"x" * size)
    for _ in range(max(2, 40_000 // a_read)):
        assert len(reader.feed(chunk * a_read)) == size * a_read


@pytest.mark.parametrize(("raw", "reason"), BROKEN, ids=lambda value: repr(value)[:40])
def test_broken_chunks_are_refused_whole_or_byte_by_byte(raw, reason):
    for parts in ([raw], [bytes([byte]) for byte in raw]):
        with pytest.raises(BadBody) as caught:
            read(of_chunks(), parts)
        assert caught.value.reason == reason


@pytest.mark.parametrize(("raw", "reason"), [row for row in BROKEN if len(row[0]) < 300], ids=lambda v: repr(v)[:40])
def test_broken_chunks_are_refused_at_every_split(raw, reason):
    for at in range(1, len(raw)):
        with pytest.raises(BadBody) as caught:
            read(of_chunks(), [raw[:at], raw[at:]])
        assert caught.value.reason == reason


PIECE = st.sampled_from(b"0|1|5|a|F|;|;x=y| |\r\n|\r|\n|hello|x|: |\0|\xff|0\r\n\r\n|5\r\nhello\r\n".split(b"|"))
PIECES = st.lists(PIECE, min_size=1, max_size=14).map(b"".join)


@given(PIECES | st.binary(min_size=1, max_size=40), SIZES)
def test_what_we_accept_as_chunks_h11_reads_the_same(raw, sizes):
    reader = of_chunks()
    try:
        payload, done, leftover = read(reader, cut(raw, sizes))
    except BadBody:
        return
    peer = h11.Connection(h11.SERVER)
    peer.receive_data(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    assert isinstance(peer.next_event(), h11.Request)
    peer.receive_data(raw)
    theirs, event = b"", peer.next_event()
    while isinstance(event, h11.Data):
        theirs += event.data
        event = peer.next_event()
    assert theirs == payload
    assert isinstance(event, h11.EndOfMessage) is done
    if done:
        assert peer.trailing_data == (leftover, False)


@given(PIECES, SIZES)
def test_cuts_never_change_the_verdict(raw, sizes):
    def verdict(parts):
        try:
            return read(of_chunks(), parts)
        except BadBody as bad:
            return bad.reason

    assert verdict(cut(raw, sizes)) == verdict([raw])


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_framed_payload_reads_back(payloads):
    raw = b"".join([frame(payload) for payload in payloads]) + LAST_CHUNK
    assert read(of_chunks(), [raw]) == (b"".join(payloads), True, b"")


def test_a_chunk_may_be_larger_than_any_read_and_is_not_held():
    reader = of_chunks()
    assert reader.feed(b"fffffffff\r\n" + b"x" * 1000) == b"x" * 1000
    assert reader.feed(b"y" * 1000) == b"y" * 1000


@pytest.mark.parametrize(
    ("method", "fields", "status", "expected"),
    [
        (b"GET", b"Content-Length: 5\r\n", b"200", (b"hello", b"!")),
        (b"GET", b"Content-Length: 0\r\n", b"200", (b"", b"hello!")),
        (b"GET", b"", b"200", (b"hello!", b"")),
        (b"HEAD", b"Content-Length: 5\r\n", b"200", (b"", b"hello!")),
        (b"HEAD", b"Transfer-Encoding: chunked\r\n", b"200", (b"", b"hello!")),
        (b"GET", b"Content-Length: 5\r\n", b"204", (b"", b"hello!")),
        (b"GET", b"Transfer-Encoding: chunked\r\n", b"304", (b"", b"hello!")),
    ],
)
def test_which_response_has_which_body(method, fields, status, expected):
    head = parse_response(b"HTTP/1.1 " + status + b" X\r\n" + fields + b"\r\n")
    reader = response_body(head, method)
    assert (reader.feed(b"hello!"), reader.leftover) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (b"", (b"", b"1\r\nx\r\n")),
        (b"Content-Length: 2\r\n", (b"1\r", b"\nx\r\n")),
        (b"Transfer-Encoding: chunked\r\n", (b"x", b"")),
    ],
)
def test_which_request_has_which_body(fields, expected):
    reader = request_body(parse_request(b"POST / HTTP/1.1\r\nHost: a\r\n" + fields + b"\r\n"))
    assert (reader.feed(b"1\r\nx\r\n"), reader.leftover) == expected
