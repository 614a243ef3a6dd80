"""Two teams with keys of their own at one gate: what each may see of it, and what it can not tell from nothing."""

import asyncio
import contextlib
import json
from typing import NamedTuple

import httpx
import pytest
from stage import stage

from swarmgate.core.scope import Scope, key_hash
from swarmgate.gate.keeper import Keeper
from swarmgate.gate.view.events import Events
from swarmgate.gate.view.viewer import may_call

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:{port}/v1"
keys = {{ only = "env:KEY" }}
limits = ["900_000_000 per 1s"]

[targets.hidden]
base_url = "http://127.0.0.1:{port}/v1"
keys = {{ only = "env:KEY" }}
limits = ["900_000_000 per 1s"]

[routes]
small = "up/m"
big = "hidden/m"

[agents]
limits = ["1000 per 60s"]

[teams.red]
agents = ["red-*"]
limits = ["1000 per 60s"]

[egress]
connect = "refuse"
"""
KEYS = {
    "sgk_red": Scope("1", "red", ("up", "site.test"), ("small",)),
    "sgk_blue": Scope("2", "blue"),
    "sgk_none": Scope("3"),
}


class Viewer:
    """One caller with its key, or none."""

    def __init__(self, client, key):
        self._client = client
        self._headers = {"authorization": f"Bearer {key}"} if key else {}

    async def call(self, model, **said):
        headers = self._headers | {f"x-swarmgate-{name}": value for name, value in said.items()}
        body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
        answer = await self._client.post("/v1/chat/completions", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.headers["x-request-id"]

    async def get(self, path):
        return await self._client.get(path, headers=self._headers)

    async def read(self, path):
        answer = await self.get(f"/swarmgate/v1/{path}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def plan(self, step):
        return await self._client.post("/swarmgate/v1/plan", json={"steps": [step]}, headers=self._headers)


class Inside(NamedTuple):
    """What no caller sees."""

    keeper: Keeper
    events: Events


def run(scene):
    async def play():
        async with stage(text=TEXT) as running, httpx.AsyncClient(timeout=20) as client:
            client.base_url = f"http://127.0.0.1:{running.port}"
            keeper = running.gate.ask_for_keys(required=False)
            keeper.replace(b"p", {key_hash(key, b"p"): scope for key, scope in KEYS.items()})
            viewers = {key[4:]: Viewer(client, key) for key in KEYS}
            return await scene(
                viewers | {"keyless": Viewer(client, "")}, client, Inside(keeper, running.gate.window.events)
            )

    return asyncio.run(play())


def test_ti_04_a_team_sees_its_own_calls_and_no_others():
    async def scene(viewers, _client, _inside):
        ids = {
            "red": await viewers["red"].call("small", agent="a1"),
            "blue": await viewers["blue"].call("big", agent="a1"),
            "none": await viewers["none"].call("big", agent="a1"),
        }
        ids["keyless"] = await viewers["keyless"].call("big", agent="red-1")  # a claim, not a key
        together = {ids["none"], ids["keyless"]}
        own = {"red": {ids["red"]}, "blue": {ids["blue"]}, "none": together, "keyless": together}
        for name, viewer in viewers.items():
            page = await viewer.read("calls?agent=a1" if name in {"red", "blue"} else "calls")
            assert {row["id"] for row in page["calls"]} == own[name], name
            for call in ids.values():
                status = (await viewer.get(f"/swarmgate/v1/calls/{call}")).status_code
                assert status == (200 if call in own[name] else 404), (name, call)

    run(scene)


def test_a_key_sees_the_budgets_that_its_calls_take_from():
    async def scene(viewers, _client, _inside):
        await viewers["red"].call("small", agent="a1")
        await viewers["blue"].call("big", agent="a1")
        await viewers["keyless"].call("big", agent="a2")
        red = await viewers["red"].read("budgets")
        assert [row["budget"] for row in red["budgets"]] == [
            "up: requests per 1s",
            "team red: requests per 60s",
            "agent red a1: requests per 60s",
        ]
        assert [row["target"] for row in red["targets"]] == ["up"]
        blue = {row["budget"] for row in (await viewers["blue"].read("budgets"))["budgets"]}
        assert blue == {"up: requests per 1s", "hidden: requests per 1s", "agent blue a1: requests per 60s"}
        keyless = {row["budget"] for row in (await viewers["keyless"].read("budgets"))["budgets"]}
        assert "agent a2: requests per 60s" in keyless
        assert not [name for name in keyless if name.startswith(("agent red", "agent blue"))]
        foreign, nothing = [
            (await viewers["red"].get(f"/swarmgate/v1/budgets?target={name}")) for name in ("hidden", "nothing")
        ]
        assert foreign.status_code == nothing.status_code == 400
        assert foreign.text.replace("hidden", "nothing") == nothing.text

    run(scene)


def test_the_stream_of_changes_is_as_narrow():
    async def scene(viewers, client, _inside):
        await viewers["blue"].call("big", agent="a1")
        await viewers["red"].call("small", agent="a1")
        async with client.stream(
            "GET", "/swarmgate/v1/budgets/events", headers={"authorization": "Bearer sgk_red"}
        ) as stream:
            lines = stream.aiter_lines()
            first = await _event(lines)
            assert {row["target"] for row in first["budgets"]} == {"up", "team red", "agent red a1"}
            assert [row["target"] for row in first["targets"]] == ["up"]

    run(scene)


def test_a_stream_ends_with_its_key_and_others_go_on():
    async def scene(_viewers, client, inside):
        async with contextlib.AsyncExitStack() as streams:
            lines = {}
            for key in ("sgk_red", "sgk_blue", ""):
                headers = {"authorization": f"Bearer {key}"} if key else {}
                asked = client.stream("GET", "/swarmgate/v1/budgets/events", headers=headers)
                lines[key] = (await streams.enter_async_context(asked)).aiter_lines()
                assert await _event(lines[key])
            inside.keeper.replace(b"p", {key_hash("sgk_blue", b"p"): KEYS["sgk_blue"]})
            assert await asyncio.wait_for(_event(lines["sgk_red"]), 2) is None
            assert len(inside.events) == 2
            inside.events.close()

    run(scene)


async def _event(lines):
    async for line in lines:
        if line.startswith("data: "):
            return json.loads(line.removeprefix("data: "))
    return None


def test_heartbeats_of_two_teams_do_not_meet():
    async def scene(viewers, _client, _inside):
        assert (await viewers["red"].read("alive?agent=a1"))["last_heard_ms"] is None
        assert (await viewers["blue"].read("alive?agent=a1"))["last_heard_ms"] is None
        assert (await viewers["red"].read("alive?agent=a1"))["last_heard_ms"] is not None

    run(scene)


@pytest.mark.parametrize(
    ("step", "status"),
    [
        ({"id": "1", "model": "small"}, 200),
        ({"id": "1", "model": "big"}, 400),
        ({"id": "1", "url": "https://site.test/x"}, 200),
        ({"id": "1", "url": "https://other.test/x"}, 400),
    ],
)
def test_a_key_plans_what_it_may_call(step, status):
    async def scene(viewers, _client, _inside):
        answer = await viewers["red"].plan(step)
        assert answer.status_code == status, answer.text

    run(scene)


def test_models_that_a_key_may_not_say_are_not_listed():
    async def scene(viewers, _client, _inside):
        names = {key: [row["id"] for row in (await viewers[key].get("/v1/models")).json()["data"]] for key in viewers}
        assert names == {
            "red": ["small"],
            "blue": ["small", "big"],
            "none": ["small", "big"],
            "keyless": ["small", "big"],
        }
        assert (await viewers["red"].get("/v1/models/big")).status_code == 404
        assert (await viewers["red"].get("/v1/models/small")).status_code == 200
        assert "big" not in (await viewers["red"].get("/v1/models/bug")).text

    run(scene)


@pytest.mark.parametrize(
    ("targets", "target", "may"),
    [
        (("*",), "anything", True),
        (("up",), "up", True),
        (("up",), "upper", False),
        (("site.test",), "https://site.test", True),
        (("site.test",), "http://site.test:8080#search", True),
        (("*.site.test",), "https://evil.test/site.test", False),
        (("::1",), "https://[::1]:8443", True),
        (("::1",), "https://[::1]", True),
    ],
)
def test_what_a_key_may_call(targets, target, may):
    assert may_call(Scope("1", targets=targets), target) is may
