"""What agents and schedulers read of a running gate, on real sockets: budgets, changes, plans, calls, heartbeats."""

import asyncio
import json

import pytest
from looking import LIMITED, SAID, read, run
from stage import either

from eventually import eventually
from swarmgate.gate.view.events import MOST_LISTENERS, MOST_OF_ONE


async def never(_stand_in, hit, _writer):
    await _stand_in.go_on.wait()
    await either(_stand_in, hit, _writer)


def row(page, budget):
    return next(one for one in page["budgets"] if one["budget"] == budget)


def test_budgets_say_what_is_left_and_of_whom():
    async def scene(_, client):
        before = await read(client, "budgets", units="3")
        await client.post("/v1/chat/completions", json=SAID)
        after = await read(client, "budgets")
        return before, after

    before, after = run(scene)
    assert [one["target"] for one in before["targets"]] == ["up", "down"]
    assert {one["state"] for one in before["budgets"] + before["targets"]} == {"ready"}
    keyed = row(before, "up/first: requests per 60s")
    assert (keyed["unit"], keyed["limit"], keyed["window_ms"], keyed["key"]) == ("requests", 50, 60_000, "first")
    assert keyed["in_force"]["kind"] == "level"
    assert 0 < keyed["in_force"]["burst"] < 50
    assert keyed["units_free_in_ms"] == {"P0": 0, "P1": 0, "P2": 0}
    shared = row(before, "up: concurrent")
    assert (shared["unit"], shared["key"], shared["window_ms"]) == ("concurrent", None, None)
    used = [
        name
        for name in ("up/first: requests per 60s", "up/second: requests per 60s")
        if row(after, name)["remaining"]["P0"] < row(before, name)["remaining"]["P0"]
    ]
    assert len(used) == 1
    assert all(":way" not in one["budget"] for one in before["budgets"])


def test_one_target_alone_and_none_that_is_not_there():
    async def scene(_, client):
        one = await read(client, "budgets", target="down")
        every = await read(client, "budgets")
        none = await client.get("/swarmgate/v1/budgets", params={"target": "sideways"})
        return one, every, none

    bare = '[targets.bare]\nbase_url = "http://127.0.0.1:{port}/v1"\nkeys = {{ only = "env:KEY" }}\n'
    one, every, none = run(scene, text=LIMITED.replace("[routes]", f'{bare}[routes]\n"any" = "bare/m"'))
    assert "bare" in [row["target"] for row in every["targets"]]
    assert [row["target"] for row in one["budgets"] + one["targets"]] == ["down"] * 2
    assert none.status_code == 400
    assert none.json()["error"]["param"] == "target"


@pytest.mark.parametrize(
    ("method", "path", "status", "param"),
    [
        ("GET", "budgets?unit=3", 400, "unit"),
        ("GET", "budgets?units=0", 400, "units"),
        ("GET", "budgets?units=1&units=2", 400, "query"),
        ("GET", "budgets?" + "x" * 3_000, 400, "query"),
        ("GET", "budgets?target=%FF%FF", 400, "target"),
        ("GET", "calls?state=dead", 400, "state"),
        ("GET", "calls?limit=100000", 400, "limit"),
        ("GET", "calls/nobody", 404, "id"),
        ("GET", "alive", 400, "agent"),
        ("GET", "alive?agent=" + "a" * 200, 400, "agent"),
        ("GET", "nothing", 404, None),
        ("GET", "calls/", 404, None),
        ("DELETE", "budgets", 405, None),
        ("POST", "budgets/events", 405, None),
        ("OPTIONS", "calls/one", 405, None),
        ("GET", "plan/one", 404, None),
        ("GET", "budgets/none", 404, None),
        ("GET", "plan", 405, None),
    ],
)
def test_what_is_asked_wrongly_is_told(method, path, status, param):
    async def scene(running, client):
        answer = await client.request(method, f"/swarmgate/v1/{path}")
        return answer, running.gate.pump.open

    answer, open_calls = run(scene)
    assert (answer.status_code, answer.json()["error"]["param"]) == (status, param)
    assert not open_calls


def test_a_view_starts_no_call_and_may_be_read_through_the_other_forms():
    async def scene(running, client):
        as_agent = await client.get("/as/agent=a17/swarmgate/v1/budgets")
        heads = [await client.head(f"/swarmgate/v1/{path}") for path in ("budgets", "budgets/events", "plan")]
        return as_agent, heads, running.ends

    as_agent, heads, ends = run(scene)
    assert as_agent.json()["budgets"]
    assert [(head.status_code, head.content) for head in heads] == [(200, b""), (405, b""), (405, b"")]
    assert ends == []


class Listener:
    """Events as they come."""

    def __init__(self, answer):
        self.answer = answer
        self.events = []

    async def listen(self):
        name = ""
        async for line in self.answer.aiter_lines():
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                self.events.append((name, json.loads(line[6:])))


def test_changes_come_as_events_and_end_with_the_gate():
    async def scene(running, client):
        async with client.stream("GET", "/swarmgate/v1/budgets/events") as answer:
            listener = Listener(answer)
            listening = asyncio.ensure_future(listener.listen())
            await eventually(lambda: listener.events)
            await client.post("/v1/chat/completions", json=SAID)
            await eventually(lambda: len(listener.events) > 1)
            running.gate.window.events.close()
            await listening
        return listener.events

    (first, everything), (second, news), *_ = run(scene)
    assert (first, second) == ("budgets", "changed")
    assert len(everything["budgets"]) == 6
    assert 0 < len(news["budgets"]) < 6
    assert {one["target"] for one in news["budgets"]} == {"up"}


def test_listeners_are_counted_and_leave():
    async def scene(running, client):
        events = running.gate.window.events
        readers = [await asyncio.open_connection("127.0.0.1", running.port) for _ in range(MOST_LISTENERS)]
        for number, (_, writer) in enumerate(readers):
            whose = b"agent-%d" % (number // MOST_OF_ONE)
            writer.write(
                b"GET /swarmgate/v1/budgets/events HTTP/1.1\r\nhost: g\r\nx-swarmgate-agent: %b\r\n\r\n" % whose
            )
            if number == MOST_OF_ONE:
                await eventually(lambda: len(events) == MOST_OF_ONE + 1)
                greedy = await client.get("/swarmgate/v1/budgets/events", headers={"x-swarmgate-agent": "agent-0"})
                assert (greedy.status_code, "one caller" in greedy.text) == (503, True)
        await eventually(lambda: len(events) == MOST_LISTENERS)
        refused = await client.get("/swarmgate/v1/budgets/events")
        for _, writer in readers:
            writer.close()
        await eventually(lambda: not len(events))
        return refused

    assert run(scene).status_code == 503


def steps(*said):
    return {"steps": [dict(zip(("id", "model", "priority"), one, strict=True)) for one in said]}


def test_a_plan_puts_free_targets_first():
    async def scene(running, client):
        for cell in running.gate.store.book.cells.values():
            if cell.name.startswith("up/") and cell.drain:
                cell.level = cell.limits.burst * cell.scale
        asked = steps(("a", "busy", "P0"), ("b", "free", "P2"), ("c", "busy", "P0"), ("d", "free", "P1"))
        return (await client.post("/swarmgate/v1/plan", json=asked)).json()

    plan = run(scene)
    assert plan["now"] == ["d", "b"]
    assert [one["id"] for one in plan["order"]] == ["d", "b", "a", "c"]
    later = plan["order"][2]
    assert later["kind"] == "time"
    assert later["not_before_ms"] > 0
    assert later["target"] == "up"
    assert all(name.startswith("up/") for name in later["waits_for"])


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"", "body"),
        (b"{}", "body"),
        (b'{"steps":[]}', "body"),
        (b'{"steps":[{"id":"a","modle":"busy"}]}', "body"),
        (b'{"steps":[{"id":"a"}]}', "steps[0].model"),
        (b'{"steps":[{"id":"a","model":"busy","url":"http://x/"}]}', "steps[0].model"),
        (b'{"steps":[{"id":"a","model":"none"}]}', "steps[0].model"),
        (b'{"steps":[{"id":"a","url":"ftp://x/"}]}', "steps[0].url"),
        (b'{"steps":[{"id":"a","url":"http://127.1/"}]}', "steps[0].url"),
        (b'{"steps":[{"id":"a","url":"http://x.org:22/"}]}', "steps[0].url"),
        (b'{"steps":[{"id":"a","model":"busy"},{"id":"a","model":"busy"}]}', "steps[1].id"),
        (b'{"steps":[{"id":"a","model":"busy","priority":"P9"}]}', "steps[0].priority"),
        (b'{"steps":[{"id":"a","model":"busy","lasts":"soon"}]}', "steps[0].lasts"),
        (b'{"steps":[{"id":"a","model":"busy","lasts":"2h"}]}', "steps[0].lasts"),
        (b'{"steps":[{"id":"a","model":"busy","prompt_tokens":-1}]}', "body"),
    ],
)
def test_a_plan_that_cannot_be_read_names_its_step(body, param):
    async def scene(_, client):
        return await client.post("/swarmgate/v1/plan", content=body)

    answer = run(scene)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_a_call_costs_what_the_operator_says():
    priced = LIMITED + '\n[prices."down/m"]\ninput = 2.0\noutput = 10.0\n'

    async def scene(_, client):
        answer = await client.post("/v1/chat/completions", json=SAID | {"model": "free"})
        other = await client.post("/v1/chat/completions", json=SAID)
        return [await read(client, f"calls/{one.headers['x-request-id']}") for one in (answer, other)]

    known, unknown = run(scene, text=priced)
    assert known["cost_micro_usd"] == 9 * 2 + 3 * 10
    assert unknown["cost_micro_usd"] is None


def test_a_large_plan_lets_others_pass():
    async def scene(_, client):
        many = {"steps": [{"id": str(number), "model": "busy"} for number in range(1_000)]}
        planning = asyncio.ensure_future(client.post("/swarmgate/v1/plan", json=many))
        while not planning.done():
            await client.post("/v1/chat/completions", json=SAID | {"model": "free"})
        too_many = {"steps": [{"id": str(number), "model": "busy"} for number in range(1_001)]}
        return (await planning).json(), await client.post("/swarmgate/v1/plan", json=too_many)

    plan, refused = run(scene)
    assert [int(one["id"]) for one in plan["order"]] == list(range(1_000))
    begin = [one["not_before_ms"] for one in plan["order"]]
    assert begin == sorted(begin)
    assert refused.status_code == 400


def test_calls_are_told_while_they_run_wait_and_after_they_ended():
    async def scene(running, client):
        agent = {"x-swarmgate-agent": "a17", "x-swarmgate-step": "s1", "x-swarmgate-priority": "P0"}
        asked = [asyncio.ensure_future(client.post("/v1/chat/completions", json=SAID, headers=agent)) for _ in range(3)]
        await eventually(lambda: len(running.stand_in.hits) == 2 and len(running.gate.pump.room) == 1)
        queued = await read(client, "calls", state="queued")
        running_now = await read(client, "calls", state="running", agent="a17")
        nobody = await read(client, "calls", agent="other")
        alive = await read(client, "alive", agent="a17")
        running.stand_in.go_on.set()
        answers = await asyncio.gather(*asked)
        one = await read(client, f"calls/{answers[0].headers['x-request-id']}")
        ended = await read(client, "calls", state="ended", limit="1")
        return queued, running_now, nobody, alive, one, ended, await read(client, "alive", agent="a17")

    queued, running_now, nobody, alive, one, ended, idle = run(scene, never)
    (waiting,) = queued["calls"]
    assert (waiting["agent"], waiting["priority"], waiting["reason"]) == ("a17", "P0", "policy_slots")
    assert waiting["until_ms"] >= 0
    assert queued["counts"] == {"queued": 1, "running": 2, "backoff": 0}
    assert len(running_now["calls"]) == 2
    assert nobody["calls"] == []
    assert (alive["state"], alive["calls"], alive["last_heard_ms"]) == ("running", {"running": 2, "queued": 1}, None)
    assert (one["state"], one["end"], one["attempts"], one["step"]) == ("ended", "answered", 1, "s1")
    assert one["usage"] == {"prompt_tokens": 9, "output_tokens": 3, "estimated": False}
    assert (len(ended["calls"]), ended["left_off"]) == (1, 2)
    assert idle["state"] == "idle"
    assert idle["last_heard_ms"] >= 0


def test_a_stream_tells_its_totals_after_its_end():
    async def scene(_, client):
        async with client.stream("POST", "/v1/chat/completions", json=SAID | {"stream": True}) as answer:
            await answer.aread()
            return await read(client, f"calls/{answer.headers['x-request-id']}")

    one = run(scene)
    assert (one["streamed"], one["usage"]) == (True, {"prompt_tokens": 9, "output_tokens": 3, "estimated": False})


def test_llm_gateways_75_a_queued_agent_hears_what_it_waits_for():
    async def scene(running, client):
        asked = [
            asyncio.ensure_future(
                client.post("/v1/chat/completions", json=SAID, headers={"x-swarmgate-agent": f"a{number}"})
            )
            for number in range(3)
        ]
        await eventually(lambda: len(running.gate.pump.room) == 1)
        (waiting,) = (await read(client, "calls", state="queued"))["calls"]
        alive = await read(client, "alive", agent=waiting["agent"])
        running.stand_in.go_on.set()
        await asyncio.gather(*asked)
        return alive

    alive = run(scene, never)
    assert (alive["state"], alive["reason"]) == ("queued", "policy_slots")


def test_llm_gateways_76_heartbeats_are_remembered_for_so_many_agents(monkeypatch):
    monkeypatch.setattr("swarmgate.gate.view.calls.MOST_AGENTS", 3)

    async def scene(_, client):
        for number in range(5):
            await read(client, "alive", agent=f"a{number}")
        return [(await read(client, "alive", agent=f"a{number}"))["last_heard_ms"] for number in (4, 0)]

    kept, forgotten = run(scene)
    assert kept is not None
    assert forgotten is None
