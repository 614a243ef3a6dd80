"""Callers and hosts that lie, break off or poison, over real sockets: HI, UP and SE of the list of checks, at the doors to hosts."""

import asyncio
import gzip

import pytest
from outside import FAST, Caller, Cut, Reset, stage, whole

from eventually import eventually


def run(act, *arguments, **settings):
    async def whole_run():
        async with stage(*arguments, **settings) as on:
            return await act(on)

    return asyncio.run(whole_run())


async def first_line(reader):
    return (await asyncio.wait_for(reader.readline(), 10)).decode().strip()


ASKS = b"POST %b HTTP/1.1\r\nhost: %b\r\nexpect: 100-continue\r\ncontent-length: 5\r\n%b\r\n"
POLICY = FAST + '[policies.a]\nhosts = ["a.org"]\nlimits = ["1 per 1h"]\nheadroom = 100\nwait = "0s"\n'
DENY = FAST.replace("[egress]", '[egress]\ndeny = ["b.org"]')


@pytest.mark.parametrize("door", ["path", "proxy"])
@pytest.mark.parametrize(("text", "status"), [(FAST, "200"), (POLICY, "429"), (DENY, "403")])
def test_hi_08_who_asks_first_hears_100_or_why_not_and_never_both(door, text, status):
    host = b"b.org" if status == "403" else b"a.org"
    target = b"/to/http/%b/x" % host if door == "path" else b"http://%b/x" % host
    raw = ASKS % (target, b"gate" if door == "path" else host, b"")

    async def act(on):
        if status == "429":
            await on.get("http://a.org/")
        hits = len(on.world.hits)
        await on.caller.send(raw)
        reader = on.caller.streams[0]
        line = await first_line(reader)
        if status == "200":
            assert line == "HTTP/1.1 100 Continue"
            await first_line(reader)
            await on.caller.send(b"hello")
            line = await first_line(reader)
            assert on.world.hits[-1].body == b"hello"
        else:
            assert len(on.world.hits) == hits
        return line

    assert run(act, text=text).startswith(f"HTTP/1.1 {status} ")


def test_hi_08_a_keyed_write_shows_its_body_first():
    """Its content decides whether it is the same write again."""

    async def act(on):
        await on.caller.send(ASKS % (b"/to/http/a.org/x", b"gate", b"idempotency-key: k1\r\n"))
        return await first_line(on.caller.streams[0])

    assert run(act) == "HTTP/1.1 100 Continue"


SIZED = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"


@pytest.mark.parametrize("how", [Cut, Reset])
@pytest.mark.parametrize("raw", [SIZED, CHUNKED], ids=["sized", "chunked"])
def test_up_01_an_answer_cut_at_any_byte_is_never_taken_for_whole(raw, how):
    hosts = [f"h{at}.org" for at in range(len(raw))]  # each is called once: none is ever down

    async def act(on):
        on.world.reply = lambda hit: how(raw[: int(hit.host[1:-4])])
        said = []
        for at, host in enumerate(hosts):
            caller = Caller(on.caller.port)
            try:
                said.append((await caller.ask("POST", f"/to/http/{host}/")).status)
            except asyncio.IncompleteReadError:
                said.append(None)  # the head was shown, and the connection broke before the answer's end
            caller.close()
            await eventually(lambda at=at: len(on.ends) == at + 1)
        return said, on.ends

    said, ends = run(act, hosts=hosts)
    head = raw.index(b"\r\n\r\n") + 4
    assert said == [502] * head + [None] * (len(raw) - head)
    assert set(ends) <= {"unknown_effect", "failed"}


EXTRA = [whole(body=b"OTHER"), b"x", b"\r\n"]


@pytest.mark.parametrize("extra", EXTRA)
@pytest.mark.parametrize("raw", [SIZED, CHUNKED], ids=["sized", "chunked"])
def test_up_02_what_follows_an_answer_reaches_nobody_and_ends_the_connection(raw, extra):
    async def act(on):
        return [(await on.get("http://a.org/")).body for _ in range(3)], on.world.connections

    assert run(act, lambda _hit: raw + extra) == ([b"hello"] * 3, 3)


WITH_BODY = {
    "HEAD": b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
    "GET 204": b"HTTP/1.1 204 No Content\r\n\r\nhello",
    "GET 304": b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\nhello",
    "GET 103": b"HTTP/1.1 103 Early Hints\r\ncontent-length: 5\r\n\r\nhello",
}


@pytest.mark.parametrize("name", WITH_BODY)
def test_hi_09_the_body_of_what_has_none_is_relayed_to_nobody(name):
    method, _, status = name.partition(" ")

    async def act(on):
        first = await on.caller.ask(method, "/to/http/a.org/odd", {"x-swarmgate-timeout": "1s"})
        on.caller.close()
        other = Caller(on.caller.port)
        try:
            return first, await other.ask("GET", "/to/http/b.org/")
        finally:
            other.close()

    odd = WITH_BODY[name]
    first, second = run(act, lambda hit: odd if hit.path == "/odd" else whole(body=b"next"))
    assert b"hello" not in first.body
    assert first.status in ({502, 504} if status == "103" else {int(status or 200)})
    assert (second.status, second.body) == (200, b"next")


SPELLED = [
    ("/to/http/a.org//x", "//x"),
    ("/to/http/a.org/x;y=1/z", "/x;y=1/z"),
    ("/to/http/A.org./x", "/x"),
    ("/to/http/a.org:80/x?y=http://b.org/", "/x?y=http://b.org/"),
    ("/to/http/a.org/@b.org/", "/@b.org/"),
    ("http://a.org/x", "/x"),
    ("http://A.ORG:80//x", "//x"),
]


@pytest.mark.parametrize(("target", "path"), SPELLED)
def test_hi_11_what_was_judged_is_what_is_called_and_what_is_on_record(target, path):
    async def act(on):
        host = "a.org" if target.startswith("http") else "gate"
        answer = await on.caller.ask("GET", target, {"host": host})
        ((call, *_),) = on.gate.callers.ended
        return answer.status, call.rungs[0].target, on.world.hits

    status, judged, (hit,) = run(act)
    assert (status, judged, hit.host, hit.path) == (200, "http://a.org", "a.org", path)


@pytest.mark.parametrize(
    ("target", "lines"),
    [
        ("http://a.org/", ["host: b.org"]),
        ("http://a.org/", ["host: a.org", "host: b.org"]),
        ("http://a.org/", []),
        ("http://a.org/", ["host: a.org/#@b.org"]),
        ("http://b.org@a.org:80:80/", ["host: a.org"]),
        ("/to/http/a.org/..%2fx", ["host: g"]),
        ("/to/http/a.org/x/..%5cy", ["host: g"]),
        ("/to/http/a.org#@b.org/", ["host: g"]),
        ("@b.org/to/http/a.org/", ["host: g"]),
        ("//b.org/to/http/a.org/", ["host: g"]),
    ],
)
def test_hi_11_what_can_be_read_in_two_ways_is_refused(target, lines):
    async def act(on):
        head = [f"GET {target} HTTP/1.1", *lines, "connection: close", "", ""]
        await on.caller.send("\r\n".join(head).encode())
        answer = await on.caller.answer()
        return answer.status, on.world.connections

    status, connections = run(act)
    assert status in {400, 404}
    assert connections == 0


@pytest.mark.parametrize("door", ["path", "proxy"])
def test_hi_12_what_is_ours_is_neither_stripped_nor_forged_nor_passed_on(door):
    target, host = ("/to/http/a.org/", "gate") if door == "path" else ("http://a.org/", "a.org")
    said = {
        "host": host,
        "connection": "x-swarmgate-hop, x-mine, x-swarmgate-agent",
        "x-mine": "1",
        "x-swarmgate-agent": "a1",
        "proxy-authorization": "Basic c2dr",
        "proxy-connection": "keep-alive",
        "te": "trailers",
    }

    async def act(on):
        answer = await on.caller.ask("GET", target, said)
        ((call, *_),) = on.gate.callers.ended
        other = await on.caller.ask("GET", target, {"host": host, "x-swarmgate-team": "theirs"})
        return answer.status, call.step.agent, other.status, on.world.hits

    status, agent, other, (hit,) = run(act)
    assert (status, agent, other) == (200, "a1", 400)
    assert "x-swarmgate-hop" in hit.headers
    assert not {"x-mine", "x-swarmgate-agent", "proxy-authorization", "proxy-connection", "te"} & hit.headers.keys()


@pytest.mark.parametrize("upgrade", ["websocket", "h2c"])
def test_hi_14_no_host_is_asked_to_switch_and_none_may(upgrade):
    async def act(on):
        words = {"connection": "upgrade, http2-settings", "upgrade": upgrade, "http2-settings": "AAMAAABk"}
        served = await on.caller.ask("GET", "/to/http/a.org/", words)
        on.world.reply = lambda _hit: b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n"
        return served.status, await on.caller.ask("POST", "/to/http/b.org/", words), on.world.hits

    served, switched, hits = run(act)
    assert (served, switched.status) == (200, 502)
    assert not {"upgrade", "http2-settings", "connection"} & {name for hit in hits for name in hit.headers}


def test_hi_17_a_compressed_body_goes_to_its_host_as_it_came():
    bomb = gzip.compress(bytes(10_000_000), mtime=0)

    async def act(on):
        answer = await on.caller.ask("POST", "/to/http/a.org/", {"content-encoding": "gzip"}, bomb)
        return answer, on.world.hits

    answer, (hit,) = run(act)
    assert (answer.status, hit.body) == (200, bomb)


def test_up_11_a_cookie_is_its_own_callers_and_kept_by_nobody():
    async def act(on):
        mine, other = await on.get("http://a.org/"), Caller(on.caller.port)
        await other.ask("GET", "/to/http/a.org/")
        await on.get("http://a.org/")
        other.close()
        return mine, on.world.hits

    mine, hits = run(act, lambda _hit: whole(set_cookie="session=1"))
    assert mine.headers["set-cookie"] == "session=1; Path=/to/http/a.org"
    assert len(hits) == 3
    assert not any("cookie" in hit.headers for hit in hits)


@pytest.mark.parametrize(
    ("early", "expected"),
    [
        (whole(413, b"too large"), (413, b"too large")),
        (whole(401, b"who?"), (401, b"who?")),
        (Reset(SIZED), (200, b"hello")),
    ],
    ids=["413", "401", "200 and reset"],
)
def test_up_15_an_early_answer_is_relayed_the_upload_stops_and_the_connection_is_not_used_again(early, expected):
    async def act(on):
        async def answers_at_the_head(reader, writer):
            on.world.connections += 1
            on.world.writers.append(writer)
            await reader.readuntil(b"\r\n\r\n")
            writer.write(early)
            await writer.drain()
            if isinstance(early, Reset):
                writer.transport.abort()

        server = await asyncio.start_server(answers_at_the_head, "127.0.0.1", 0)
        on.gate.egress.resolver._pins = {"a.org": ("127.0.0.1", server.sockets[0].getsockname()[1])}
        said = []
        for _ in range(2):
            caller = Caller(on.caller.port)
            await caller.send(
                b"PUT /to/http/a.org/ HTTP/1.1\r\nhost: g\r\ncontent-length: 3000000\r\n\r\n" + bytes(100_000)
            )
            said.append((await caller.answer())[::2])
            caller.close()
        server.close()
        return said, on.world.connections

    assert run(act) == ([expected] * 2, 2)


def test_up_16_trailers_stay_here():
    trailers = b"set-cookie: a=1\r\ncontent-length: 3\r\ntransfer-encoding: x\r\nx-any: 1\r\n"
    raw = CHUNKED.removesuffix(b"\r\n") + trailers + b"\r\n"

    async def act(on):
        await on.caller.send(b"GET /to/http/a.org/ HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n")
        return await on.caller.streams[0].read()

    said = run(act, lambda _hit: raw)
    assert said.endswith(b"llo\r\n0\r\n\r\n")
    assert not any(name in said for name in (b"cookie", b"x-any", b"content-length"))


def test_se_05_what_waits_for_a_slow_reader_is_bounded():
    size = 30_000_000

    async def act(on):
        on.world.reply = lambda _hit: whole(body=bytes(size))
        await on.caller.send(b"GET /to/http/a.org/ HTTP/1.1\r\nhost: g\r\n\r\n")
        reader, most = on.caller.streams[0], 0
        await reader.readuntil(b"\r\n\r\n")
        fetch = next(iter(on.gate.pump.open)).wire
        await eventually(lambda: fetch.paused)
        (door,) = on.gate.doors
        left = size
        while left:
            most = max(most, door._transport.get_write_buffer_size())
            left -= len(await reader.read(min(left, 4_096 * 16)))
        return most

    assert 0 < run(act) <= 256 * 1024  # one read; tests/http1/test_slow_reader.py counts what is held for it


BYTES = FAST + '[policies.a]\nhosts = ["a.org"]\nlimits = ["90_000_000 bytes per 1h"]\nheadroom = 100\n'


@pytest.mark.parametrize("how", ["the host breaks off", "the caller leaves"])
def test_se_03_04_the_bytes_of_an_answer_that_ends_early_are_charged(how):
    part = b"HTTP/1.1 200 OK\r\ncontent-length: 300000\r\n\r\n" + bytes(200_000)

    async def act(on):
        on.world.reply = lambda _hit: Cut(part) if how == "the host breaks off" else part
        await on.caller.send(b"GET /to/http/a.org/ HTTP/1.1\r\nhost: g\r\n\r\n")
        reader = on.caller.streams[0]
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(200_000)
        if how == "the caller leaves":
            on.caller.close()
        await eventually(lambda: on.ends)
        return on.gate.store.book.cells["a: bytes per 3600s"].level

    assert run(act, text=BYTES) >= 200_000


@pytest.mark.parametrize("first", ["expect: 100-continue", "x-mine: 1"])
def test_a_long_upload_is_charged_whole(first):
    async def act(on):
        head = f"POST /to/http/a.org/ HTTP/1.1\r\nhost: g\r\ncontent-length: 200000\r\n{first}\r\n\r\n"
        await on.caller.send(head.encode())
        if "expect" in first:
            assert await first_line(on.caller.streams[0]) == "HTTP/1.1 100 Continue"
            await first_line(on.caller.streams[0])
        await on.caller.send(bytes(200_000))
        answer = await on.caller.answer()
        return answer.status, on.gate.store.book.cells["a: bytes per 3600s"].level

    status, level = run(act, text=BYTES)
    assert status == 200
    assert 200_000 <= level < 201_000
