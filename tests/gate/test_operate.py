"""What an operator changes while calls run: at once, for everybody who waits, and each bound for its own time."""

import asyncio
from fractions import Fraction
from functools import cache

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage import DONE, LAST, STREAM_HEAD, framed, stage, token, warm
from test_front import TEXT as STREAMED
from test_front import request
from test_relay import started
from wires import Bench

from eventually import eventually
from swarmgate.core import kernel
from swarmgate.core.answers import Granted
from swarmgate.core.book import Take, first_score
from swarmgate.core.compiler import WAY
from swarmgate.core.errors import BadInput
from swarmgate.core.ticket import KEEPS_MS

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:{port}/v1"
keys = {{ first = "env:KEY", second = "env:KEY" }}
limits = ["1_000 per 1s", "4 concurrent"]
key_limits = ["600 per 60s"]

[targets.other]
base_url = "http://127.0.0.1:{port}/v1"
keys = {{ only = "env:KEY" }}
limits = ["200_000 per 24h"]

[routes]
"m" = "up/m"
"n" = "other/n"
"""
SHARED = "up: requests per 1s"
KEYED = ["up/first: requests per 60s", "up/second: requests per 60s"]
SAID = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def run(scene):
    async def play():
        async with stage(text=TEXT) as running, httpx.AsyncClient(timeout=10, base_url=running.url) as client:
            gate = running.gate
            return await scene(gate, gate.operator, client)

    return asyncio.run(play())


def changed(changes):
    return [(one.budget, one.limits.revision) for one in changes]


def test_a_pause_holds_everybody_and_its_end_lets_them_go():
    async def scene(gate, operator, client):
        paused = operator.pause("up")
        waiting = [asyncio.ensure_future(client.post("/chat/completions", json=SAID)) for _ in range(5)]
        await eventually(lambda: len(gate.pump.room) == 5)
        deferred = await client.post("/chat/completions", json=SAID, headers={"x-swarmgate-wait": "0s"})
        other = await client.post("/chat/completions", json=SAID | {"model": "n"})
        seen = (
            await client.get(f"http://127.0.0.1:{gate.window and client.base_url.port}/swarmgate/v1/budgets")
        ).json()
        resumed = operator.resume("up")
        answers = await asyncio.gather(*waiting)
        return paused, deferred, other, seen, resumed, answers, operator.resume("up")

    paused, deferred, other, seen, resumed, answers, nothing = run(scene)
    assert [name for name, _ in changed(paused)] == [SHARED, "up: concurrent", *KEYED]
    assert {revision for _, revision in changed(paused)} == {2}
    assert {revision for _, revision in changed(resumed)} == {3}
    said = deferred.json()["error"]
    assert (deferred.status_code, said["code"]) == (429, "policy_paused")
    assert said["deferral"]["certain_by_ms"] is None
    assert 2_000 <= said["deferral"]["not_before_ms"] <= said["deferral"]["retry_after_ms"] < KEEPS_MS
    assert SHARED in said["message"]
    assert other.status_code == 200
    assert {one["target"]: one["state"] for one in seen["targets"]} == {"up": "paused", "other": "ready"}
    assert [answer.status_code for answer in answers] == [200] * 5
    assert nothing == []


def test_op_06_after_a_pause_nothing_leaves_and_what_runs_ends_as_it_would():
    bench, end, wire = started(stream=True, text=STREAMED.replace("[routes]", 'limits = ["600 per 60s"]\n[routes]'))
    end.data_received(STREAM_HEAD + framed(token("a")))
    bench.gate.operator.pause("up")
    sent = len(wire.written)
    shown, bench.client = bench.wire, type(bench.client)(bench.gate.front, bench.gate.sweep, bench.gate.doors, 100)
    bench.client.connection_made(type(bench.wire)())
    bench.client.data_received(request(body=b'{"model": "fast"}'))
    bench.pass_time(1_000)
    while bench.dialler.dials:
        bench.dialler.succeed()
    bench.pass_time(5_000)
    assert len(wire.written) == sent
    assert not any(other.written for _, other in bench.dialler.opened[1:])
    end.data_received(framed(token("b")) + framed(DONE) + LAST)
    assert bench.ends == ["answered"]
    assert b"".join(shown.written).endswith(DONE + b"\r\n" + LAST)


def test_one_budget_may_be_paused_alone():
    async def scene(gate, operator, client):
        operator.pause(KEYED[0])
        served = [await client.post("/chat/completions", json=SAID) for _ in range(4)]
        return [answer.headers["x-swarmgate-key-id"] for answer in served]

    assert run(scene) == ["second"] * 4


def test_llm_gateways_77_a_raised_limit_is_in_force_at_the_next_admission():
    async def scene(gate, operator, client):
        for name in KEYED:
            cell = gate.store.book.cells[name]
            cell.level = cell.limits.burst * cell.scale + 3_600_000 * cell.drain
        waiting = asyncio.ensure_future(client.post("/chat/completions", json=SAID))
        await eventually(lambda: len(gate.pump.room) == 1)
        changes = operator.limit("up/first: requests per 60s", 60_000_000)
        gate.store.book.cells[KEYED[0]].level = 0  # as after the time that the debt takes at the new rate
        operator.limit(KEYED[0], 60_000_001)
        return (await waiting), changes

    answer, (change,) = run(scene)
    assert answer.status_code == 200
    assert (change.published.amount, change.published.window_ms, change.target) == (60_000_000, 60_000, "up")
    assert change.limits.burst > 600


def test_answers_tell_the_new_limit():
    async def scene(_, operator, client):
        first = await client.post("/chat/completions", json=SAID | {"model": "n"})
        operator.limit("other", 100_000)
        return first, await client.post("/chat/completions", json=SAID | {"model": "n"})

    before, after = run(scene)
    assert "q=200000;" in before.headers["ratelimit-policy"]
    assert "q=100000;" in after.headers["ratelimit-policy"]
    assert (before.headers["x-swarmgate-limit-revision"], after.headers["x-swarmgate-limit-revision"]) == ("1", "2")


def test_a_lowered_limit_lowers_what_is_on_its_way_too():
    async def scene(gate, operator, _):
        before = gate.store.book.cells[SHARED + WAY].limits
        operator.limit(SHARED, 100)
        return before, gate.store.book.cells[SHARED].limits, gate.store.book.cells[SHARED + WAY].limits

    before, limits, way = run(scene)
    assert 2 * limits.burst + way.burst <= 100
    assert (before.revision, way.revision, way.burst < before.burst) == (1, 2, True)


def test_alike_limits_of_a_target_change_together_and_others_are_asked_for():
    async def scene(gate, operator, _):
        with pytest.raises(BadInput) as several:
            operator.limit("up", 10)
        assert all(cell.limits.revision == 1 for cell in gate.store.book.cells.values())
        return several.value, operator.limit("other", 100_000)

    several, changes = run(scene)
    assert several.field == "name"
    assert SHARED in several.reason
    assert changed(changes) == [("other: requests per 86400s", 2)]


def test_a_shorter_window_makes_tokens_old_sooner():
    async def scene(gate, operator, _):
        operator.limit(KEYED[0], 100, 1_000)
        rungs = {rung.target: rung for rung in gate.window.directory.rungs()}
        return {key: route.fresh_ms for key, route in rungs["up"].routes.items()}

    assert run(scene) == {"first": 25, "second": 25}


@pytest.mark.parametrize(
    ("name", "amount", "window_ms", "field"),
    [
        ("nobody", 10, 0, "name"),
        (SHARED + WAY, 10, 0, "name"),
        (SHARED, 0, 0, "amount"),
        (SHARED, -1, 0, "amount"),
        (SHARED, 2**60, 0, "amount"),
        (SHARED, 10, 7_200_000, "amount"),
        ("up: concurrent", 0, 0, "amount"),
        ("other: requests per 86400s", 10, 3_600_000, "name"),
    ],
)
def test_what_cannot_be_changes_nothing_and_names_its_field(name, amount, window_ms, field):
    async def scene(gate, operator, _):
        before = [(one.budget, one.limits, one.published) for one in operator.listing()]
        with pytest.raises(BadInput) as wrong:
            operator.limit(name, amount, window_ms)
        assert [(one.budget, one.limits, one.published) for one in operator.listing()] == before
        assert gate.store.book.cells[SHARED + WAY].limits.revision == 1
        return wrong.value.field

    assert run(scene) == field


@cache
def bench():
    """One gate for all examples; making one costs more than living through it."""
    return Bench(TEXT.format(port=9))


@given(
    st.lists(
        st.tuples(st.integers(0, 300), st.one_of(st.integers(1, 8), st.sampled_from((-40, -100, -400, -1_000)))),
        min_size=1,
        max_size=40,
    )
)
def test_the_old_bound_holds_until_the_change_and_the_new_one_from_then_on(history):
    gate, loop = bench().gate, bench().loop
    loop.now_s += 60
    book, operator = gate.store.book, gate.operator
    operator.limit(SHARED, 1_000)
    warm(gate)
    admitted, spans = [], [(gate.store._clock.now_ms(), book.cells[SHARED].limits)]
    for number, (wait, what) in enumerate(history):
        loop.now_s += wait / 1_000
        now = gate.store._clock.now_ms()
        if what < 0:
            operator.limit(SHARED, -what)
            spans.append((now, book.cells[SHARED].limits))
            continue
        ticket = str(number)
        take = Take(ticket, ticket, 0, first_score(0), (((SHARED, what, 0),),), 1_000, waits=False)
        if isinstance(kernel.take(book, take, now), Granted):
            admitted.append((now, what, book.cells[SHARED].limits.burst))
    for first, (since, _, _) in enumerate(admitted):
        used = 0
        for at, units, burst in admitted[first:]:
            used += units
            assert used <= burst + drained(spans, since, at)


def drained(spans, since, at):
    """Units that drain between two instants, each span at its own rate."""
    ends = [begin for begin, _ in spans[1:]] + [at]
    return sum(
        Fraction(max(0, min(end, at) - max(begin, since)) * limits.drain, limits.scale)
        for (begin, limits), end in zip(spans, ends, strict=True)
    )
