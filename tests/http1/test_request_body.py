"""What is refused of a caller's chunks and left behind of a target's: forms that other readers refuse or read otherwise (HI-01, HI-02)."""

import pytest
from readers import READERS

from swarmgate.http1.framing import MAX_EXTENSION_BYTES, BadBody, BodyReader
from swarmgate.http1.head import parse_request, parse_response
from swarmgate.http1.request_body import request_body
from swarmgate.http1.response_reader import response_body

HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


def asked() -> BodyReader:
    return request_body(parse_request(HEAD))


def answered() -> BodyReader:
    return response_body(parse_response(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), b"GET")


def feed_all(reader: BodyReader, *reads: bytes) -> None:
    for data in reads:
        reader.feed(data)


REFUSED = [
    (b"5; a=b\r\nhello\r\n0\r\n\r\n", "bad_chunk_size"),
    (b"5;a =b\r\nhello\r\n0\r\n\r\n", "bad_chunk_size"),
    (b"5;\r\nhello\r\n0\r\n\r\n", "bad_chunk_size"),
    (b"5;a;;b\r\nhello\r\n0\r\n\r\n", "bad_chunk_size"),
    (b"5;a=\r\nhello\r\n0\r\n\r\n", "bad_chunk_size"),
    (b'5;a="b\r\nhello\r\n0\r\n\r\n', "bad_chunk_size"),
    (b"5\r\nhello\r\n0;extGET /evil HTTP/1.1\r\nHost: a\r\n\r\n", "bad_chunk_size"),
    (b"5\r\nhello\r\n0\r\ncontent-length: 9\r\n\r\n", "bad_trailer"),
    (b"5\r\nhello\r\n0\r\nContent-Length::9\r\n\r\n", "bad_trailer"),
    (b"5\r\nhello\r\n0\r\na: b\r\nTransfer-Encoding: chunked\r\n\r\n", "bad_trailer"),
    (b"5\r\nhello\r\n0\r\nhOsT: b\r\n\r\n", "bad_trailer"),
    (b"5\r\nhello\r\n0\r\nConnection: close\r\n\r\n", "bad_trailer"),
    (b"5\r\nhello\r\n0\r\nUpgrade: x\r\n\r\n", "bad_trailer"),
]


@pytest.mark.parametrize(("raw", "reason"), REFUSED, ids=repr)
def test_hi_01_what_readers_disagree_on_is_refused_of_a_caller_at_every_split(raw, reason):
    for at in range(len(raw)):
        with pytest.raises(BadBody) as caught:
            feed_all(asked(), raw[:at], raw[at:])
        assert caught.value.reason == reason


@pytest.mark.parametrize("raw", [raw for raw, _ in REFUSED], ids=repr)
def test_up_16_of_a_target_it_is_left_behind(raw):
    reader = answered()
    assert (reader.feed(raw), reader.done, reader.leftover) == (b"hello", True, b"")


@pytest.mark.parametrize("extension", [b"", b";a", b";a=b", b";a=b;c", b';a="b c;\t"', b';a="b\\"";c=d'], ids=repr)
@pytest.mark.parametrize("trailer", [b"", b"x-sum: 1\r\n"])
def test_the_form_of_the_standard_is_read_by_all(extension, trailer):
    raw = b"5%b\r\nhello\r\n0%b\r\n%b\r\n" % (extension, extension, trailer)
    reader = asked()
    assert (reader.feed(raw), reader.done) == (b"hello", True)
    for other in READERS.values():
        assert other(HEAD + raw) == [(b"POST", b"/", b"hello")]


def test_an_extension_stays_short():
    with pytest.raises(BadBody):
        asked().feed(b"5;" + b"a" * (MAX_EXTENSION_BYTES + 1) + b"\r\nhello\r\n")
