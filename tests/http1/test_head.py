import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.http1.head import parse_request, parse_response
from swarmgate.http1.head_buffer import MAX_HEAD_BYTES, REQUEST_FIRST, RESPONSE_FIRST, HeadBuffer
from swarmgate.http1.refusals import BadHead

GET = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n"


def test_a_head_says_what_framing_and_connection_need():
    head = parse_request(
        b"POST /x?y HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\nExpect: 100-continue\r\n"
        b"Accept: a\r\nCONNECTION: Keep-Alive, x-hop\r\naccept: b\r\n\r\n"
    )
    assert (head.method, head.target, head.version) == (b"POST", b"/x?y", b"HTTP/1.1")
    assert (head.content_length, head.chunked, head.keep_alive, head.expect_continue) == (12, False, True, True)
    assert head.get(b"accept") == b"a, b"
    assert head.headers[-1] == (b"accept", b"b")
    assert head.get(b"absent") is None


@pytest.mark.parametrize(
    ("version", "wish", "kept"),
    [
        (b"1.1", b"", True),
        (b"1.1", b"Connection: keep-alive\r\n", True),
        (b"1.1", b"Connection: Close\r\n", False),
        (b"1.1", b"Connection: x, close ,y\r\n", False),
        (b"1.1", b"Connection: x\r\nConnection: close\r\n", False),
        (b"1.1", b"Connection: disclose\r\n", True),
        (b"1.0", b"", False),
        (b"1.0", b"Connection: keep-alive\r\n", False),
    ],
)
def test_keep_alive(version, wish, kept):
    assert parse_request(b"GET / HTTP/%b\r\nHost: a\r\n%b\r\n" % (version, wish)).keep_alive is kept
    assert parse_response(b"HTTP/%b 200 OK\r\n%b\r\n" % (version, wish)).keep_alive is kept


@pytest.mark.parametrize(
    ("raw", "status", "reason"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", 200, b"OK"),
        (b"HTTP/1.1 404 Not  Found\r\n\r\n", 404, b"Not  Found"),
        (b"HTTP/1.1 204 \r\n\r\n", 204, b""),
        (b"HTTP/1.1 429\r\nX: y\r\n\r\n", 429, b""),
        (b"HTTP/1.0 529 overloaded_error\r\n\r\n", 529, b"overloaded_error"),
    ],
)
def test_status_lines(raw, status, reason):
    head = parse_response(raw)
    assert (head.status, head.reason) == (status, reason)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"HTTP/0.9 200 OK\r\n\r\n", "version"),
        (b"HTTP/2 200\r\n\r\n", "version"),
        (b"HTTP/1.1 20 OK\r\n\r\n", "malformed"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "malformed"),
        (b"HTTP/1.1 +20 OK\r\n\r\n", "malformed"),
        (b"HTTP/1.1  200 OK\r\n\r\n", "malformed"),
        (b"HTTP/1.1 099 OK\r\n\r\n", "malformed"),
        (b"HTTP/1.1 200 O\0K\r\n\r\n", "control_byte"),
        (b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", "obs_fold"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "te_and_cl"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "cl_repeated"),
        (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "te_in_http_1_0"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "te_not_chunked"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "version"),
        (b"\r\n\r\n", "version"),
    ],
)
def test_refused_response_heads(raw, reason):
    with pytest.raises(BadHead) as caught:
        parse_response(raw)
    assert caught.value.reason == reason


@given(st.lists(st.integers(1, 30), max_size=40), st.binary(max_size=40))
def test_the_buffer_gives_head_and_rest_however_they_come(sizes, rest):
    buffer, stream, found = HeadBuffer(REQUEST_FIRST), GET + rest, None
    while found is None:
        size = sizes.pop() if sizes else len(stream)
        part, stream = stream[:size], stream[size:]
        found = buffer.feed(part)
    assert found[0] == GET
    assert found[1] + stream == rest
    assert len(buffer) == 0


def sized(length: int) -> bytes:
    return GET[:-4] + b"\r\nX: " + b"a" * (length - len(GET) - 5) + b"\r\n\r\n"


def feed_in_steps(raw: bytes, step: int) -> tuple[bytes, bytes] | None:
    buffer, found = HeadBuffer(REQUEST_FIRST), None
    for start in range(0, len(raw), step):
        found = buffer.feed(raw[start : start + step])
    return found


@pytest.mark.parametrize("step", [1, 1000, MAX_HEAD_BYTES + 1])
def test_a_head_of_exactly_the_limit_passes_and_one_byte_more_does_not(step):
    assert feed_in_steps(sized(MAX_HEAD_BYTES), step) == (sized(MAX_HEAD_BYTES), b"")
    with pytest.raises(BadHead) as caught:
        feed_in_steps(sized(MAX_HEAD_BYTES + 1), step)
    assert (caught.value.status, caught.value.reason) == (431, "head_too_large")


@pytest.mark.parametrize(
    ("first", "raw", "reason"),
    [
        (REQUEST_FIRST, b"\x16", "not_http"),
        (REQUEST_FIRST, b"\r", "not_http"),
        (REQUEST_FIRST, b" ", "not_http"),
        (REQUEST_FIRST, b"g", "not_http"),
        (REQUEST_FIRST, b"GET / HTTP/1.1\n", "bare_lf"),
        (RESPONSE_FIRST, b"S", "not_http"),
    ],
)
def test_hopeless_bytes_end_the_wait_at_once(first, raw, reason):
    buffer = HeadBuffer(first)
    for byte in raw[:-1]:
        assert buffer.feed(bytes([byte])) is None
    with pytest.raises(BadHead) as caught:
        buffer.feed(raw[-1:])
    assert caught.value.reason == reason


TOKEN = st.text("abcXYZ0-_", min_size=1, max_size=8).map(str.encode)
VALUE = st.binary(max_size=12).map(lambda raw: bytes(byte for byte in raw if byte >= 32 and byte != 127))
TARGET = st.text("abc/?=&%@;~-._", max_size=10).map(lambda text: b"/" + text.encode())
FRAMING = st.sampled_from([b"", b"Content-Length: 7\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n"])
GLUE = st.sampled_from([b":", b": ", b":\t ", b" :", b""])
ENDING = st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r\n ", b" \r\n"])


@st.composite
def requests(draw):
    method = draw(st.sampled_from([b"GET", b"POST", b"HEAD", b"DELETE"]))
    version = draw(st.sampled_from([b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0"]))
    lines = [draw(TOKEN) + draw(GLUE) + draw(VALUE) + draw(ENDING) for _ in range(draw(st.integers(0, 4)))]
    return b"%b %b %b\r\nHost: a\r\n%b%b\r\n" % (method, draw(TARGET), version, draw(FRAMING), b"".join(lines))


@given(requests())
def test_what_we_accept_h11_reads_the_same(raw):
    try:
        head = parse_request(raw)
    except BadHead:
        return
    peer = h11.Connection(h11.SERVER)
    peer.receive_data(raw)
    event = peer.next_event()
    assert isinstance(event, h11.Request)
    assert (event.method, event.target, b"HTTP/" + event.http_version) == (head.method, head.target, head.version)
    assert list(event.headers) == head.headers
