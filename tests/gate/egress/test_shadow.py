"""Policies that only watch: what each would have held back, in every unit, and where people see it."""

import asyncio

from outside import FAST, Caller, stage, to, whole

from eventually import eventually
from swarmgate import config
from swarmgate.wiring.egress import egress_plan

WATCH = '{}\n[policies.a]\nhosts = ["a.org"]\nlimits = ["{}"]\nheadroom = 100\nmode = "shadow"\n'


def run(act, limits, reply=lambda _hit: whole(), before=FAST):
    async def play():
        async with stage(reply, WATCH.format(before, limits)) as on:
            return await act(on)

    return asyncio.run(play())


def seen(on):
    (one,) = on.gate.egress.desk.shadow.seen()
    return one.passed, one.held_back


async def side_by_side(on, number):
    """So many requests, each sent while those before it have no answer yet."""
    callers = [Caller(on.caller.port) for _ in range(number)]
    asking = []
    for at, caller in enumerate(callers, 1):
        asking.append(asyncio.ensure_future(caller.ask("GET", to("http://a.org/"))))
        await eventually(lambda at=at: len(on.world.hits) == at)
    return callers, asking


def test_it_tells_who_would_have_been_too_many_at_once():
    async def act(on):
        callers, asking = await side_by_side(on, 5)
        during = seen(on)
        for writer in on.world.writers:
            writer.write(whole()[9:])
        statuses = [(await one).status for one in asking]
        for caller in callers:
            caller.close()
        on.world.reply = lambda _hit: whole()
        await on.get("http://a.org/")
        return during, statuses, seen(on)

    during, statuses, after = run(act, "2 concurrent", lambda _hit: whole()[:9])
    assert statuses == [200] * 5
    assert during == (2, 3)
    assert after == (3, 3)  # the places of those that ended are free


def test_a_caller_who_leaves_frees_its_place():
    async def act(on):
        callers, asking = await side_by_side(on, 2)
        for caller, one in zip(callers, asking, strict=True):
            one.cancel()
            caller.close()
        await eventually(lambda: not on.gate.pump.open)
        on.world.reply = lambda _hit: whole()
        await on.get("http://a.org/")
        return seen(on)

    assert run(act, "2 concurrent", lambda _hit: whole()[:9]) == (3, 0)


def test_it_charges_an_answer_s_bytes_as_they_were():
    async def act(on):
        for _ in range(5):
            await on.get("http://a.org/")
        return seen(on)

    passed, held_back = run(act, "900_000 bytes per 1h", lambda _hit: whole(body=bytes(250_000)))
    assert (passed, held_back) == (3, 2)  # a quarter is kept for P0


def test_what_something_else_holds_back_was_not_sent():
    text = FAST + '[policies.d]\ndomains = ["a.org"]\nlimits = ["1 per 1h"]\nheadroom = 100\n'

    async def act(on):
        statuses = [(await on.get("http://a.org/", x_swarmgate_wait="0s")).status for _ in range(3)]
        return statuses, seen(on)

    assert run(act, "1 per 1h", before=text) == ([200, 429, 429], (1, 0))


def test_a_reload_begins_anew_where_the_limit_is_another():
    async def act(on):
        counts = []
        for limits in ("1 per 1h", "1 per 1h", "3 per 1h"):
            on.gate.egress.replace(egress_plan(config.parse(WATCH.format(FAST, limits), {})))
            await on.get("http://a.org/")
            counts.append(seen(on))
        return counts

    assert run(act, "1 per 1h") == [(1, 0), (1, 1), (2, 1)]


def test_planners_see_it():
    async def act(on):
        for _ in range(3):
            await on.get("http://a.org/")
        return (await on.caller.ask("GET", "/swarmgate/v1/budgets")).said["watching"]

    (row,) = run(act, "1 per 1h", before=FAST)
    assert row == {
        "policy": "a",
        "passed": 1,
        "held_back": 2,
        "budgets": [
            {
                "budget": "a: requests per 3600s",
                "unit": "requests",
                "limit": 1,
                "window_ms": 3_600_000,
                "held_back": 2,
            }
        ],
    }
