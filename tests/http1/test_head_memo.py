"""A head read by the memo is the head that the parser reads, or the same refusal, whatever came before it."""

from hypothesis import given
from hypothesis import strategies as st

from records import fields_of
from swarmgate.http1.head import parse_request, parse_response
from swarmgate.http1.head_memo import LONGEST_KEPT, RequestHeads, ResponseHeads
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


AFTER = b"the next"


def alone(raw):
    return parse_request(raw), AFTER


def read(reader, raw):
    """Everything that a head says but for the digits of its length, or why it is refused."""
    try:
        head, rest = reader(raw)
    except BadHead as bad:
        return bad.status, bad.reason, bad.field
    assert rest == AFTER
    said = {name: getattr(head, name) for name in fields_of(type(head)) if name != "raw"}
    said["headers"] = [name if name == b"content-length" else (name, value) for name, value in head.headers]
    said["fields"] = head.fields | ({b"content-length": b""} if b"content-length" in head.fields else {})
    return said


def following(heads):
    return lambda raw: heads.next(raw + AFTER)


@given(st.lists(heads(), min_size=1, max_size=6))
def test_whatever_was_read_before(raws):
    reads = following(RequestHeads())
    for raw in raws:
        assert read(reads, raw) == read(alone, raw)


@given(heads(), st.lists(lengths, max_size=4))
def test_the_same_lines_around_other_lengths(raw, others):
    reads = following(RequestHeads())
    for other in ["5", *others]:
        again = raw.replace(b"17", other.encode())
        assert read(reads, again) == read(alone, again)


@given(heads(), st.lists(st.tuples(lengths, st.integers(1, 200)), max_size=4))
def test_the_same_lines_in_two_reads(raw, others):
    memo = RequestHeads()
    for other, place in [("5", 200), *others]:
        again = raw.replace(b"17", other.encode())

        def reads(raw, place=place):
            begun = memo.next(raw[:place])
            return memo.next(raw[place:] + AFTER) if begun is None else (begun[0], begun[1] + raw[place:] + AFTER)

        said = read(reads, again)
        assert said == read(alone, again)
        if type(said) is tuple:
            return  # nothing is read after a refusal


def test_lines_that_come_again_are_the_same_head():
    memo = RequestHeads()
    first, body = memo.next(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nbo")
    assert (first.content_length, body) == (5, b"bo")
    first.notes["worked"] = "out"
    second, body = memo.next(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 66\r\n\r\nbod")
    assert (second.content_length, second.notes, body) == (66, {"worked": "out"}, b"bod")
    third, _ = memo.next(b"POST /b HTTP/1.1\r\nhost: a\r\ncontent-length: 66\r\n\r\n")
    assert (third.target, third.notes) == (b"/b", {})


def test_a_long_head_is_not_kept():
    memo = RequestHeads()
    raw = b"POST / HTTP/1.1\r\nhost: a\r\nx: %b\r\ncontent-length: 5\r\n\r\n" % (b"x" * LONGEST_KEPT)
    assert memo.next(raw)[0] is not memo.next(raw)[0]


@st.composite
def answers(draw):
    start = draw(
        st.sampled_from(["HTTP/1.1 200 OK", "HTTP/1.1 200 Fine", "HTTP/1.0 200 OK", "HTTP/1.1 429 No", "HTTP/1.1"])
    )
    return "\r\n".join([start, *draw(st.lists(lines, max_size=3)), "", ""]).encode()


def answered(raw):
    return parse_response(raw), AFTER


@given(
    st.lists(answers(), min_size=1, max_size=4), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 99)), max_size=8)
)
def test_whatever_was_answered_before(raws, order):
    memo = ResponseHeads()
    for which, place in order:
        raw = raws[which % len(raws)]

        def reads(raw, place=place):
            begun = memo.next(raw[:place])
            return memo.next(raw[place:] + AFTER) if begun is None else (begun[0], begun[1] + raw[place:] + AFTER)

        said = read(reads, raw)
        assert said == read(answered, raw)
        if type(said) is tuple:
            return  # nothing is read after a refusal


def test_an_answer_that_comes_again_has_the_same_head():
    memo = ResponseHeads()
    raw = b"HTTP/1.1 200 OK\r\ndate: today\r\ncontent-length: 5\r\n\r\n"
    first, _ = memo.next(raw + b"hello")
    assert memo.next(raw + b"again") == (first, b"again")
    other, _ = memo.next(raw.replace(b"today", b"tomorrow"))
    assert other is not first
    assert other.fields[b"date"] == b"tomorrow"
    assert memo.next(raw[:-2]) is None
    assert memo.next(b"\r\n")[0].headers == first.headers
