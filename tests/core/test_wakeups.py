"""Whoever could run is asked, wherever it stands in its line and whatever it was told, and a crowd is not asked for that (P5)."""

from dataclasses import replace
from itertools import repeat

import pytest

from life import OK, Life, World, route, rung
from swarmgate.core.commands import End
from swarmgate.core.limits import BudgetKind, Limits

TOKENS = Limits(BudgetKind.LEVEL, burst=100, quota=10, window_ms=1_000)
SLOW = replace(TOKENS, quota=1, window_ms=10_000)
RARE = Limits(BudgetKind.LEVEL, burst=1, quota=1, window_ms=60_000)
FOR_ALL = (rung("t", route("k", (), ("tokens",), whole=())),)
AND_RARE = (rung("t", route("k", (("rare", 1, 0),), ("tokens",), whole=())),)


def sent_after_ms(world, call):
    return {name: at_ms for name, *_, at_ms in world.wire.seen}.get(call.id, 10**12) - call.arrived_ms


def answers(used, after_ms=5):
    return Life(sends=(((after_ms, OK._replace(used=used)),),))


def waiting_behind(world):
    """Three wait for the rare budget, until long after there are tokens for them; a small one behind them for tokens alone."""
    world.call("all", answers(0), rungs=AND_RARE, prompt=100, reserve=0)
    for number in range(3):
        world.call(f"b{number}", rungs=AND_RARE, agent=f"b{number}", after_ms=20, prompt=40, reserve=0)
    return world.call("small", rungs=FOR_ALL, agent="small", after_ms=40, prompt=10, reserve=0)


def test_who_could_pass_those_before_it_does_not_sleep_until_its_turn_is_guessed():
    world = World({"tokens": TOKENS, "rare": RARE})
    small = waiting_behind(world)
    world.run(10_000)
    assert sent_after_ms(world, small) <= 1_000


@pytest.mark.parametrize("delays", [None, 1])
def test_who_waits_for_time_hears_of_a_reservation_that_ended(delays):
    """It was told three seconds, since 40 units were reserved that were never used."""
    world = World({"tokens": TOKENS}, delays=delays and repeat(delays))
    world.call("long", answers(1, 300), rungs=FOR_ALL, prompt=30, reserve=40)
    call = world.call("x", rungs=FOR_ALL, after_ms=20, prompt=20, reserve=40)
    world.run(10_000)
    assert call.end is End.ANSWERED
    assert sent_after_ms(world, call) <= 600


def test_a_raised_limit_reaches_who_is_behind_those_that_it_does_not_help():
    world = World({"tokens": SLOW, "rare": RARE})
    small = waiting_behind(world)
    world.run(2_000)
    assert sent_after_ms(world, small) > 60_000
    world.pump.revise("tokens", 1, replace(TOKENS, revision=2), lambda _: None)
    world.run(4_000)
    assert sent_after_ms(world, small) <= 4_000


def test_a_crowd_that_shares_its_keys_is_not_asked_for_that():
    """As in a line of one budget: each once in five seconds, and twice more whoever is served."""
    keys = [f"k{number}" for number in range(4)]
    limits = Limits(BudgetKind.LEVEL, burst=40, quota=20, window_ms=1_000, line="keys", sharing=4)
    world = World(dict.fromkeys(keys, limits), lines=dict.fromkeys(keys, "keys"))
    way = rung("t", *[route(key, (), (key,), whole=()) for key in keys])
    calls = [
        world.call(f"c{n}", rungs=(way,), agent=f"a{n}", wait_until_ms=1_200_000, prompt=2 + n % 7, reserve=n % 5)
        for n in range(400)
    ]
    world.run(5_000)
    asked, served = (sum(call.asks for call in calls), sum(call.attempt for call in calls))
    world.run(10_000)
    asked, served = sum(call.asks for call in calls) - asked, sum(call.attempt for call in calls) - served
    assert served >= 90
    assert asked <= 400 * 2 + 2 * served
