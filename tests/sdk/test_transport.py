"""Transports for httpx and httpx2, blocking and awaited, before a real gate and before a stand-in for its doors."""

import asyncio
import contextlib
import importlib

import anthropic
import httpx2
import openai
import pytest
from stage import StandIn, stage, whole

from swarmgate.sdk import Deferred, context, deferral_of, until_admitted, until_admitted_async

LIBRARIES = ("httpx", "httpx2")
KINDS = [(library, kind) for library in LIBRARIES for kind in ("blocking", "awaited")]
every = pytest.mark.parametrize(("library", "kind"), KINDS, ids=[" ".join(one) for one in KINDS])
SAID = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
SLOW = """
[targets.up]
base_url = "http://127.0.0.1:{port}/v1"
keys = {{ only = "env:KEY" }}
key_limits = ["50 per 1s"]
"""


class Client:
    """One library's client, blocking in a thread or awaited, with the same face."""

    def __init__(self, library, kind, gate, **options):
        module = importlib.import_module(library)
        transports = importlib.import_module(f"swarmgate.sdk.{library}")
        following = options.pop("follow_redirects", False)
        self.blocking = kind == "blocking"
        if self.blocking:
            self.client = module.Client(transport=transports.GateTransport(gate, **options), follow_redirects=following)
        else:
            transport = transports.AsyncGateTransport(gate, **options)
            self.client = module.AsyncClient(transport=transport, follow_redirects=following)

    async def __call__(self, method, url, **rest):
        if self.blocking:
            return await asyncio.to_thread(self.client.request, method, url, **rest)
        return await self.client.request(method, url, **rest)

    async def close(self):
        await (asyncio.to_thread(self.client.close) if self.blocking else self.client.aclose())


@contextlib.asynccontextmanager
async def client_of(library, kind, gate, **options):
    client = Client(library, kind, gate, **options)
    try:
        yield client
    finally:
        await client.close()


def before_gate(scene, library, kind, text=SLOW, **options):
    async def play():
        async with stage(text=text) as running, client_of(library, kind, running.url, **options) as client:
            return await scene(running, client)

    return asyncio.run(play())


def cold(gate, debt_ms=60_000):
    """Nothing is left, and there is debt."""
    for cell in gate.store.book.cells.values():
        if cell.drain:
            cell.level = cell.limits.burst * cell.scale + debt_ms * cell.drain


@every
def test_a_model_call_says_who_makes_it(library, kind):
    async def scene(running, client):
        with context(agent="a17", goal="g3", step="s1", priority="P0"):
            answer = await client("POST", f"{running.url}/chat/completions", json=SAID)
            own = await client("POST", f"{running.url}/chat/completions", json=SAID, headers={"x-swarmgate-step": "s2"})
        return answer, own, running.gate.callers.ended, running.stand_in.hits

    answer, own, ended, hits = before_gate(scene, library, kind)
    assert (answer.status_code, own.status_code) == (200, 200)
    assert [(call.step.agent, call.step.goal, call.step.step, call.rank) for call, *_ in ended] == [
        ("a17", "g3", "s1", 0),
        ("a17", "g3", "s2", 0),
    ]
    assert not [name for hit in hits for name in hit.headers if name.startswith(("x-swarmgate-a", "traceparent"))]


@every
def test_a_deferral_is_raised_with_its_ticket(library, kind):
    async def scene(running, client):
        cold(running.gate)
        with context(wait="0s"), pytest.raises(Deferred) as raised:
            await client("POST", f"{running.url}/chat/completions", json=SAID)
        return raised.value

    deferred = before_gate(scene, library, kind)
    assert deferred.ticket
    assert (deferred.reason, deferred.target) == ("policy_rate", "up")
    assert deferred.not_before_ms > 0
    assert {one.kind for one in deferred.blocking} == {"time"}


@every
def test_or_returned_whole_if_asked_for(library, kind):
    async def scene(running, client):
        cold(running.gate)
        with context(wait="0s"):
            return await client("POST", f"{running.url}/chat/completions", json=SAID)

    answer = before_gate(scene, library, kind, on_deferral="return")
    assert answer.status_code == 429
    assert deferral_of(answer).ticket


@every
def test_who_comes_back_with_its_ticket_is_served_and_uses_no_retry(library, kind):
    async def scene(running, client):
        cold(running.gate, debt_ms=20)

        async def ask():
            return await client("POST", f"{running.url}/chat/completions", json=SAID)

        with context(wait="0s"):
            answers = await asyncio.gather(*[until_admitted_async(ask) for _ in range(5)])
        return answers, [call for call, *_ in running.gate.callers.ended if call.end.value == "answered"]

    answers, served = before_gate(scene, library, kind)
    assert [answer.status_code for answer in answers] == [200] * 5
    assert [(call.attempt, call.retries) for call in served] == [(1, 0)] * 5


class TestOfficialSdks:
    @staticmethod
    def play(scene):
        async def play():
            async with stage(text=SLOW) as running:
                return await asyncio.to_thread(scene, running)

        return asyncio.run(play())

    @staticmethod
    def transport(running):
        transports = importlib.import_module("swarmgate.sdk.httpx2")
        return httpx2.Client(transport=transports.GateTransport(running.url))

    def test_openai(self):
        def scene(running):
            with openai.OpenAI(
                base_url=running.url, api_key="k", http_client=self.transport(running), max_retries=0
            ) as client:
                with context(agent="a17"):
                    answer = client.chat.completions.create(**SAID)
                cold(running.gate)
                with context(wait="0s"), pytest.raises(openai.RateLimitError) as raised:
                    client.chat.completions.create(**SAID)
                cold(running.gate, debt_ms=20)
                with context(wait="0s"):
                    again = until_admitted(lambda: client.chat.completions.create(**SAID))
            return answer, deferral_of(raised.value), again, running.gate.callers.ended[0][0]

        answer, deferred, again, first = self.play(scene)
        assert answer.choices[0].message.content == again.choices[0].message.content == "four"
        assert deferred.ticket
        assert first.step.agent == "a17"

    def test_anthropic(self):
        def scene(running):
            cold(running.gate)
            with (
                anthropic.Anthropic(
                    base_url=running.url.removesuffix("/v1"),
                    api_key="k",
                    http_client=self.transport(running),
                    max_retries=0,
                ) as client,
                context(wait="0s"),
                pytest.raises(anthropic.RateLimitError) as raised,
            ):
                client.messages.create(max_tokens=9, **SAID)
            return deferral_of(raised.value)

        assert self.play(scene).reason == "policy_rate"


async def doors(stand_in, hit, writer):
    """What the gate's doors answer, as far as a client sees it."""
    if hit.path.endswith("/moved"):
        writer.write(whole({}, "302 Found", "location: /to/https/other.example:8443/here?x=1\r\n"))
    elif hit.path.endswith("/out"):
        writer.write(whole({}, "302 Found", "location: https://third.example/\r\n"))
    elif hit.path.endswith("/busy"):
        problem = {"type": "about:blank", "title": "not now", "deferral": {"ticket": "t", "not_before_ms": 10}}
        writer.write(whole(problem, "429 Too Many Requests"))
    elif hit.path.endswith("/theirs"):
        writer.write(whole({"error": "slow down"}, "429 Too Many Requests", "retry-after: 3\r\n"))
    else:
        writer.write(whole({"path": hit.path}))


def before_doors(scene, library, kind, **options):
    async def play():
        stand_in = StandIn(doors)
        server = await asyncio.start_server(stand_in.serve, "127.0.0.1", 0)
        gate = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with client_of(library, kind, gate, **options) as client:
            found = await scene(client)
        server.close()
        await stand_in.close()
        return found, stand_in.hits, gate

    return asyncio.run(play())


@every
@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("https://export.arxiv.org/api/query?q=all:x&n=1", "/to/https/export.arxiv.org/api/query?q=all:x&n=1"),
        ("http://example.com", "/to/http/example.com/"),
        ("https://example.com:8443/a%2Fb/c", "/to/https/example.com:8443/a%2Fb/c"),
        ("http://[2001:db8::1]:81/x", "/to/http/[2001:db8::1]:81/x"),
        ("https://faß.example/", "/to/https/xn--fa-hia.example/"),
        ("https://user:word@example.com/", "/to/https/example.com/"),
    ],
)
def test_a_url_elsewhere_goes_through_the_door(library, kind, url, path):
    async def scene(client):
        with context(agent="a17"):
            return await client("POST", url, content=b"body", headers={"x-own": "1"})

    answer, (hit,), gate = before_doors(scene, library, kind, key="sgk_1")
    assert hit.path == path
    assert (hit.headers["host"], hit.body, hit.headers["x-own"]) == (gate.removeprefix("http://"), b"body", "1")
    assert (hit.headers["x-swarmgate-agent"], hit.headers["x-swarmgate-key"]) == ("a17", "sgk_1")
    assert "traceparent" in hit.headers
    assert answer.json() == {"path": path}
    assert answer.request.url == importlib.import_module(library).URL(url)


@every
def test_redirects_are_followed_inside_and_look_as_if_outside(library, kind):
    async def scene(client):
        inside = await client("GET", "https://example.com/moved")
        outside = await client("GET", "https://example.com/out")
        return inside, outside

    (inside, outside), hits, _ = before_doors(scene, library, kind, follow_redirects=True)
    assert str(inside.url) == "https://other.example:8443/here?x=1"
    assert str(outside.url) == "https://third.example/"
    assert [hit.path for hit in hits] == [
        "/to/https/example.com/moved",
        "/to/https/other.example:8443/here?x=1",
        "/to/https/example.com/out",
        "/to/https/third.example/",
    ]


@every
def test_a_deferral_of_the_door_is_raised_and_a_targets_own_429_is_not(library, kind):
    async def scene(client):
        with pytest.raises(Deferred) as raised:
            await client("GET", "https://example.com/busy")
        return raised.value, await client("GET", "https://example.com/theirs")

    (deferred, theirs), _, _ = before_doors(scene, library, kind)
    assert (deferred.ticket, deferred.not_before_ms) == ("t", 10)
    assert (theirs.status_code, theirs.headers["retry-after"]) == (429, "3")
    assert theirs.json() == {"error": "slow down"}


@pytest.mark.parametrize("library", LIBRARIES)
def test_where_the_gate_is(library, monkeypatch):
    transports = importlib.import_module(f"swarmgate.sdk.{library}")
    monkeypatch.setenv("SWARMGATE_URL", "http://127.0.0.1:9999")
    assert str(transports.GateTransport()._gate) == "http://127.0.0.1:9999"
    monkeypatch.delenv("SWARMGATE_URL")
    assert str(transports.AsyncGateTransport()._gate) == "http://127.0.0.1:8787"
    for wrong in ("ftp://x", "127.0.0.1:8787", "/v1"):
        with pytest.raises((ValueError, importlib.import_module(library).InvalidURL)):
            transports.GateTransport(wrong)
