import contextlib

import httptools
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from swarmgate.http1.head import RequestHead, ResponseHead, parse_request, parse_response
from swarmgate.http1.head_buffer import REQUEST_FIRST, HeadBuffer
from swarmgate.http1.plain import is_plain_request, is_plain_response
from swarmgate.http1.refusals import MAX_HEADERS, REQUEST_ROWS, RESPONSE_ROWS, BadHead

OK = b"POST /v1/chat/completions?a=@b HTTP/1.1\r\nHost: api.example:8787\r\nContent-Length: 5\r\nX-A: b\r\n\r\n"


def request(start: bytes = b"GET / HTTP/1.1", *lines: bytes) -> bytes:
    return b"\r\n".join([start, *lines]) + b"\r\n\r\n"


H = b"Host: a"
G = b"GET / HTTP/1.1"

REFUSED = [
    (request(b"GET /"), "http_0_9", 400),
    (request(b"GET / HTTP/2.0", H), "version", 505),
    (request(b"GET / HTTP/1.2", H), "version", 505),
    (request(b"GET / RTSP/1.1", H), "version", 505),
    (request(b"GET / http/1.1", H), "version", 505),
    (b"PRI * HTTP/2.0\r\n\r\n", "version", 505),
    (request(b"BREW / HTTP/1.1", H), "method_unknown", 501),
    (request(b"TRACE / HTTP/1.1", H), "method_unknown", 501),
    (request(b"get / HTTP/1.1", H), "method_unknown", 501),
    (request(b"A" * 9000 + b" / HTTP/1.1", H), "method_unknown", 501),
    (request(b"GET  / HTTP/1.1", H), "malformed", 400),
    (request(b"GET / HTTP/1.1 ", H), "malformed", 400),
    (request(b"GET /a b HTTP/1.1", H), "malformed", 400),
    (request(b"GET\t/ HTTP/1.1", H), "http_0_9", 400),
    (request(b"GET /\xff HTTP/1.1", H), "target_bytes", 400),
    (request(b"GET /a#b HTTP/1.1", H), "target_fragment", 400),
    (request(b"GET http://a/#@x HTTP/1.1", H), "target_fragment", 400),
    (request(b"GET http://u:p@a/ HTTP/1.1", H), "target_userinfo", 400),
    (request(b"GET http://a:80\\@b/ HTTP/1.1", H), "target_userinfo", 400),
    (request(b"CONNECT u@a:443 HTTP/1.1", b"Host: a:443"), "target_userinfo", 400),
    (request(b"GET @evil HTTP/1.1", H), "target_form", 400),
    (request(b"GET a/b HTTP/1.1", H), "target_form", 400),
    (request(b"GET * HTTP/1.1", H), "target_form", 400),
    (request(b"GET ftp://a/ HTTP/1.1", H), "target_form", 400),
    (request(b"GET http:/a HTTP/1.1", H), "target_form", 400),
    (request(b"CONNECT /a HTTP/1.1", H), "target_form", 400),
    (request(b"CONNECT a HTTP/1.1", H), "target_form", 400),
    (request(b"CONNECT http://a:1/ HTTP/1.1", b"Host: a:1"), "target_form", 400),
    (b"GET / HTTP/1.1\nHost: a\r\n\r\n", "bare_lf", 400),
    (b"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", "bare_lf", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nX: y\rz\r\n\r\n", "bare_cr", 400),
    (b"GET / HTTP/1.1\r\nHost: a\r\nX: y\r\r\n\r\n", "bare_cr", 400),
    (request(G, H, b"X: a\x00b"), "control_byte", 400),
    (request(G, H, b"X: a\x01b"), "control_byte", 400),
    (request(G, H, b"X: a\x7fb"), "control_byte", 400),
    (request(b"GET /\x00 HTTP/1.1", H), "control_byte", 400),
    (request(G, H, b"X: a", b" b"), "obs_fold", 400),
    (request(G, H, b"X: a", b"\tb: c"), "obs_fold", 400),
    (request(G, b" Host: a"), "obs_fold", 400),
    (request(G, b"Host : a"), "space_before_colon", 400),
    (request(G, H, b"Content-Length\t: 5"), "space_before_colon", 400),
    (request(G, H, b"X\x80: a"), "bad_name", 400),
    (request(G, H, b"X y: a"), "bad_name", 400),
    (request(G, H, b": a"), "bad_name", 400),
    (request(G, H, b"X(y): a"), "bad_name", 400),
    (request(G, H, b"no colon at all"), "bad_name", 400),
    (request(G, H, b"nocolon"), "malformed", 400),
    (request(G, H, *[b"X: y"] * MAX_HEADERS), "too_many_headers", 431),
    (request(G), "host_missing", 400),
    (request(G, H, H), "host_repeated", 400),
    (request(G, H, b"HOST: b"), "host_repeated", 400),
    (request(G, b"Host: a/b"), "bad_authority", 400),
    (request(G, b"Host: u@a"), "bad_authority", 400),
    (request(G, b"Host: localhost:4000/#@x"), "bad_authority", 400),
    (request(G, b"Host: a b"), "bad_authority", 400),
    (request(G, b"Host: a, b"), "bad_authority", 400),
    (request(G, b"Host: a:123456"), "bad_authority", 400),
    (request(b"GET http:///x HTTP/1.1", b"Host:"), "bad_authority", 400),
    (request(b"GET http://a\\b/ HTTP/1.1", b"Host: a\\b"), "bad_authority", 400),
    (request(b"GET http://a/ HTTP/1.1", b"Host: b"), "host_mismatch", 400),
    (request(b"GET http://a:81/ HTTP/1.1", b"Host: a"), "host_mismatch", 400),
    (request(b"GET http://a:443/ HTTP/1.1", b"Host: a"), "host_mismatch", 400),
    (request(b"CONNECT a:443 HTTP/1.1", b"Host: b:443"), "host_mismatch", 400),
    (request(G, H, b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"), "te_repeated", 400),
    (request(b"POST / HTTP/1.0", H, b"Transfer-Encoding: chunked"), "te_in_http_1_0", 400),
    (request(G, H, b"Transfer-Encoding: chunked", b"Content-Length: 5"), "te_and_cl", 400),
    (request(G, H, b"Content-Length: 5", b"transfer-encoding: chunked"), "te_and_cl", 400),
    (request(G, H, b"Transfer-Encoding: gzip, chunked"), "te_not_chunked", 501),
    (request(G, H, b"Transfer-Encoding: chunked, identity"), "te_not_chunked", 501),
    (request(G, H, b"Transfer-Encoding: xchunked"), "te_not_chunked", 501),
    (request(G, H, b"Transfer-Encoding: \x0bchunked"), "control_byte", 400),
    (request(G, H, b"Transfer-Encoding:"), "te_not_chunked", 501),
    (request(G, H, b'Transfer-Encoding: "chunked"'), "te_not_chunked", 501),
    (request(G, H, b"Content-Length: 5", b"Content-Length: 6"), "cl_repeated", 400),
    (request(G, H, b"Content-Length: 5", b"Content-Length: 5"), "cl_repeated", 400),
    (request(G, H, b"Content-Length: 5, 5"), "cl_not_digits", 400),
    (request(G, H, b"Content-Length: +5"), "cl_not_digits", 400),
    (request(G, H, b"Content-Length: -5"), "cl_not_digits", 400),
    (request(G, H, b"Content-Length: 1_0"), "cl_not_digits", 400),
    (request(G, H, b"Content-Length: 0x10"), "cl_not_digits", 400),
    (request(G, H, b"Content-Length: 5 5"), "cl_not_digits", 400),
    (request(G, H, b"Content-Length:"), "cl_not_digits", 400),
    (request(G, H, "Content-Length: \N{ARABIC-INDIC DIGIT FIVE}".encode()), "cl_not_digits", 400),
    (request(G, H, b"Content-Length: \xb2"), "cl_not_digits", 400),
    (request(G, H, b"Content-Length: 99999999999999999999"), "cl_not_digits", 400),
    (request(G, H, b"Content-Length: 9223372036854775808"), "cl_too_large", 413),
    (request(b"CONNECT a:443 HTTP/1.1", b"Host: a:443", b"Content-Length: 5"), "connect_body", 400),
    (request(G, H, b"Expect: the-moon"), "expect", 417),
]

ACCEPTED = [
    OK,
    request(G, H),
    request(G, b"Host:"),
    request(G, b"Host: [::1]:80"),
    request(b"GET / HTTP/1.0"),
    request(b"GET //x/../y;z HTTP/1.1", H),
    request(b"GET /npm/@scope/name HTTP/1.1", H),
    request(b"OPTIONS * HTTP/1.1", H),
    request(b"GET http://A:80/x HTTP/1.1", b"Host: a"),
    request(b"GET HTTP://a/x HTTP/1.1", b"Host: a:80"),
    request(b"GET http://a?x=@y HTTP/1.1", b"Host: a"),
    request(b"CONNECT a:443 HTTP/1.1", b"Host: a:443"),
    request(b"CONNECT a:443 HTTP/1.1", b"Host: a"),
    request(b"CONNECT [::1]:443 HTTP/1.0"),
    request(G, H, b"Upgrade: websocket", b"Connection: upgrade"),
    request(G, H, b"X:", b"Y: \t a\t b \t", b"Z: \xe4\xff"),
    request(G, H, b"Transfer-Encoding: Chunked"),
    request(G, H, b"Content-Length: 9223372036854775807"),
    request(G, H, b"Expect: 100-Continue"),
    request(G, H, *[b"X: y"] * (MAX_HEADERS - 1)),
]


def refusal(parse, raw: bytes) -> BadHead | None:
    try:
        parse(raw)
    except BadHead as bad:
        return bad
    return None


def by_llhttp(parser, raw: bytes) -> bool:
    try:
        parser.feed_data(raw)
    except httptools.HttpParserUpgrade:
        return True
    except httptools.HttpParserError:
        return False
    return True


def in_two_reads(raw: bytes, cut: int) -> bytes:
    buffer = HeadBuffer(REQUEST_FIRST)
    found = buffer.feed(raw[:cut]) or buffer.feed(raw[cut:])
    assert found == (raw, b"")
    return found[0]


@pytest.mark.parametrize(("raw", "reason", "status"), REFUSED, ids=lambda value: repr(value)[:60])
def test_each_refusal_has_its_name_and_status(raw, reason, status):
    with pytest.raises(BadHead) as caught:
        parse_request(raw)
    assert (caught.value.reason, caught.value.status) == (reason, status)
    assert caught.value.sentence in str(caught.value)


def test_every_row_of_the_table_has_an_example():
    assert {row.name for row in REQUEST_ROWS} == {reason for _, reason, _ in REFUSED}


@pytest.mark.parametrize("raw", ACCEPTED, ids=lambda value: repr(value)[:60])
def test_what_is_ordinary_passes(raw):
    assert parse_request(raw).raw == raw


@pytest.mark.parametrize("raw", [raw for raw, _, _ in REFUSED] + ACCEPTED, ids=lambda value: repr(value)[:60])
def test_no_split_changes_the_verdict(raw):
    whole = refusal(parse_request, raw)
    reasons = {whole.reason, "bare_lf", "not_http"} if whole else {None}  # the wait may end before the blank line
    for cut in range(1, len(raw)):
        split = refusal(lambda raw, cut=cut: parse_request(in_two_reads(raw, cut)), raw)
        assert (split.reason if split else None) in reasons


PIECES = st.sampled_from(
    b"GET|POST|CONNECT| |/|HTTP/1.1|HTTP/1.0|\r\n|\r|\n|:|host|a|b:80|content-length|5|transfer-encoding|chunked|expect"
    b"|100-continue|\0|\x80|\t|#|@|http://a|*|x-y|, |0|99999999999999999999|keep-alive|connection|close".split(b"|")
)
LINE = st.lists(PIECES, max_size=5).map(b"".join)
HEADS = st.builds(
    lambda start, lines, junk: b"\r\n".join([start, *lines, *junk]) + b"\r\n\r\n",
    st.sampled_from([G, b"POST /x HTTP/1.1", b"GET http://a/ HTTP/1.1", b"CONNECT a:443 HTTP/1.1"]) | LINE,
    st.lists(
        st.sampled_from([H, b"Host: b", b"Content-Length: 5", b"Transfer-Encoding: chunked", b"Expect: x", b"X: y"]),
        max_size=4,
    ),
    st.lists(LINE, max_size=3),
)


@given(HEADS | st.binary(max_size=200).map(lambda raw: raw + b"\r\n\r\n"))
@example(OK)
def test_plain_means_that_no_row_applies_and_any_bytes_get_a_verdict(raw):
    refusal(parse_request, raw)
    refusal(parse_response, raw)
    for head, plain, rows, parser in (
        (RequestHead(raw), is_plain_request, REQUEST_ROWS, httptools.HttpRequestParser),
        (ResponseHead(raw), is_plain_response, RESPONSE_ROWS, httptools.HttpResponseParser),
    ):
        if plain(head) and by_llhttp(parser(object()), raw):
            assert [row.name for row in rows if row.applies(head)] == []


@given(HEADS)
@example(OK)
def test_both_readers_cut_the_same_lines(raw):
    if refusal(parse_request, raw):
        return
    seen = []

    class Listener:
        def on_header(self, name, value):
            seen.append((name.lower(), value.rstrip(b" \t")))

    with contextlib.suppress(httptools.HttpParserUpgrade):
        httptools.HttpRequestParser(Listener()).feed_data(raw)
    assert seen == parse_request(raw).headers


@pytest.mark.parametrize("byte", [*range(33), *b":#@,0z", 127, 128, 255])
def test_what_is_plain_and_fine_with_llhttp_stays_without_refusal_after_any_change_of_one_byte(byte):
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\n"
    for base, kind, plain, rows, parser in (
        (OK, RequestHead, is_plain_request, REQUEST_ROWS, httptools.HttpRequestParser),
        (answer, ResponseHead, is_plain_response, RESPONSE_ROWS, httptools.HttpResponseParser),
    ):
        for at in range(len(base)):
            for raw in (base[:at] + bytes([byte]) + base[at:], base[:at] + bytes([byte]) + base[at + 1 :]):
                end = raw.find(b"\r\n\r\n") + 4
                head = kind(raw[:end]) if end >= 4 else None
                if head and plain(head) and by_llhttp(parser(object()), head.raw):
                    assert [row.name for row in rows if row.applies(head)] == []
