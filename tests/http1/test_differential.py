"""What we serve and pass on is what other readers would have read: whole streams of requests against h11 and aiohttp's two parsers."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from readers import READERS
from wire import Line

from swarmgate.http1.render import LAST_CHUNK, frame, passed_on, request_head

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
    HEAD + TE + b"\r\n0;ext" + EVIL,
]
# Two requests each, in forms that are rarely seen.
HONEST = [
    HEAD + CL % 5 + b"\r\nhello" + EVIL,
    HEAD + b"Content-Length: 05\r\n\r\nhello" + EVIL,
    HEAD + TE + b'\r\n5;a=b;c="d e"\r\nhello\r\n000\r\nExpires: 0\r\n\r\n' + EVIL,
    HEAD + b"transfer-encoding:Chunked\r\n\r\n05\r\nhello\r\n0\r\n\r\n" + EVIL,
]


def ours(reads: list[bytes]) -> list[tuple[bytes, bytes, bytes]]:
    """(method, target, body) of each request that a call was completed for."""
    return [(head.method, head.target, body) for head, body in served(reads)]


def served(reads: list[bytes]) -> list[tuple]:
    """The head and the body of each request that a call was completed for."""
    calls = []

    def answer(end):
        calls.append((end.head, line.heard.body))
        end.respond(200, [])

    line = Line(answer)
    line.send(*reads)
    return calls


def forwarded(reads: list[bytes], *, chunked: bool) -> bytes:
    """What goes on of it: the requests as a target gets them, on one connection."""
    sent = b""
    for head, body in served(reads):
        length = None if chunked else len(body)
        sent += request_head(head.method, head.target, b"target", passed_on(head), length=length, chunked=chunked)
        sent += (frame(body) if body else b"") + LAST_CHUNK if chunked else body
    return sent


def outcome(reads: list[bytes]) -> list[str]:
    """What became of it, in short: each request that was served, then why no more was."""
    line = Line(lambda end: end.respond(200, []))
    line.send(*reads)
    events = line.events
    whole = [event for event, then in pairwise(events) if then[0] == "complete"]
    return [event[1].decode() for event in whole] + [event[1] for event in events if event[0] == "refused"]


def disagreements(raw: bytes) -> list[str]:
    """The readers that read other requests than were served, or that read otherwise what goes on of them."""
    seen = ours([raw])
    apart = [name for name, reader in READERS.items() if reader(raw)[: len(seen)] != seen]
    sent = {chunked: forwarded([raw], chunked=chunked) for chunked in (False, True)}
    apart += [
        f"{name}, chunked: {c}" for c, data in sent.items() for name, reader in READERS.items() if reader(data) != seen
    ]
    return apart


def assert_we_read_no_other_requests(reader, reads: list[bytes]) -> None:
    seen, other = ours(reads), reader(b"".join(reads))
    assert seen == other[: len(seen)]


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_the_count_can_fail(reader):
    assert reader(HEAD + CL % 2 + b"\r\nhi" + GET) == [(b"POST", b"/p", b"hi"), (b"GET", b"/g", b"")]
    assert reader(HEAD + TE + b"\r\n2\r\nhi\r\n0\r\n\r\n") == [(b"POST", b"/p", b"hi")]
    assert reader(HEAD + CL % 3 + b"\r\nhi") == []
    assert reader(GET + b"nonsense\r\n\r\n") == [(b"GET", b"/g", b"")]


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize("raw", SMUGGLING, ids=repr)
def test_hi_02_no_smuggled_request_is_served_that_another_reader_does_not_see(raw, reader):
    other = reader(raw)
    for at in range(len(raw)):
        seen = ours([raw[:at], raw[at:]])
        assert seen == other[: len(seen)]


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("raw", SMUGGLING + HONEST, ids=repr)
def test_hi_02_what_goes_on_is_read_alike_by_all(raw, chunked):
    sent = forwarded([raw], chunked=chunked)
    for reader in READERS.values():
        assert reader(sent) == ours([raw])


@pytest.mark.parametrize("raw", SMUGGLING, ids=repr)
def test_of_the_corpus_nothing_is_served(raw):
    assert ours([raw]) == []


@pytest.mark.parametrize("raw", HONEST, ids=repr)
def test_what_is_honest_is_served_and_read_alike_by_all(raw):
    assert ours([raw]) == [(b"POST", b"/p", b"hello"), (b"GET", b"/evil", b"")]
    for reader in READERS.values():
        assert reader(raw) == ours([raw])


USUAL = [
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
PIECES = st.sampled_from(USUAL)

# More of the kind, for fuzz.py.
FUZZ_PIECES = [
    *USUAL,
    *(
        b"\r",
        b"\t",
        b";",
        b";a=b",
        b":",
        b"\0",
        b"\xff",
        b"HTTP/1.1",
        b"Host: a\r\n",
        b"X:\r\n",
        b"X: \x80\r\n",
        b"a\x80: b\r\n",
    ),
    *(
        b"Connection: close\r\n",
        b"Connection: upgrade\r\nUpgrade: x\r\n",
        b"Expect: 100-continue\r\n",
        b"Cookie: a\r\n",
    ),
    *(b"Content-length:5\r\n", b"Content-Length: 05\r\n", b"Content-Encoding: gzip\r\n", b"Keep-Alive: 1\r\n"),
    *(b"transfer-encoding:chunked\r\n", b"Transfer-Encoding: Chunked\r\n", b"Transfer-Encoding: chunked,chunked\r\n"),
    *(
        b'5;x="y"\r\nhello\r\n',
        b"5;x=y\r\nhello\r\n",
        b"05\r\nhello\r\n",
        b"5 \r\nhello\r\n",
        b"0;a\r\n\r\n",
        b"000\r\n\r\n",
    ),
    *(b"0\r\nX: y\r\n\r\n", b"0\r\nConnection: close\r\n\r\n", b"0\r\nUpgrade: x\r\n\r\n", b"0\r\nTrailer: x\r\n\r\n"),
    *(
        b"0\r\nX:\xff\r\n\r\n",
        b"0\r\nX :y\r\n\r\n",
        b"0\r\nHost: b\r\n\r\n",
        b"GET /x HTTP/1.0\r\n",
        b"DELETE /d HTTP/1.1\r\nHost: a\r\n",
    ),
    *(
        b"HEAD /h HTTP/1.1\r\nHost: a\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /a?b#c HTTP/1.1\r\nHost: a\r\n\r\n",
    ),
    *(b"GET http://a/x HTTP/1.1\r\nHost: a\r\n\r\n", b"PATCH /p HTTP/1.1\r\nHost: a\r\n"),
]


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@given(st.lists(PIECES, min_size=1, max_size=12).map(b"".join), st.lists(st.integers(1, 50), max_size=8))
def test_any_stream_of_pieces_reads_as_others_read_it(reader, raw, sizes):
    assert_we_read_no_other_requests(reader, cut(raw, sizes))


@given(st.lists(PIECES, min_size=1, max_size=12).map(b"".join), st.booleans())
def test_whatever_goes_on_is_read_alike_by_all(raw, chunked):
    sent = forwarded([raw], chunked=chunked)
    for reader in READERS.values():
        assert reader(sent) == ours([raw])


def cut(raw: bytes, sizes: list[int]) -> list[bytes]:
    reads = []
    for size in sizes:
        reads.append(raw[:size])
        raw = raw[size:]
    return [*reads, raw]
