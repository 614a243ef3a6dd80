"""Callers that smuggle, flood or confuse: each check has its number in the catalogue of failures (HI: HTTP from clients)."""

import json
import tracemalloc

import pytest
from stage import UNARY, warm, whole
from test_cost import counted
from test_front import TEXT, answered, request
from wires import Bench, Wire

from swarmgate.gate.model_route import PATHS
from swarmgate.gate.service import Door
from swarmgate.http1.head_buffer import MAX_HEAD_BYTES

CHAT = b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n"
BODY = b'{"model":"fast"}'
SMUGGLED = {
    "CL.TE": CHAT
    + b"content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\nhost: g\r\n\r\n",
    "TE.CL": CHAT
    + b"transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n2c\r\nGET /x HTTP/1.1\r\nhost: g\r\n\r\n\r\n0\r\n\r\n",
    "TE.TE": CHAT + b"transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n",
    "two lengths": CHAT + b"content-length: 16\r\ncontent-length: 17\r\n\r\n" + BODY,
    "signed length": CHAT + b"content-length: +16\r\n\r\n" + BODY,
    "grouped length": CHAT + b"content-length: 1_6\r\n\r\n" + BODY,
    "hex length": CHAT + b"content-length: 0x10\r\n\r\n" + BODY,
    "length in other digits": CHAT + "content-length: \u0661\u0666\r\n\r\n".encode() + BODY,
    "length of superscripts": CHAT + b"content-length: 1\xb2\r\n\r\n" + BODY,
    "encoding behind a control": CHAT + b"transfer-encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "name beyond ASCII": CHAT + b"content-length\xa0: 16\r\n\r\n" + BODY,
    "bare LF in an extension": CHAT + b"transfer-encoding: chunked\r\n\r\n10;a\n" + BODY + b"\r\n0\r\n\r\n",
    "signed chunk": CHAT + b"transfer-encoding: chunked\r\n\r\n+10\r\n" + BODY + b"\r\n0\r\n\r\n",
    "grouped chunk": CHAT + b"transfer-encoding: chunked\r\n\r\n1_0\r\n" + BODY + b"\r\n0\r\n\r\n",
    "hex chunk": CHAT + b"transfer-encoding: chunked\r\n\r\n0x10\r\n" + BODY + b"\r\n0\r\n\r\n",
    "folded trailer": CHAT + b"transfer-encoding: chunked\r\n\r\n10\r\n" + BODY + b"\r\n0\r\nx: y\r\n z\r\n\r\n",
    "trailer without colon": CHAT
    + b"transfer-encoding: chunked\r\n\r\n10\r\n"
    + BODY
    + b"\r\n0\r\nGET /x HTTP/1.1\r\n\r\n",
    "bare LF before a trailer": CHAT + b"transfer-encoding: chunked\r\n\r\n10\r\n" + BODY + b"\r\n0\nx: y\r\n\r\n",
    "length as a trailer": CHAT
    + b"transfer-encoding: chunked\r\n\r\n10\r\n"
    + BODY
    + b"\r\n0\r\ncontent-length: 9\r\n\r\n",
    "request in an extension": CHAT
    + b"transfer-encoding: chunked\r\n\r\n10;GET /x HTTP/1.1\r\n"
    + BODY
    + b"\r\n0\r\n\r\n",
    "space before colon": CHAT + b"content-length : 16\r\n\r\n" + BODY,
    "folded": CHAT + b"x: a\r\n b\r\ncontent-length: 16\r\n\r\n" + BODY,
    "bare LF": CHAT.replace(b"\r\n", b"\n") + b"content-length: 16\n\n" + BODY,
    "NUL": CHAT + b"x: a\0b\r\ncontent-length: 16\r\n\r\n" + BODY,
    "bad chunk end": CHAT + b"transfer-encoding: chunked\r\n\r\n10\r\n" + BODY + b"XX0\r\n\r\n",
    "HI-05 10k lines": CHAT + b"".join(b"x%d: y\r\n" % n for n in range(10_000)) + b"\r\n",
    "HI-05 10k trailers": CHAT
    + b"transfer-encoding: chunked\r\n\r\n10\r\n"
    + BODY
    + b"\r\n0\r\n"
    + b"".join(b"x%d: y\r\n" % n for n in range(10_000))
    + b"\r\n",
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
    raw = b"".join(request(body=b'{"model":"none-%d"}' % number) for number in range(1_000))
    bench.client.data_received(raw)
    said = b"".join(bench.wire.written)
    places = [said.index(b"'none-%d'" % number) for number in range(1_000)]
    assert places == sorted(places)


def doors(bench, many):
    """Further connections of callers."""
    made = [(Door(bench.gate.front, bench.gate.sweep, bench.gate.doors, many + 1), Wire()) for _ in range(many)]
    for door, wire in made:
        door.connection_made(wire)
    return made


def test_hi_04_a_thousand_slow_callers_are_closed_and_cost_a_good_one_nothing():
    bench = Bench(TEXT)
    warm(bench.gate)
    good = request(body=BODY)

    def serve():
        bench.client.data_received(good)
        if bench.dialler.dials:
            bench.dialler.succeed()
        bench.dialler.opened[0][0].data_received(whole(UNARY))

    serve()
    alone = len(counted(serve))
    slow = doors(bench, 1_000)
    upload = b"POST /v1/%b HTTP/1.1\r\nhost: g\r\ncontent-length: 999\r\n\r\n"
    starts = (b"P", upload % b"chat/completions", upload % b"files")
    for number, (door, _) in enumerate(slow):
        door.data_received(starts[number % 3])
    for number in range(40):
        for door, wire in slow:
            if not wire.written:
                door.data_received(b"OST /slow"[number % 9 : number % 9 + 1])
        bench.pass_time(1_000)
        assert len(counted(serve)) <= 2 * alone
    assert all(wire.written[0].startswith(b"HTTP/1.1 408 ") for _, wire in slow)
    bench.pass_time(15_000)
    assert all(wire.closing for _, wire in slow)
    assert bench.ends == ["answered"] * 42


def test_hi_05_a_head_that_never_ends_takes_little_memory_and_no_more_than_a_head_may_have():
    bench = Bench(TEXT)
    many = doors(bench, 4)
    reads = [CHAT + b"x: "] + [b"y"] * (MAX_HEAD_BYTES - len(CHAT) - 4)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for door, _ in many:
            for read in reads:
                door.data_received(read)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (peak - before) / len(many) <= 64 * 1024
    for door, wire in many:
        assert not wire.written
        door.data_received(b"y")
        assert wire.written[0].startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/files"])
def test_hi_06_a_body_without_end_is_refused_or_goes_on_and_is_never_kept_whole(monkeypatch, path):
    """What a target may get of it is the target's business; what the gate keeps of it is not."""
    sizes = []
    monkeypatch.setattr(Wire, "write", lambda self, data: sizes.append(len(data)) or self.written.append(data[:80]))
    bench = Bench(TEXT)
    warm(bench.gate)
    bench.client.data_received(b"POST %b HTTP/1.1\r\nhost: g\r\ntransfer-encoding: chunked\r\n\r\n" % path.encode())
    chunk = b"40000\r\n" + bytes(0x40000) + b"\r\n"
    tracemalloc.start()
    try:
        came = 0
        while came < 100_000_000 and not bench.wire.written:
            bench.client.data_received(chunk)
            if bench.dialler.dials:
                bench.dialler.succeed()
            came += 0x40000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(chunk)
    if path == "/v1/files":
        assert sum(sizes) > came
        return
    assert bench.wire.written[0].startswith(b"HTTP/1.1 413 ")
    assert came <= bench.gate.models.most_body_bytes + 0x40000
    assert bench.dialler.dials == []


def test_hi_07_a_body_of_tiny_chunks_costs_no_more_than_its_bytes_times_a_hundred():
    bench = Bench(TEXT)
    warm(bench.gate)
    body = b'{"model":"fast","messages":"' + b"x" * 5_000 + b'"}'
    bench.client.data_received(CHAT + b"transfer-encoding: chunked\r\n\r\n")

    def come():
        for byte in body:
            bench.client.data_received(b"1\r\n%c\r\n" % byte)
        bench.client.data_received(b"0\r\n\r\n")

    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        come()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (peak - before) / len(body) <= 100
    bench.dialler.succeed()
    end, wire = bench.dialler.opened[0]
    assert json.loads(wire.written[0].partition(b"\r\n\r\n")[2])["messages"] == "x" * 5_000
    end.data_received(whole(UNARY))
    assert bench.ends == ["answered"]
    bench.client.data_received(CHAT + b"transfer-encoding: chunked\r\n\r\n")
    assert len(counted(come)) <= 10 * len(body)  # functions entered per read of one byte


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


DEEP = b'{"model":"fast","messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"model":"fast","model":"slow"}', "twice"),
        (b'{"model":"fast","mod\\u0065l":"slow"}', "twice"),
        (b'{"model":"\\ud800"}', "half of a surrogate pair"),
        (b'{"model":"fast","messages":[{"role":"user","content":"\\ud800"}]}', "half of a surrogate pair"),
        (b'{"model":"fast","messages":[{"role":"user","content":"\xff\xfe"}]}', "not UTF-8"),
        (b'{"model":"fast","x":NaN}', "one JSON object"),
        (b'{"model":"fast"}{"model":"slow"}', "one JSON object"),
        (b'{"model":"fast","max_tokens":1e1000}', "max_tokens"),
        (b'{"model":["fast"]}', "model"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_hi_16_json_that_readers_disagree_on_is_not_sent(body, words):
    for path in PATHS:
        status, error = answered(request(path.decode(), body))
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
