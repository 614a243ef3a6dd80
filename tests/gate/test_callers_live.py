"""Callers that smuggle, flood or break off, over real sockets: HI of the list of checks, before a gate and a witness."""

import asyncio
import base64
import json
import re
import socket
import struct

import h11
import pytest
from stage import DONE, FINISH, LAST, STREAM_HEAD, TARGET, UNARY, event, framed, stage, token, unary, whole
from test_front import request
from test_hostile_callers import SMUGGLED

from eventually import eventually
from swarmgate.engine.loops import new_event_loop

STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
RESET = struct.pack("ii", 1, 0)  # SO_LINGER 0: close with RST
FAST = """
[egress]
unknown = "100_000 per 1s"
ceiling = "100_000 per 1s"
"""
LOOPS = pytest.mark.parametrize("loop", [asyncio.new_event_loop, new_event_loop], ids=["asyncio", "chosen"])


def run(play, loop=new_event_loop):
    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(play())


async def said_to(port, *pieces):
    """What comes back until the gate closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0)
        return await asyncio.wait_for(reader.read(), 20)
    finally:
        writer.close()


def bytes_of(raw):
    return [raw[at : at + 1] for at in range(len(raw))]


@LOOPS
def test_hi_01_05_06_11_what_is_smuggled_is_refused_whole_and_byte_by_byte_and_the_connection_ends(loop):
    async def play():
        async with stage(unary) as on:
            for name, raw in SMUGGLED.items():
                for pieces in ([raw], bytes_of(raw)) if len(raw) < 1_000 else ([raw],):
                    said = await said_to(on.port, *pieces)
                    assert re.match(rb"HTTP/1\.1 (4\d\d|505) ", said), name
                    assert len(STATUS.findall(said)) == 1, name
            assert on.stand_in.connections == 0
            assert on.ends == []

    run(play, loop)


def test_hi_03_a_thousand_pipelined_requests_are_answered_in_order_each_out_of_its_budget():
    async def echo(_stand_in, hit, writer):
        writer.write(whole(UNARY | {"id": hit.said["user"]}))

    async def play():
        async with stage(echo, TARGET.replace("900000000 per 1s", "500 per 1h")) as on:
            bodies = [b'{"model":"m","user":"%d"}' % number for number in range(1_000)]
            raw = [request("/v1/chat/completions", body, "POST", "x-swarmgate-wait: 0s") for body in bodies]
            raw[-1] = raw[-1].replace(b"host: g", b"host: g\r\nconnection: close")
            said = await said_to(on.port, *raw)
            served = len(on.stand_in.hits)
            assert 100 < served <= 500
            assert [int(status) for status in STATUS.findall(said)] == [200] * served + [429] * (1_000 - served)
            assert [int(found) for found in re.findall(rb'"id": "(\d+)"', said)] == list(range(served))

    run(play)


async def never(stand_in, _hit, writer):
    await stand_in.closed.wait()


async def begins(stand_in, _hit, writer):
    writer.write(STREAM_HEAD + framed(token("a")))
    await stand_in.closed.wait()


LEAVES = {
    "an answer": (request(body=b'{"model":"m"}'), never),
    "a stream": (request(body=b'{"model":"m","stream":true}'), begins),
    "an upload": (request("/v1/files", b"x" * 300_000)[:-100_000], never),
}


@pytest.mark.parametrize("what", LEAVES)
@pytest.mark.parametrize("how", ["reset", "closed", "half-closed"])
def test_hi_10_who_leaves_is_cancelled_at_its_target_and_holds_nothing(what, how):
    raw, script = LEAVES[what]

    async def play():
        async with stage(script, TARGET + 'limits = ["1 concurrent"]\n') as on:
            reader, writer = await asyncio.open_connection("127.0.0.1", on.port)
            writer.write(raw)
            if what == "a stream":
                await reader.readuntil(b"a")
            await eventually(lambda: on.stand_in.connections == 1 and on.gate.pump.open)
            if how == "half-closed":
                writer.write_eof()
            else:
                if how == "reset":
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                writer.close()
            await asyncio.wait_for(on.stand_in.closed.wait(), 10)
            await eventually(lambda: on.ends == ["cancelled"] and not on.gate.pump.open)
            assert on.reserved == 0
            assert on.gate.store.book.line("up: 1 concurrent").order == []
            writer.close()

    run(play)


EVIL = "a\r\nevil: 1\r\n\r\nGET /evil HTTP/1.1\r\nhost: g\r\n\r\n"
IN_PATH = EVIL.replace("\r\n", "%0d%0a").replace(" ", "%20")
BASIC = base64.b64encode(f"agent={EVIL}:x".encode()).decode()
INJECTED = {
    "model": request(body=json.dumps({"model": EVIL}).encode()),
    "streamed model": request(body=json.dumps({"model": EVIL, "stream": True}).encode()),
    "user": request(body=json.dumps({"model": "m", "user": EVIL, "metadata": {EVIL: EVIL}}).encode()),
    "name of a member": request(body=json.dumps({"model": "m", EVIL: 1}).encode()),
    "query": request(f"/v1/chat/completions?x={IN_PATH}", b'{"model":"m"}'),
    "path": request(f"/v1/files/{IN_PATH}", b"", "GET"),
    "identity": request(f"/as/agent={IN_PATH},goal={IN_PATH}/v1/chat/completions", b'{"model":"m"}'),
    "user of a proxy": request("/v1/chat/completions", b'{"model":"m"}', "POST", f"proxy-authorization: Basic {BASIC}"),
    "bare CR": request("/v1/responses", b'{"model":"m"}', "POST", "x-request-id: a\revil: 1"),
    "bare LF": request("/v1/responses", b'{"model":"m"}', "POST", "idempotency-key: a\nevil: 1"),
    "path of a host": request(f"/to/http/a.org/{IN_PATH}", b"", "GET"),
    "name of a host": request(f"/to/http/{IN_PATH}/", b"", "GET"),
    "user of a host": request(f"/to/http/{IN_PATH}@a.org/", b"", "GET"),
    "scheme": request(f"/to/{IN_PATH}/a.org/", b"", "GET"),
    "nowhere": request(f"/{IN_PATH}", b"", "GET"),
}


@pytest.mark.parametrize("name", INJECTED)
def test_hi_13_no_value_begins_a_line(name):
    async def play():
        text = TARGET + FAST + '[resolve]\n"a.org" = "127.0.0.1:{port}"\n'
        async with stage(echoes, text) as on:
            raw = INJECTED[name].replace(b"host: g", b"host: g\r\nconnection: close", 1)
            said = await said_to(on.port, raw)
            client = h11.Connection(h11.CLIENT)
            client.send(h11.Request(method="GET", target="/", headers=[("host", "g")]))
            client.receive_data(said)
            head = client.next_event()
            assert b"evil" not in dict(head.headers)
            assert len(STATUS.findall(said)) == 1
            assert len(on.stand_in.hits) <= 1
            for hit in on.stand_in.hits:
                assert "evil" not in hit.headers
                assert "/evil" not in hit.path.split("%")[0]
            return head.status_code, len(on.stand_in.hits)

    status, hits = run(play)
    assert (status == 200) == bool(hits)
    assert status == 200 or status in range(400, 500)


async def echoes(_stand_in, hit, writer):
    """What came back of the request stands in its answer wherever a target can put it."""
    said = json.loads(hit.body) if hit.body else {}
    if said.get("stream"):
        events = event({"id": "c", "model": EVIL, "choices": [{"index": 0, "delta": {"content": EVIL}}]})
        writer.write(STREAM_HEAD + framed(events + FINISH + DONE) + LAST)
    else:
        writer.write(whole(UNARY | {"model": EVIL, "id": EVIL}, extra="x-echo: a\r\n"))
