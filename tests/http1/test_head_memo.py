"""A head read by the memo is the head that the parser reads, or the same refusal, whatever came before it."""

from hypothesis import given
from hypothesis import strategies as st

from swarmgate.http1.head import Head, parse_request
from swarmgate.http1.head_memo import LONGEST_KEPT, HeadMemo
from swarmgate.http1.refusals import BadHead

lengths = st.sampled_from(
    ["0", "5", "17", "017", "1234567", "9" * 18, "9" * 19, "9" * 25, "", "-1", "+5", "5 ", "1_0", "٣", "5, 5"]
)
lines = st.sampled_from(
    ["accept: */*", "Content-Length: 9", "x: content-length: 5", "content-length : 4", "Transfer-Encoding: chunked", "connection: close", "host: b", "n: 7"]
)  # fmt: skip
names = st.sampled_from(["Content-Length: ", "content-length:", "CONTENT-LENGTH:\t ", "x-length: "])


@st.composite
def heads(draw):
    start = draw(st.sampled_from(["POST /a HTTP/1.1", "POST /a HTTP/1.0", "GET /b HTTP/1.1", "POST"]))
    fields = [
        "host: a",
        *draw(st.lists(lines, max_size=2)),
        draw(names) + draw(lengths),
        *draw(st.lists(lines, max_size=1)),
    ]
    return "\r\n".join([start, *fields, "", ""]).encode()


def read(reader, raw):
    """Everything that a head says, or why it is refused."""
    try:
        head = reader(raw)
    except BadHead as bad:
        return bad.status, bad.reason, bad.field
    assert type(head.headers) is list
    return {name: getattr(head, name) for name in Head.__slots__}


@given(st.lists(heads(), min_size=1, max_size=6))
def test_whatever_was_read_before(raws):
    memo = HeadMemo()
    for raw in raws:
        assert read(memo.read, raw) == read(parse_request, raw)


@given(heads(), st.lists(lengths, max_size=4))
def test_the_same_lines_around_other_lengths(raw, others):
    memo = HeadMemo()
    for other in ["5", *others]:
        again = raw.replace(b"17", other.encode())
        assert read(memo.read, again) == read(parse_request, again)


def test_two_heads_share_nothing_that_changes():
    memo = HeadMemo()
    first = memo.read(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n")
    second = memo.read(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 66\r\n\r\n")
    assert (first.content_length, second.content_length) == (5, 66)
    assert first.fields[b"content-length"] == b"5"
    assert first is not second
    assert first.headers is not second.headers


def test_a_long_head_is_not_kept():
    memo = HeadMemo()
    memo.read(b"POST / HTTP/1.1\r\nhost: a\r\nx: %b\r\ncontent-length: 5\r\n\r\n" % (b"x" * LONGEST_KEPT))
    assert memo._before == b""
