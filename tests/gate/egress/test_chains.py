"""Redirects without end: a typed answer at every door, after a few hops, and nobody else is held up by it."""

import asyncio

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outside import Caller, stage, whole
from test_proxy_doors import over_tls

from swarmgate.core.target import parse_target
from swarmgate.gate.egress import chains
from swarmgate.gate.egress.chains import FOLLOWED_MS, MOST_HOPS, MOST_IN_A_LOOP, MOST_KEPT, WAITED_MS, Chains
from swarmgate.http1.head import RequestHead, ResponseHead


def run(act, *arguments, **said):
    async def whole_run():
        async with stage(*arguments, **said) as on:
            return await act(on)

    return asyncio.run(whole_run())


def goes_round(hit):
    """Two pages of one host that lead to each other, one of them by an absolute URL; a cookie on the way that never changes."""
    if hit.path == "/b":
        return whole(302, b"", location="a", set_cookie="seen=1; Path=/")
    return whole(302, b"", location=f"//{hit.host}/b")


def goes_on(hit):
    return whole(302, b"", location=f"/{int(hit.path[1:] or 0) + 1}")


DOORS = {
    "path": lambda port: ({}, f"http://127.0.0.1:{port}/to/http/a.org"),
    "words in the path": lambda port: ({}, f"http://127.0.0.1:{port}/as/agent=a17/to/http/a.org"),
    "proxy": lambda port: ({"proxy": f"http://127.0.0.1:{port}"}, "http://a.org"),
}


@pytest.mark.parametrize(("reply", "begins", "most"), [(goes_round, "/a", MOST_IN_A_LOOP), (goes_on, "/0", MOST_HOPS)])
@pytest.mark.parametrize("door", DOORS)
def test_redirects_without_end_have_a_typed_one(door, reply, begins, most):
    async def act(on):
        setting, base = DOORS[door](on.caller.port)
        async with httpx.AsyncClient(follow_redirects=True, timeout=30, **setting) as client:
            return await client.get(base + begins), [hit.path for hit in on.world.hits], on.ends

    answer, paths, ends = run(act, reply)
    assert (answer.status_code, answer.json()["code"]) == (508, "policy_redirects")
    assert f"Hops: {most + 1}." in answer.json()["detail"]
    assert len(paths) == most + 1  # the one that was asked for, and each hop
    assert ends == ["answered"] * len(paths) + ["refused"]


def test_a_loop_over_tls_that_the_gate_speaks_ends_too():
    async def act(on):
        on.world.reply = goes_round

        async def ask():
            proxy = f"http://127.0.0.1:{on.caller.port}"
            upgrade = {"x-swarmgate-upgrade": "https"}
            async with httpx.AsyncClient(proxy=proxy, headers=upgrade, follow_redirects=True) as client:
                return await client.get("http://a.org/a")

        return await over_tls(on, ask), len(on.world.hits)

    answer, hits = run(act)
    assert answer.json()["code"] == "policy_redirects"
    assert hits == MOST_IN_A_LOOP + 1


def test_a_named_agent_is_known_again_on_every_connection():
    async def act(on):
        answer, path = None, "/to/http/a.org/a"
        while answer is None or (answer.status == 302 and len(on.world.hits) < 30):
            caller = Caller(on.caller.port)
            answer = await caller.ask("GET", path, {"x-swarmgate-agent": "a17", "connection": "close"})
            path = answer.headers.get("location")
            caller.close()
        return answer, len(on.world.hits)

    answer, hits = run(act, goes_round)
    assert (answer.said["code"], hits) == ("policy_redirects", MOST_IN_A_LOOP + 1)


def test_who_is_sent_to_log_in_comes_back_as_often_as_it_likes():
    """Each time: the page leads to the login, that sets a cookie and leads back to the same URL."""

    def reply(hit):
        if hit.path.startswith("/login"):
            return whole(302, b"", location="/page", set_cookie=f"sid={hit.headers['x-round']}; Path=/")
        if f"sid={hit.headers['x-round']}" in hit.headers.get("cookie", ""):
            return whole()
        return whole(302, b"", location="/login")

    async def act(on):
        base = f"http://127.0.0.1:{on.caller.port}/to/http/a.org"
        async with httpx.AsyncClient(follow_redirects=True, headers={"x-swarmgate-agent": "a"}) as client:
            return [await client.get(base + "/page", headers={"x-round": str(number)}) for number in range(25)]

    answers = run(act, reply)
    assert [(answer.status_code, len(answer.history)) for answer in answers] == [(200, 2)] * 25


def test_who_reads_where_a_redirect_leads_and_asks_for_something_else_begins_anew():
    def reply(hit):
        return whole(302, b"", location="/v5") if hit.path == "/latest" else whole()

    async def act(on):
        paths = ["/latest", "/other"] * 25
        return [(await on.get(f"http://a.org{path}")).status for path in paths]

    assert run(act, reply) == [302, 200] * 25


def test_a_downgrade_is_refused_at_a_proxy_that_is_named_in_clear_text_too():
    async def act(on):
        on.world.reply = lambda _hit: whole(302, b"", location="http://b.org/x")

        async def ask():
            first = await on.caller.ask("GET", "https://a.org/", {"host": "a.org"})
            before = on.world.connections
            second = await on.caller.ask("GET", first.headers["location"], {"host": "b.org"})
            again = on.gate.egress.resolver.lookups, on.world.connections - before
            return first.status, second, again

        return await over_tls(on, ask)

    first, second, dialled = run(act)
    assert first == 302
    assert (second.status, second.said["code"]) == (403, "policy_downgrade")
    assert dialled == (0, 0)


A = parse_target("http://a.org/a")
B = parse_target("http://a.org/b")


def request(lines=""):
    return RequestHead(f"GET / HTTP/1.1\r\nhost: g\r\n{lines}\r\n".encode())


def moved(url):
    return ResponseHead(f"HTTP/1.1 302 X\r\nlocation: {url}\r\n\r\n".encode())


OK = ResponseHead(b"HTTP/1.1 200 X\r\n\r\n")


class Walk:
    """Callers who follow redirects, on a clock of their own."""

    def __init__(self):
        self.now_ms = 1_000
        self.chains = Chains(lambda: self.now_ms)

    def hops(self, asker, urls, heads=()):
        """After how many hops a caller is refused that is led round `urls`; None = it is not, after many."""
        heads = heads or [request()]
        for number in range(100):
            url, head = urls[number % len(urls)], heads[number % len(heads)]
            if self.chains.forbids(asker, url, head) is not None:
                return number
            self.chains.answered(asker, url, head, moved(urls[(number + 1) % len(urls)].url))
        return None


def test_a_loop_is_the_same_request_at_the_same_place():
    fresh = [request(f"cookie: n={number}\r\n") for number in range(100)]
    assert Walk().hops("x", [A, B]) == MOST_IN_A_LOOP + 1
    assert Walk().hops("x", [A]) == MOST_IN_A_LOOP + 1
    assert Walk().hops("x", [A, B], fresh) == MOST_HOPS + 1


def test_callers_have_chains_of_their_own():
    walk = Walk()
    for _ in range(50):
        for asker in ("x", "y"):
            assert walk.chains.forbids(asker, B, request()) is None
            walk.chains.answered("z", A, request(), moved(B.url))
    assert not walk.chains.led.keys() - {next(iter(walk.chains.led))}


def test_a_chain_outlives_a_deferral_and_ends_with_an_answer_or_in_time():
    walk = Walk()
    walk.chains.answered("x", A, request(), moved(B.url))
    walk.now_ms += FOLLOWED_MS - 1
    assert walk.chains.forbids("x", B, request()) is None  # it is deferred, and comes again
    walk.now_ms += WAITED_MS - 1
    walk.chains.answered("x", B, request(), moved(A.url))
    (chain,) = walk.chains.led.values()
    assert len(chain.asked) == 2
    walk.now_ms += FOLLOWED_MS
    walk.chains.answered("x", A, request(), moved(B.url))
    (chain,) = walk.chains.led.values()
    assert len(chain.asked) == 1
    walk.chains.answered("x", B, request(), OK)
    assert not walk.chains.led


@pytest.mark.interpreted  # replaces a constant
@given(st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 40), st.integers(0, 40)), max_size=200))
@settings(max_examples=25)
def test_what_is_kept_is_bounded_and_the_newest(followed):
    walk = Walk()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chains, "MOST_KEPT", 8)
        for asker, here, there in followed:
            pages = [parse_target(f"http://a.org/{number}") for number in (here, there)]
            walk.chains.answered(asker, pages[0], request(), moved(pages[1].url))
            assert len(walk.chains.led) <= 8
            assert walk.chains.led[next(reversed(walk.chains.led))].until_ms == walk.now_ms + FOLLOWED_MS
    assert MOST_KEPT <= 10_000
