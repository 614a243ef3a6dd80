"""What we pass on is what another reader would have read: whole streams of requests against h11."""

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire import Line

GET = b"GET /g HTTP/1.1\r\nHost: a\r\n\r\n"
HEAD = b"POST /p HTTP/1.1\r\nHost: a\r\n"
EVIL = b"GET /evil HTTP/1.1\r\nHost: a\r\n\r\n"
CL, TE = b"Content-Length: %d\r\n", b"Transfer-Encoding: chunked\r\n"

SMUGGLING = [
    HEAD + CL % 6 + TE + b"\r\n0\r\n\r\nX",  # CL.TE
    HEAD + TE + CL % 4 + b"\r\n1e\r\n" + EVIL + b"0\r\n\r\n",  # TE.CL
    HEAD + TE + b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n" + EVIL,  # TE.TE
    HEAD + b"Transfer-Encoding : chunked\r\n" + CL % 4 + b"\r\n1e\r\n" + EVIL,
    HEAD + b"Transfer-Encoding: xchunked\r\n" + CL % 4 + b"\r\n1e\r\n" + EVIL,
    HEAD + b"Transfer-Encoding:\x0bchunked\r\n" + CL % 4 + b"\r\n1e\r\n" + EVIL,
    HEAD + b"Transfer-Encoding: chunked\r\n " + CL % 4 + b"\r\n0\r\n\r\n" + EVIL,
    HEAD + b"X: y\nTransfer-Encoding: chunked\r\n" + CL % 4 + b"\r\n1e\r\n" + EVIL,
    HEAD + b"X: y\rTransfer-Encoding: chunked\r\n" + CL % 4 + b"\r\n1e\r\n" + EVIL,
    HEAD + CL % 0 + CL % len(EVIL) + b"\r\n" + EVIL,
    HEAD + b"Content-Length: 0, %d\r\n\r\n" % len(EVIL) + EVIL,
    HEAD + b"Content-Length: +0\r\n\r\n" + EVIL,
    HEAD + b"Content-Length: 0x0\r\n\r\n" + EVIL,
    HEAD + TE + b"\r\n0;ext\n\r\n" + EVIL,
    HEAD + TE + b"\r\n5;a=\r\n\r\n0\r\n\r\n" + EVIL,
    HEAD + TE + b"\r\n1\r\nZZ0\r\n\r\n" + EVIL,  # the chunk's end is not CR LF
    HEAD + TE + b"\r\n0\r\nContent-Length: 9\r\n\r\n" + EVIL,
    HEAD + TE + b"\r\n0\r\n" + EVIL + b"\r\n",
    b"GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n" + EVIL,
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + EVIL,
    b"\r\n" + EVIL,
]


def ours(reads: list[bytes]) -> list[tuple[bytes, bytes, bytes]]:
    """(method, target, body) of each request that a call was completed for."""
    line = Line(lambda end: end.respond(200, []))
    line.send(*reads)
    events = line.events
    return [(*events[at][1:], event[1]) for at, event in enumerate(events[1:]) if event[0] == "complete"]


def theirs(raw: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """The same by h11."""
    peer, requests = h11.Connection(h11.SERVER), []
    peer.receive_data(raw)
    try:
        while isinstance(request := peer.next_event(), h11.Request):
            body = b""
            while isinstance(event := peer.next_event(), h11.Data):
                body += event.data
            if not isinstance(event, h11.EndOfMessage):
                break
            requests.append((request.method, request.target, body))
            peer.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
            peer.send(h11.EndOfMessage())
            peer.start_next_cycle()
    except h11.ProtocolError:
        pass
    return requests


def assert_we_read_no_other_requests(reads: list[bytes]) -> None:
    seen, other = ours(reads), theirs(b"".join(reads))
    assert seen == other[: len(seen)]


@pytest.mark.parametrize("raw", SMUGGLING, ids=repr)
def test_hi_02_no_smuggled_request_is_served_that_another_reader_does_not_see(raw):
    for at in range(len(raw)):
        assert_we_read_no_other_requests([raw[:at], raw[at:]])


def test_of_the_corpus_only_what_all_agree_on_is_served():
    served = {raw: [target for _, target, _ in ours([raw])] for raw in SMUGGLING}
    assert {tuple(targets) for targets in served.values()} == {(), (b"/p", b"/evil")}
    both = [raw for raw, targets in served.items() if targets]
    assert len(both) == 1  # the trailer: two honest requests
    assert b"0\r\nContent-Length: 9\r\n\r\n" in both[0]


PIECES = st.sampled_from(
    [
        GET,
        HEAD,
        EVIL,
        TE,
        CL % 5,
        CL % 0,
        b"\r\n",
        b"hello",
        b"5\r\nhello\r\n",
        b"0\r\n\r\n",
        b"X: y\r\n",
        b"\n",
        b" ",
        b"1",
    ]
)


@given(st.lists(PIECES, min_size=1, max_size=12).map(b"".join), st.lists(st.integers(1, 50), max_size=8))
def test_any_stream_of_pieces_reads_as_h11_reads_it(raw, sizes):
    reads = []
    for size in sizes:
        reads.append(raw[:size])
        raw = raw[size:]
    assert_we_read_no_other_requests([*reads, raw])
