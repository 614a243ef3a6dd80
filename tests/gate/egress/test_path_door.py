"""`/to/...`: what the host sees, what the caller gets, and that nothing else is dialled."""

import asyncio
import gzip

import pytest
from outside import FAST, Caller, stage, to, whole

from eventually import eventually


def run(act, *arguments, **settings):
    async def whole_run():
        async with stage(*arguments, **settings) as on:
            return await act(on)

    return asyncio.run(whole_run())


def test_a_request_reaches_its_host_as_it_came():
    async def act(on):
        answer = await on.get(
            "http://a.org/x/y?q=1&r=%20",
            accept="text/html",
            x_mine="1",
            user_agent="mine/1",
            authorization="Bearer k",
            traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            x_swarmgate_agent="a17",
        )
        return answer, on.world.hits, on.ends

    answer, (hit,), ends = run(act, lambda _hit: whole(body=b"hello", x_theirs="2", ratelimit_limit=9))
    assert (answer.status, answer.body, answer.headers["x-theirs"]) == (200, b"hello", "2")
    assert answer.headers["ratelimit-limit"] == "9"
    assert (hit.method, hit.host, hit.path) == ("GET", "a.org", "/x/y?q=1&r=%20")
    kept = {"accept": "text/html", "x-mine": "1", "user-agent": "mine/1", "authorization": "Bearer k"}
    assert hit.headers | kept == hit.headers
    assert "traceparent" not in hit.headers
    assert not [name for name in hit.headers if name.startswith("x-swarmgate-") and name != "x-swarmgate-hop"]
    assert ends == ["answered"]


def test_who_asked_stands_in_the_evidence():
    async def act(on):
        await on.caller.ask("GET", "/as/agent=a1,goal=g2/to/http/a.org/", {"x-swarmgate-step": "s3"})
        ((call, *_),) = on.gate.callers.ended
        return call

    call = run(act)
    assert (call.step.agent, call.step.goal, call.step.step) == ("a1", "g2", "s3")
    assert call.rungs[0].target == "http://a.org"


@pytest.mark.parametrize("size", [1, 64 * 1024, 64 * 1024 + 1, 3_000_000])
@pytest.mark.parametrize("chunked", [False, True])
def test_bodies_of_any_size_arrive_whole(size, chunked):
    body = bytes(range(256)) * (size // 256 + 1)
    body = body[:size]

    async def act(on):
        if not chunked:
            return await on.caller.ask("PUT", "/to/http/a.org/f", {}, body), on.world.hits
        head = b"PUT /to/http/a.org/f HTTP/1.1\r\nhost: g\r\ntransfer-encoding: chunked\r\n\r\n"
        pieces = [body[at : at + 50_000] for at in range(0, size, 50_000)]
        await on.caller.send(head + b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in pieces) + b"0\r\n\r\n")
        return await on.caller.answer(), on.world.hits

    answer, (hit,) = run(act)
    assert answer.status == 200
    assert hit.body == body


def test_a_long_answer_is_the_same_bytes():
    page = bytes(1_000_000) + b"end"

    async def act(on):
        return await on.get("http://a.org/big")

    assert run(act, lambda _hit: whole(body=page)).body == page


@pytest.mark.parametrize(
    ("method", "said", "expected"),
    [
        ("GET", whole(404, b"not here", x_a="b"), (404, b"not here")),
        ("GET", whole(401, b"who?", www_authenticate="Basic"), (401, b"who?")),
        ("GET", whole(204, b""), (204, b"")),
        ("GET", b"HTTP/1.1 304 X\r\netag: 1\r\n\r\n", (304, b"")),
        ("HEAD", b"HTTP/1.1 200 X\r\ncontent-length: 99\r\n\r\n", (200, b"")),
        ("HEAD", b"HTTP/1.1 404 X\r\ncontent-length: 99\r\n\r\n", (404, b"")),
        ("POST", whole(500, b"broken"), (500, b"broken")),
        (
            "DELETE",
            whole(200, gzip.compress(b"x", mtime=0), content_encoding="gzip"),
            (200, gzip.compress(b"x", mtime=0)),
        ),
    ],
)
def test_the_host_s_own_word_is_passed_on(method, said, expected):
    async def act(on):
        answers = [await on.caller.ask(method, "/to/http/a.org/") for _ in range(2)]  # the connection stays in order
        return answers, on.world.hits

    answers, hits = run(act, lambda _hit: said)
    assert [(one.status, one.body) for one in answers] == [expected] * 2
    assert len(hits) == 2
    if expected[0] >= 400:
        assert answers[0].headers["proxy-status"] == f"swarmgate; received-status={expected[0]}"
    if method == "HEAD":
        assert answers[0].headers["content-length"] == "99"


def test_an_error_page_of_any_length_is_passed_on_whole():
    page = b"e" * 300_000

    async def act(on):
        return await on.get("http://a.org/")

    answer = run(act, lambda _hit: whole(403, page))
    assert (answer.status, answer.body) == (403, page)


def test_a_read_that_fails_is_repeated_and_a_write_is_not():
    async def act(on):
        return await on.get("http://a.org/"), await on.caller.ask("POST", "/to/http/a.org/"), on.world.hits

    said = iter([whole(503), whole(200, b"better"), whole(503, b"no")])
    read, write, hits = run(act, lambda _hit: next(said))
    assert (read.status, read.body, read.headers["x-swarmgate-attempts"]) == (200, b"better", "2")
    assert (write.status, write.body) == (503, b"no")
    assert [hit.method for hit in hits] == ["GET", "GET", "POST"]


def test_a_write_whose_answer_is_lost_says_so_and_is_not_repeated():
    async def act(on):
        return await on.caller.ask("POST", "/to/http/a.org/", {}, b"pay"), on.world.hits, on.ends

    answer, hits, ends = run(act, lambda _hit: b"")
    assert (answer.status, answer.said["code"], ends) == (502, "target_unknown_effect", ["unknown_effect"])
    assert len(hits) == 1


HOSTILE = [
    ("/to/ftp/a.org/", 400, "caller_scheme"),
    ("/to/file/a.org/etc/passwd", 400, "caller_scheme"),
    ("/to/https", 400, "caller_scheme"),
    ("/to/http//x", 400, "caller_host_empty"),
    ("/to/http/a..org/", 400, "caller_host_name"),
    ("/to/http/a.org:0/", 400, "caller_port"),
    ("/to/http/a.org:65536/", 400, "caller_port"),
    ("/to/http/[::1/", 400, "caller_host_ipv6"),
    ("/to/http/1.2.3.256/", 400, "caller_host_ipv4"),
    ("/to/http/a.org/x%2f..%2fy", 400, "caller_path_ambiguous"),
    ("/to/http/a.org%00.evil.org/", 400, "caller_url_character"),
    ("/to/http/u@v@a.org/", 400, "caller_userinfo"),
    ("/to/http/a.org:22/", 403, "policy_port"),
    ("/to/http/a.org:6379/", 403, "policy_port"),
    ("/to/http/127.0.0.1/", 403, "policy_address"),
    ("/to/http/127.1/", 403, "policy_address"),
    ("/to/http/0x7f000001/", 403, "policy_address"),
    ("/to/http/2130706433/", 403, "policy_address"),
    ("/to/http/[::ffff:a9fe:a9fe]/", 403, "policy_address"),
    ("/to/http/169.254.169.254/latest/meta-data/", 403, "policy_address"),
    ("/to/http/localhost:8788/", 403, "policy_address"),
    ("/to/http/metadata.google.internal/", 403, "policy_address"),
    ("/to/http/%6c%6f%63%61%6c%68%6f%73%74/", 403, "policy_address"),
    ("/to/http/denied.org/", 403, "policy_host"),
    ("/to/http/x.denied.org/", 403, "policy_host"),
    ("/to/+6x/http/a.org/", 508, "policy_redirects"),
    ("/to/+1xd/http/a.org/", 403, "policy_downgrade"),
]
# The rest of the list of spellings that parsers read differently, or that hide this machine (all of them typed, none dialled).
REJECTED = [
    "http/127.0.0.1:6666\\@1.1.1.1/",
    "http/[v1.example].postfix/",
    "http/prefix.[::1]/",
    "http/[127.0.0.1]/",
    "http/[[::1]]/",
    "http/a..b/",
    "http/0o177.0.0.1/",
    "http/08.1.1.1/",
    "jar/http/a.org/",
    "gopher/a.org/",
    "unix/a.org/",
]
INSIDE = [
    "127.1",
    "127.0.1",
    "0",
    "0.0.0.0",
    "0177.0.0.1",
    "0177.0.0.01",
    "0x7f.0.0.1",
    "0x7f000001",
    "2130706433",
    "017700000001",
    "127.127.127.127",
    "%E2%91%A0%E2%91%A1%E2%91%A6.%E2%93%AA.%E2%93%AA.%E2%91%A0",
    "%31%32%37.0.0.1",
    "localhost",
    "localhost.",
    "LOCALHOST",
    "ip6-localhost",
    "[::]",
    "[::1]",
    "[0000::1]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:7f00:1::]",
    "[::1%25lo]",
    "[fe80::1%25eth0]",
    "2852039166",
    "0xa9fea9fe",
    "169.254.169.254.",
    "[::ffff:a9fe:a9fe]",
    "[fd00:ec2::254]",
    "100.100.100.200",
    "100.64.0.1",
    "10.0.0.1",
    "192.168.1.1",
    "224.0.0.1",
    "255.255.255.255",
    "db.cluster.local",
    "x.internal",
    "metadata.google.internal",
]


def test_every_spelling_of_the_inside_is_refused_at_every_door():
    async def act(on):
        answers = {}
        for host in INSIDE:
            answers[host] = await on.caller.ask("GET", f"/to/http/{host}/")
            if host.isascii() and "%" not in host:
                answers["proxy " + host] = await on.caller.ask("GET", f"http://{host}/", {"host": host})
        for path in REJECTED:
            answers[path] = await on.caller.ask("GET", f"/to/{path}")
        return answers, on.world.connections, on.gate.egress.resolver.lookups, len(on.gate.egress.hosts.hosts)

    answers, connections, lookups, known = run(act)
    wrong = {said: one for said, one in answers.items() if one.status not in {400, 403}}
    assert wrong == {}
    assert {one.said["code"] for said, one in answers.items() if said in INSIDE} == {"policy_address"}
    assert all(one.said["code"].startswith("caller_") for said, one in answers.items() if said in REJECTED)
    assert (connections, lookups, known) == (0, 0, 0)


DENY = FAST.replace("[egress]", '[egress]\ndeny = ["denied.org", "*.denied.org"]')


@pytest.mark.parametrize(("path", "status", "code"), HOSTILE)
def test_hostile_targets_get_a_typed_answer_and_nothing_is_dialled(path, status, code):
    async def act(on):
        answer = await on.caller.ask("GET", path)
        return answer, on.world.connections, on.gate.egress.resolver.lookups

    answer, connections, lookups = run(act, text=DENY)
    assert (answer.status, answer.said["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["proxy-status"].startswith("swarmgate; error=")
    assert (connections, lookups) == (0, 0)


def test_only_what_is_allowed_may_be_called_and_deny_wins():
    text = FAST.replace("[egress]", '[egress]\nallow = ["*.a.org", "b.org"]\ndeny = ["b.org"]')

    async def act(on):
        return [(await on.get(f"http://{host}/")).status for host in ("www.a.org", "a.org", "b.org", "d.io")]

    assert run(act, text=text) == [200, 403, 403, 403]


@pytest.mark.parametrize(
    ("headers", "field"),
    [
        ({"x-swarmgate-priority": "P9"}, "x-swarmgate-priority"),
        ({"x-swarmgate-wait": "20"}, "x-swarmgate-wait"),
        ({"x-swarmgate-effect": "maybe"}, "x-swarmgate-effect"),
        ({"x-swarmgate-agnet": "a"}, "x-swarmgate-agnet"),
    ],
)
def test_a_word_that_cannot_be_read_is_the_caller_s_error(headers, field):
    async def act(on):
        return await on.caller.ask("POST", "/to/http/a.org/", headers), on.world.connections

    answer, connections = run(act)
    assert (answer.status, answer.said["code"], answer.said["param"]) == (400, "caller_bad_request", field)
    assert connections == 0


def test_a_request_of_ours_that_comes_back_is_a_loop():
    async def act(on):
        hop = (await on.get("http://a.org/")).status, on.world.hits[0].headers["x-swarmgate-hop"]
        return await on.caller.ask("GET", "/to/http/a.org/", {"x-swarmgate-hop": f"other, {hop[1]}"}), on.world.hits

    answer, hits = run(act)
    assert answer.status == 508
    assert len(hits) == 1


def test_userinfo_becomes_a_credential_and_is_never_shown():
    async def act(on):
        answer = await on.caller.ask("GET", "/to/http/me:s3cret@a.org/")
        return answer, on.world.hits[0], repr(on.gate.journal.entries)

    answer, hit, evidence = run(act)
    assert hit.headers["authorization"] == "Basic bWU6czNjcmV0"
    assert hit.host == "a.org"
    assert "s3cret" not in evidence + str(answer)


def test_a_caller_who_reads_slowly_slows_the_host_down():
    sent = []

    async def act(on):
        on.world.reply = lambda _hit: whole(body=bytes(40_000_000))
        await on.caller.send(b"GET /to/http/a.org/ HTTP/1.1\r\nhost: g\r\n\r\n")
        await on.caller.streams[0].readuntil(b"\r\n\r\n")
        fetch = next(iter(on.gate.pump.open)).wire
        await eventually(lambda: fetch.paused)
        sent.append(fetch.got_bytes)
        await on.caller.streams[0].readexactly(40_000_000)

    run(act)
    assert sent[0] < 20_000_000


def test_a_caller_who_leaves_is_cancelled():
    async def act(on):
        on.world.reply = lambda _hit: b"HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\nabc"
        await on.caller.send(b"GET /to/http/a.org/ HTTP/1.1\r\nhost: g\r\n\r\n")
        await eventually(lambda: on.world.hits)
        on.caller.close()
        await eventually(lambda: on.ends)
        return on.ends

    assert run(act) == ["cancelled"]


def test_an_answer_that_breaks_off_is_not_taken_for_whole():
    async def act(on):
        asked = asyncio.ensure_future(on.get("http://a.org/"))
        await eventually(lambda: on.world.hits)
        for writer in on.world.writers:
            writer.close()
        with pytest.raises(asyncio.IncompleteReadError):
            await asked
        return on.ends

    assert run(act, lambda _hit: b"HTTP/1.1 200 X\r\ncontent-length: 99\r\n\r\nabc") == ["failed"]


def test_callers_side_by_side_get_their_own_answers():
    async def act(on):
        callers = [Caller(on.caller.port) for _ in range(20)]
        said = await asyncio.gather(
            *[one.ask("GET", to(f"http://{'ab'[n % 2]}.org/{n}")) for n, one in enumerate(callers)]
        )
        for one in callers:
            one.close()
        return [one.body for one in said]

    assert run(act, lambda hit: whole(body=f"{hit.host}{hit.path}".encode())) == [
        f"{'ab'[n % 2]}.org/{n}".encode() for n in range(20)
    ]
