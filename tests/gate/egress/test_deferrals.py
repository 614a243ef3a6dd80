"""The promise of a deferral, at the budgets that hosts really have: a repeat at `not_before` is admitted."""

import asyncio
from random import Random

from outside import Caller, stage, to, whole
from test_hosts import hosts

from eventually import eventually
from swarmgate.core.answers import BlockKind, Denied, Granted
from swarmgate.core.book import Take
from swarmgate.core.record import Call
from swarmgate.core.target import parse_target
from swarmgate.core.waiting import Room

POLICIES = """
[egress]
presets = "high"
[policies.steady]
hosts = ["steady.org"]
limits = ["30 per 1m", "500 per 1h"]
gap = "700ms"
[policies.points]
hosts = ["points.org"]
limits = ["90 points per 1m"]
[policies.points.classes.dear]
paths = ["/dear*"]
points = 9
[policies.bytes]
hosts = ["bytes.org"]
limits = ["10 per 1s", "2_000_000 bytes per 1m"]
[policies.owner]
domains = ["owned.org"]
limits = ["100 per 1m"]
"""
URLS = [
    "https://unknown.org/",
    "https://a.unknown.org/",
    "https://steady.org/",
    "https://points.org/",
    "https://points.org/dear",
    "https://bytes.org/",
    "https://x.owned.org/",
    "https://api.crossref.org/works/10.1",
    "https://www.sec.gov/",
    "https://zenodo.org/api/records",
]


def test_a_repeat_at_not_before_is_admitted():
    """1,000 deferrals blocked by time alone, with random use before each; event-blocked ones only say so."""
    made, dice, answers = hosts(POLICIES), Random(7), []
    made.store.fire = lambda _call, answer: answers.append(answer)
    timed = events = number = 0

    def ask(url, rank):
        nonlocal number
        number += 1
        parsed = parse_target(url)
        rung = made.place(parsed.target, "GET", parsed.path).rung
        (route,) = rung.routes.values()
        call = Call(f"c{number}", (rung,), Room(), rank=rank, arrived_ms=made.clock.at_ms)
        demands = route.demands(dice.choice([0, 2_000]), 10_000)
        made.store.take(call, Take(call.id, call.id, rank, call.score, (demands,), 60_000, waits=False))
        answer = answers.pop()
        if isinstance(answer, Granted):
            used = tuple((name, 10_000, dice.randrange(20_000)) for name in route.budgets())
            made.store.settle(call.id, used, last=True)
        return answer

    while timed < 1_000:
        made.clock.at_ms += dice.randrange(4_000)
        url, rank = dice.choice(URLS), dice.randrange(3)
        answer = ask(url, rank)
        if not isinstance(answer, Denied):
            continue
        if answer.kind is not BlockKind.TIME:
            events += 1
            assert answer.certain_ms >= answer.not_before_ms
            continue
        made.clock.at_ms += answer.not_before_ms - answer.now_ms
        timed += 1
        again = ask(url, rank)
        assert isinstance(again, Granted), (url, rank, answer, again)
    assert events < timed


def test_a_thousand_deferred_at_one_host_do_not_delay_ten_at_another():
    async def act():
        text = '[policies.slow]\nhosts = ["a.org"]\nlimits = ["1 per 1h"]\nheadroom = 100\n[policies.free]\nhosts = ["b.org"]\nlimits = ["10_000 per 1s"]\n'
        async with stage(lambda _hit: whole(), text=text) as on:
            assert (await on.get("http://a.org/")).status == 200
            waiting = [Caller(on.caller.port) for _ in range(1_000)]
            patient = {"x-swarmgate-wait": "60s"}
            asked = [asyncio.ensure_future(one.ask("GET", to("http://a.org/"), patient)) for one in waiting]
            await eventually(lambda: len(on.gate.pump.open) == 1_000, 20)
            others = [Caller(on.caller.port) for _ in range(10)]
            answers = await asyncio.gather(*[one.ask("GET", to("http://b.org/")) for one in others])
            still = len(on.gate.pump.open)  # how soon is for benchmarks/bench_ready.py
            for task in asked:
                task.cancel()
            for one in (*waiting, *others):
                one.close()
            await eventually(lambda: not on.gate.pump.open, 20)
            return [one.status for one in answers], still, len([hit for hit in on.world.hits if hit.host == "a.org"])

    statuses, still, hits = asyncio.run(act())
    assert statuses == [200] * 10
    assert (hits, still) == (1, 1_000)


def test_a_deferral_uses_no_retry_and_its_ticket_keeps_its_place():
    async def act():
        text = '[policies.slow]\nhosts = ["a.org"]\nlimits = ["1 per 1s"]\n'
        async with stage(text=text) as on:
            await on.get("http://a.org/")
            early, late = await on.get("http://a.org/"), await on.get("http://a.org/")
            tickets = [one.said["deferral"]["ticket"] for one in (early, late)]
            callers = [Caller(on.caller.port) for _ in range(2)]
            asked = [
                one.ask("GET", to(f"http://a.org/{name}"), {"x-swarmgate-ticket": ticket, "x-swarmgate-wait": "9s"})
                for one, name, ticket in zip(callers, ("late", "early"), reversed(tickets), strict=True)
            ]
            answers = await asyncio.gather(*asked)
            for one in callers:
                one.close()
            return [one.status for one in answers], [hit.path for hit in on.world.hits]

    statuses, paths = asyncio.run(act())
    assert statuses == [200, 200]
    assert paths == ["/", "/early", "/late"]


def test_what_is_learned_beside_a_limit_is_told_in_units_that_people_count_by():
    text = '[egress]\npresets = "off"\n[policies.papers]\nhosts = ["a.org"]\nlimits = ["3 per 10s"]\n'

    async def play():
        async with stage(text=text) as on:
            return [await on.get("http://a.org/") for _ in range(4)][-1]

    blocking = asyncio.run(play()).said["deferral"]["blocking"]
    assert {one["budget"]: (one["limit"], one["window_ms"]) for one in blocking} == {
        "papers: requests per 10s": (3, 10_000),
        "papers: requests per 10s:learned:rate": (3, 10_000),
    }
