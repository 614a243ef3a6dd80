"""The transports before the gate's own doors: hosts are called as if there were no gate, but with its patience."""

import asyncio
import importlib

import pytest
from outside import stage, whole

from swarmgate.sdk import Deferred, context, until_admitted_async

LIBRARIES = ("httpx", "httpx2")
SLOW = """
[egress]
presets = "off"
unknown = "20 per 1s"
ceiling = "20 per 1s"
"""


def reply(hit):
    if hit.path == "/in":
        return whole(302, b"", location="/home", set_cookie="sid=1; Path=/; Secure")
    if hit.path.startswith("/loop"):
        other = "b.org" if hit.host == "a.org" else "a.org"
        return whole(302, b"", location=f"http://{other}/loop{len(hit.path)}{hit.path[5:]}")
    if hit.path.startswith("/round"):
        return whole(302, b"", location="/round/2" if hit.path == "/round" else "../round")
    if hit.path == "/broken":
        return whole(302, b"", location="http://[::1]x/")
    if hit.path == "/moved":
        return whole(302, b"", location="http://b.org/here?x=1")
    return whole(body=f"{hit.host}{hit.path}".encode())


ONE_AT_A_TIME = """
[egress]
presets = "off"
unknown = "4 per 1s"
ceiling = "4 per 1s"
"""


def run(library, scene, **setting):
    module, transports = importlib.import_module(library), importlib.import_module(f"swarmgate.sdk.{library}")

    async def play():
        async with stage(reply, **setting) as on:
            transport = transports.AsyncGateTransport(f"http://127.0.0.1:{on.caller.port}")
            async with module.AsyncClient(transport=transport, follow_redirects=True, timeout=10) as client:
                return await scene(on, client)

    return asyncio.run(play())


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_host_is_called_by_its_own_url_and_the_call_has_its_step(library):
    async def scene(on, client):
        with context(agent="a17", step="s1"):
            answer = await client.get("http://a.org/page?q=1")
        (call, *_), *_ = on.gate.callers.ended
        return answer, call.step, on.world.hits

    answer, step, (hit,) = run(library, scene)
    assert (answer.text, str(answer.url)) == ("a.org/page?q=1", "http://a.org/page?q=1")
    assert (step.agent, step.step) == ("a17", "s1")
    assert (hit.host, hit.path) == ("a.org", "/page?q=1")
    assert not [name for name in hit.headers if name.startswith(("x-swarmgate-a", "traceparent"))]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_redirect_stays_inside_and_looks_as_if_outside(library):
    async def scene(on, client):
        return await client.get("http://a.org/moved"), on.world.hits

    answer, hits = run(library, scene)
    assert (str(answer.url), answer.text) == ("http://b.org/here?x=1", "b.org/here?x=1")
    assert [(hit.host, hit.path) for hit in hits] == [("a.org", "/moved"), ("b.org", "/here?x=1")]


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_exhausted_host_defers_and_serves_who_waits_as_told(library):
    async def scene(on, client):
        async def ask(number):
            return await client.get(f"http://a.org/{number}")

        first = await asyncio.gather(*[ask(number) for number in range(30)], return_exceptions=True)
        deferred = [one for one in first if isinstance(one, Deferred)]
        served = await asyncio.gather(*[until_admitted_async(lambda: ask("again")) for _ in range(3)])
        retries = {call.retries for call, *_ in on.gate.callers.ended}
        return deferred, served, retries

    deferred, served, retries = run(library, scene, text=SLOW)
    assert deferred
    assert all(one.ticket and one.blocking and one.reason.startswith("policy_") for one in deferred)
    assert [answer.status_code for answer in served] == [200] * 3
    assert retries == {0}


@pytest.mark.parametrize("library", LIBRARIES)
def test_who_waits_at_a_second_hop_does_not_walk_the_first_one_again(library):
    async def scene(on, client):
        answer = await until_admitted_async(lambda: client.get("http://a.org/in"), attempts=4)
        again = await until_admitted_async(lambda: client.get("http://a.org/in"), attempts=4)
        return answer, again, [hit.path for hit in on.world.hits]

    answer, again, paths = run(library, scene, text=ONE_AT_A_TIME)
    assert (str(answer.url), answer.text, len(answer.history)) == ("http://a.org/home", "a.org/home", 1)
    assert str(again.url) == "http://a.org/home"
    assert paths == ["/in", "/home", "/in", "/home"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_redirect_that_is_no_url_fails_as_without_a_gate(library):
    async def scene(on, client):
        with pytest.raises(importlib.import_module(library).RemoteProtocolError):
            await client.get("http://a.org/broken")
        return len(on.world.hits)

    assert run(library, scene) == 1


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_cookie_comes_back_to_its_host_and_to_no_other(library):
    async def scene(on, client):
        home = await client.get("http://a.org/in")
        await client.get("http://b.org/")
        return home, on.world.hits

    home, (_, second, third) = run(library, scene)
    assert str(home.url) == "http://a.org/home"
    assert second.headers["cookie"] == "sid=1"
    assert "cookie" not in third.headers


@pytest.mark.parametrize("library", LIBRARIES)
def test_redirects_without_end_are_ended_by_the_gate(library):
    async def scene(on, client):
        return await client.get("http://a.org/loop"), on.world.hits

    answer, hits = run(library, scene)
    assert answer.json()["code"] == "policy_redirects"
    assert len(hits) == 6


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("words", [{}, {"agent": "a17"}], ids=["nameless", "named"])
def test_a_loop_inside_one_host_is_ended_by_the_gate(library, words):
    async def scene(on, client):
        with context(**words):
            return await client.get("http://a.org/round"), len(on.world.hits)

    answer, hits = run(library, scene)
    assert (answer.status_code, answer.json()["code"], hits) == (508, "policy_redirects", 9)
