"""SC-08, SC-09: each provider's key is seen at its own host only, whatever callers say, targets answer, and ladders do."""

import asyncio
import contextlib
import json

import pytest
from stage import UNARY, StandIn, either, whole

from swarmgate import config, wiring

KEYS = {"RED": "sk-canary-red-1f0c", "BLUE": "sk-canary-blue-7a2e", "BLUE2": "sk-canary-blue-9d41"}
TEXT = """
[targets.red]
base_url = "http://127.0.0.1:{red}/v1"
keys = {{ only = "env:RED" }}
[targets.blue]
base_url = "http://127.0.0.1:{blue}/v1"
keys = {{ one = "env:BLUE", two = "env:BLUE2" }}
[routes]
red = "red/m"
blue = "blue/m"
down = ["red/m", "blue/m"]
[egress]
ports = [{evil}]
unknown = "1000 per 1s"
ceiling = "1000 per 1s"
[resolve]
"evil.test" = "127.0.0.1:{evil}"
"""


class World:
    """Two providers, somebody else, and a gate before all of them."""

    def __init__(self, **scripts):
        self.places = {name: StandIn(scripts.get(name, either)) for name in ("red", "blue", "evil")}
        self.ports = {}
        self.port = 0

    @contextlib.asynccontextmanager
    async def running(self):
        async with contextlib.AsyncExitStack() as stack:
            for name, place in self.places.items():
                server = await asyncio.start_server(place.serve, "127.0.0.1", 0)
                stack.push_async_callback(place.close)
                stack.callback(server.close)
                self.ports[name] = server.sockets[0].getsockname()[1]
            read = config.parse(TEXT.format(**self.ports), KEYS)
            gate = wiring.gate(asyncio.get_running_loop(), read, lambda _call, error: pytest.fail(repr(error)))
            gate.store.book.birth_ms = -(2**51)
            self.port = await gate.start("127.0.0.1", 0)
            try:
                yield self
            finally:
                await gate.stop(drain_s=1)

    async def ask(self, target="/v1/chat/completions", *lines, method="POST", host="g", **said):
        """The whole answer to one request."""
        body = json.dumps({"model": "red", "messages": [], **said}).encode()
        head = "\r\n".join([f"{method} {target} HTTP/1.1", f"host: {host}", "connection: close", *lines])
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        with contextlib.closing(writer):
            writer.write(f"{head}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
            return await reader.read()

    def check(self):
        """What each place has seen is its own key, if it is a provider, and nobody else's."""
        own = {"red": {"RED"}, "blue": {"BLUE", "BLUE2"}, "evil": set()}
        for name, place in self.places.items():
            seen = repr([(hit.path, hit.headers, hit.body) for hit in place.hits])
            assert {key for key, secret in KEYS.items() if secret in seen} <= own[name], name
        return {name: len(place.hits) for name, place in self.places.items()}


@pytest.mark.parametrize(
    ("target", "lines", "said"),
    [
        ("/v1/chat/completions", (), {"api_base": "http://127.0.0.1:{evil}"}),
        (
            "/v1/chat/completions",
            (),
            {"base_url": "http://127.0.0.1:{evil}", "api_key": "x", "custom_llm_provider": "y"},
        ),
        ("/v1/chat/completions", ("x-forwarded-host: 127.0.0.1:{evil}", "forwarded: host=evil.test"), {}),
        ("/v1/chat/completions", ("x-original-url: http://127.0.0.1:{evil}/", "x-rewrite-url: /"), {}),
        ("/v1/chat/completions?base_url=http://127.0.0.1:{evil}&key=k", (), {}),
        ("/v1/files/../../@127.0.0.1:{evil}/", (), {}),
        ("/v1//127.0.0.1:{evil}/x", (), {}),
        ("http://evil.test:{evil}/v1/chat/completions", (), {}),
        ("/to/http/evil.test:{evil}/v1/chat/completions", (), {}),
        ("/to/http/127.0.0.1:{red}@evil.test:{evil}/v1/chat/completions", (), {}),
    ],
)
def test_sc_08_no_word_of_a_caller_leads_a_key_elsewhere(target, lines, said):
    async def play():
        async with World().running() as world:
            filled = {name: value.format(**world.ports) for name, value in said.items()}
            host = f"evil.test:{world.ports['evil']}" if target.startswith("http:") else "g"
            heads = [line.format(**world.ports) for line in lines]
            await world.ask(target.format(**world.ports), *heads, host=host, **filled)
            return world.check()

    assert sum(asyncio.run(play()).values()) <= 1


async def elsewhere(stand_in, hit, writer):
    """A target that sends its callers to another one."""
    place = hit.headers.get("x-to", "evil.test")
    writer.write(whole(UNARY, "307 Elsewhere", f"location: http://{place}/v1/chat/completions\r\n"))


async def failing(stand_in, hit, writer):
    writer.write(whole({"error": {"message": "down", "type": "server_error"}}, "503 Down"))


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/files"])
def test_sc_09_no_redirect_carries_a_key_along(path):
    async def play():
        async with World(red=elsewhere).running() as world:
            for name in ("evil", "blue"):
                once = "x-swarmgate-effect: write"  # a redirect is no answer, so a read would be repeated
                await world.ask(path, once, f"x-to: 127.0.0.1:{world.ports[name]}")
            return world.check()

    assert asyncio.run(play()) == {"red": 2, "blue": 0, "evil": 0}


def test_sc_09_ladders_turns_and_kept_connections_never_mix_keys_up():
    async def play():
        async with World(red=failing).running() as world:
            models = ["red", "blue", "down"] * 12
            await asyncio.gather(*(world.ask(model=model, stream=at % 2 == 0) for at, model in enumerate(models)))
            seen = {hit.headers["authorization"] for hit in world.places["blue"].hits}
            return world.check(), seen, world.places["blue"].connections

    counts, seen, connections = asyncio.run(play())
    assert counts["blue"] >= 24  # its own, and what came down the ladder
    assert seen == {f"Bearer {KEYS['BLUE']}", f"Bearer {KEYS['BLUE2']}"}
    assert connections < counts["blue"]
    assert counts["evil"] == 0
