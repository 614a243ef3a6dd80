"""Callers that smuggle, flood or confuse: each check has its number in the catalogue of failures (HI: HTTP from clients)."""

import json

import pytest
from stage import UNARY, warm, whole
from test_front import TEXT, answered, request
from wires import Bench

CHAT = b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n"
BODY = b'{"model":"fast"}'
SMUGGLED = {
    "CL.TE": CHAT
    + b"content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\nhost: g\r\n\r\n",
    "TE.TE": CHAT + b"transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n",
    "two lengths": CHAT + b"content-length: 16\r\ncontent-length: 17\r\n\r\n" + BODY,
    "signed length": CHAT + b"content-length: +16\r\n\r\n" + BODY,
    "grouped length": CHAT + b"content-length: 1_6\r\n\r\n" + BODY,
    "hex length": CHAT + b"content-length: 0x10\r\n\r\n" + BODY,
    "space before colon": CHAT + b"content-length : 16\r\n\r\n" + BODY,
    "folded": CHAT + b"x: a\r\n b\r\ncontent-length: 16\r\n\r\n" + BODY,
    "bare LF": CHAT.replace(b"\r\n", b"\n") + b"content-length: 16\n\n" + BODY,
    "NUL": CHAT + b"x: a\0b\r\ncontent-length: 16\r\n\r\n" + BODY,
    "bad chunk end": CHAT + b"transfer-encoding: chunked\r\n\r\n10\r\n" + BODY + b"XX0\r\n\r\n",
    "HI-05 10k lines": CHAT + b"".join(b"x%d: y\r\n" % n for n in range(10_000)) + b"\r\n",
    "HI-05 one long line": CHAT + b"x: " + b"y" * 1_000_000 + b"\r\n\r\n",
    "HI-06 length of 2^63": CHAT + b"content-length: 9223372036854775808\r\n\r\n",
    "HI-19 HTTP/2 without being asked": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
    "HI-11 two hosts": CHAT + b"host: h\r\ncontent-length: 16\r\n\r\n" + BODY,
    "HI-11 host with a path": CHAT.replace(b"host: g", b"host: localhost:4000/#@x")
    + b"content-length: 16\r\n\r\n"
    + BODY,
    "HI-11 no host": CHAT.replace(b"host: g\r\n", b"") + b"content-length: 16\r\n\r\n" + BODY,
    "HI-11 path that is none": CHAT.replace(b"/v1", b"@evil/v1") + b"content-length: 16\r\n\r\n" + BODY,
}


@pytest.mark.parametrize("name", SMUGGLED)
def test_hi_01_05_06_11_19_what_two_readers_could_read_differently_is_sent_to_nobody(name):
    bench = Bench(TEXT)
    warm(bench.gate)
    for at in range(0, len(SMUGGLED[name]), 16_384):
        bench.client.data_received(SMUGGLED[name][at : at + 16_384])
    said = b"".join(bench.wire.written)
    assert int(said.split()[1]) in {*range(400, 500), 505}
    assert json.loads(said.partition(b"\r\n\r\n")[2])["error"]["code"].startswith("caller_")
    assert bench.dialler.dials == []
    assert not bench.gate.pump.open


def test_hi_03_a_thousand_pipelined_requests_are_answered_in_order():
    bench = Bench(TEXT)
    warm(bench.gate)
    raw = b"".join(request(body=b'{"model":"none-%d"}' % number) for number in range(500))
    bench.client.data_received(raw)
    said = b"".join(bench.wire.written)
    places = [said.index(b"'none-%d'" % number) for number in range(500)]
    assert places == sorted(places)


def test_hi_07_a_body_of_tiny_chunks_costs_no_more_than_its_bytes_times_a_hundred():
    bench = Bench(TEXT)
    warm(bench.gate)
    bench.client.data_received(CHAT + b"transfer-encoding: chunked\r\n\r\n")
    body = b'{"model":"fast","messages":"' + b"x" * 5_000 + b'"}'
    for byte in body:
        bench.client.data_received(b"1\r\n%c\r\n" % byte)
    bench.client.data_received(b"0\r\n\r\n")
    bench.dialler.succeed()
    end, wire = bench.dialler.opened[0]
    assert json.loads(wire.written[0].partition(b"\r\n\r\n")[2])["messages"] == "x" * 5_000
    end.data_received(whole(UNARY))
    assert bench.ends == ["answered"]


def test_hi_07_a_quarter_of_a_megabyte_of_tiny_chunks_at_once_is_refused():
    status, error = answered(CHAT + b"transfer-encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 43_000)
    assert (status, error["code"]) == (400, "caller_chunks_too_small")
    assert "24 bytes" in error["message"]


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_hi_09_what_has_no_body_gets_none(status):
    bench = Bench(TEXT)
    warm(bench.gate)
    bench.client.data_received(request("/v1/files/f", b"", "DELETE") + request(body=BODY))
    bench.dialler.succeed()
    end, _ = bench.dialler.opened[0]
    end.data_received(f"HTTP/1.1 {status}\r\n\r\n".encode())
    end.data_received(whole(UNARY))
    said = b"".join(bench.wire.written)
    first, _, second = said.partition(b"\r\n\r\n")
    assert first.startswith(f"HTTP/1.1 {status[:3]}".encode())
    assert second.startswith(b"HTTP/1.1 200 ")


def test_hi_10_a_caller_that_half_closes_has_left():
    bench = Bench(TEXT)
    warm(bench.gate)
    bench.client.data_received(request(body=BODY))
    bench.dialler.succeed()
    _, wire = bench.dialler.opened[0]
    bench.client.eof_received()
    assert bench.ends == ["cancelled"]
    assert wire.closing


def test_hi_12_ours_cannot_be_stripped_or_forged():
    bench = Bench(TEXT)
    warm(bench.gate)
    lines = ("connection: authorization, x-swarmgate-hop", "authorization: Bearer mine", "x-forwarded-for: 10.0.0.1")
    bench.client.data_received(request("/v1/responses", BODY, "POST", *lines, "proxy-authorization: Basic eA=="))
    bench.dialler.succeed()
    head = bench.dialler.opened[0][1].written[0].partition(b"\r\n\r\n")[0]
    assert head.count(b"authorization: ") == 1
    assert b"authorization: Bearer sk-1\r\n" in head
    assert b"x-forwarded-for" not in head
    assert b"x-swarmgate-hop: " in head


@pytest.mark.parametrize("field", ["model", "x-swarmgate-agent"])
def test_hi_13_no_value_begins_a_line(field):
    evil = "fast\\r\\nset-cookie: a=1" if field == "model" else "a1"
    bench = Bench(TEXT.partition("[routes]")[0])
    warm(bench.gate)
    bench.client.data_received(request("/v1/responses", f'{{"model":"{evil}"}}'.encode(), "POST", f"{field}: a1"))
    bench.dialler.succeed()
    end, wire = bench.dialler.opened[0]
    assert b"\r\nset-cookie" not in wire.written[0]
    end.data_received(whole(UNARY))
    assert b"\r\nset-cookie" not in b"".join(bench.wire.written)


DEEP = b'{"model":"fast","messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"model":"fast","model":"slow"}', "twice"),
        (b'{"model":"fast","mod\\u0065l":"slow"}', "twice"),
        (b'{"model":"\\ud800"}', "body"),
        (b'{"model":"fast","x":NaN}', "one JSON object"),
        (b'{"model":"fast"}{"model":"slow"}', "one JSON object"),
        (b'{"model":"fast","max_tokens":1e1000}', "max_tokens"),
        (b'{"model":["fast"]}', "model"),
        (b"\xff\xfe", "one JSON object"),
    ],
)
def test_hi_16_json_that_readers_disagree_on_is_not_sent(body, words):
    status, error = answered(request(body=body))
    assert (status, error["code"]) == (400, "caller_bad_request")
    assert words in error["message"]


def test_hi_16_what_was_judged_is_what_is_sent():
    bench = Bench(TEXT)
    warm(bench.gate)
    bench.client.data_received(request(body=DEEP))
    if not bench.dialler.dials:  # too deep for the reader: refused, nothing sent
        assert b" 400 " in bench.wire.written[0]
        return
    bench.dialler.succeed()
    sent = bench.dialler.opened[0][1].written[0].partition(b"\r\n\r\n")[2]
    assert sent == DEEP.replace(b'"fast"', b'"real-name"')


def test_hi_17_compressed_bodies_are_refused_before_they_are_read():
    bench = Bench(TEXT)
    head = CHAT + b"content-encoding: gzip\r\ncontent-length: 1000000\r\n\r\n"
    assert answered(head, bench)[0] == 415
