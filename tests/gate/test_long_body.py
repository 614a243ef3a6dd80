"""A long body passes without a copy of its own: what it takes beside what came is bounded, at every read."""

import asyncio
import json
import tracemalloc

import pytest
from stage import UNARY, either, stage, warm, whole
from test_front import TEXT, request
from wires import Bench, Wire

from swarmgate.engine.loops import new_event_loop
from swarmgate.gate.long_body import LongBody
from swarmgate.gate.peeked import MOST_COPIED_BYTES
from swarmgate.http1.upload import PIECE_BYTES

READ_BYTES = 256 * 1024
MOST_TAKEN_BYTES = 3 * READ_BYTES


@pytest.fixture
def keeping(monkeypatch):
    """Transports keep what was written, as it was written."""
    monkeypatch.setattr(Wire, "write", lambda self, data: self.written.append(data))


def reads_of(raw):
    return [raw[at : at + READ_BYTES] for at in range(0, len(raw), READ_BYTES)]


@pytest.mark.parametrize("field", ["content-length", "transfer-encoding"])
@pytest.mark.parametrize(
    "text", ["a" * 8_000_000, '"wx' * 2_000_000, "h\u00e9" * 2_000_000], ids=["plain", "escapes", "utf-8"]
)
def test_eight_megabytes_take_a_few_reads_of_memory(keeping, field, text):
    said = {"messages": [{"role": "user", "content": text}], "model": "fast", "stream": False}
    body = json.dumps(said, indent=1, ensure_ascii=False).encode()
    raw = request(body=body)
    if field == "transfer-encoding":
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in reads_of(body))
        length = b"content-length: %d" % len(body)
        assert length in raw
        raw = raw.removesuffix(body).replace(length, b"transfer-encoding: chunked") + chunks + b"0\r\n\r\n"
    bench = Bench(TEXT)
    warm(bench.gate)
    *reads, last = reads_of(raw)
    tracemalloc.start()
    try:
        taken = []
        for read in reads:
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            bench.client.data_received(read)
            taken.append(tracemalloc.get_traced_memory()[1] - before)
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        bench.client.data_received(last)
        bench.dialler.succeed()
        taken.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    assert max(taken) < MOST_TAKEN_BYTES
    end, wire = bench.dialler.opened[0]
    assert max(len(data) for data in wire.written) <= PIECE_BYTES
    head, _, sent = b"".join(wire.written).partition(b"\r\n\r\n")
    assert b"content-length: %d" % len(sent) in head
    assert json.loads(sent) == said | {"model": "real-name"}
    end.data_received(whole(UNARY))
    assert bench.ends == ["answered"]
    assert bench.reserved == 0


ESCAPES = b"\\n" * 4_000_001
TOO_MUCH = {
    **{
        f"of {value[:7]}": (
            b'"input":[%b1]' % ((value + b",") * (16_000_000 // (len(value) + 1))),
            "commas and opening",
        )
        for value in (b"1", b"[]", b'{"a":1}', b"[" * 300 + b"]" * 300)
    },
    "a value of escapes": (b'"input":"%b"' % ESCAPES, "backslashes"),
    "a name of escapes": (b'"%b":1' % ESCAPES, "backslashes"),
    "a long name": (b'"%b":1' % (b"x" * 16_000_000), "longer than 256 characters"),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_hi_16_more_than_can_be_read_in_time_is_refused(name):
    member, words = TOO_MUCH[name]
    body = b'{"model":"fast",%b}' % member
    bench = Bench(TEXT)
    for read in reads_of(request(body=body)):
        if not bench.client.is_closing() and not bench.wire.written:
            bench.client.data_received(read)
    said = b"".join(bench.wire.written)
    assert said.startswith(b"HTTP/1.1 400")
    assert words.encode() in said
    assert not bench.dialler.dials


@pytest.mark.parametrize("wrong", [b"\xff\xfe", b"\xed\xa0\x80", b"h\xc3"])
@pytest.mark.parametrize("at", [0, MOST_COPIED_BYTES, READ_BYTES - 400, 3 * READ_BYTES - 400, 3 * READ_BYTES])
def test_hi_16_bytes_that_are_no_utf_8_are_named_while_they_come(at, wrong):
    text = b"x" * at + wrong + b"x" * (4 * READ_BYTES - at)
    bench = Bench(TEXT)
    for read in reads_of(request(body=b'{"model":"fast","input":["%b"]}' % text)):
        if not bench.client.is_closing() and not bench.wire.written:
            bench.client.data_received(read)
    said = b"".join(bench.wire.written)
    assert said.startswith(b"HTTP/1.1 400")
    assert b"body: is not UTF-8 at byte %d" % (len(b'{"model":"fast","input":["') + at + (wrong[:1] == b"h")) in said
    assert b"caller_bad_request" in said
    assert not bench.dialler.dials


def test_a_character_may_be_cut_by_reads():
    text = "h\u00e9\u20ac\U0001f600".encode()
    for size in range(1, len(text) + 1):
        body = LongBody(3 * MOST_COPIED_BYTES)
        for at in range(0, 40 * len(text), size):
            body.add((40 * text)[at : at + size])
        assert bytes(body.whole()) == 40 * text


def test_what_was_added_is_there():
    body = LongBody(3 * MOST_COPIED_BYTES)
    body.add(b"")
    assert bytes(body.whole()) == b""
    body.add(b"abc")
    body.add(b"d" * MOST_COPIED_BYTES)
    assert bytes(body.whole()) == b"abc" + b"d" * MOST_COPIED_BYTES


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, new_event_loop], ids=["asyncio", "chosen"])
def test_it_arrives_at_a_target_that_reads_late(make_loop):
    said = {"model": "m", "messages": [{"role": "user", "content": "wide " * 800_000}]}
    raw = request("/v1/chat/completions", json.dumps(said).encode())

    async def twice():
        async with stage(either) as on:
            reader, writer = await asyncio.open_connection("127.0.0.1", on.port)
            for _ in range(2):
                writer.write(raw)
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200")
                await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]))
            writer.close()
            assert [hit.said for hit in on.stand_in.hits] == [said, said]
            assert on.stand_in.connections == 1

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(twice())
