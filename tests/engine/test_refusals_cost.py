"""OV-12: what is refused while a store or a target is down costs no more than what is answered, in Python calls."""

from itertools import repeat

import pytest

from life import Life, World, route, rung
from python_calls import entered
from swarmgate.core.commands import End
from swarmgate.core.outcome import Signal, classify
from swarmgate.core.target_ring import ONLY_KEY, TargetRing
from swarmgate.engine.guard import PROBE_MS, Guard, OutageMode

AT_ONCE = Life(wire_ms=0)


def one_more(world, rungs, how):
    """What the newest of three calls in a row costs from its arrival to its end."""
    for number in range(2):
        world.call(f"before {number}", AT_ONCE, rungs=rungs, wait_until_ms=0)
    found = []
    codes = entered(lambda: found.append(world.call("counted", AT_ONCE, rungs=rungs, wait_until_ms=0)))
    assert found[0].end is how
    return len(codes)


def answered():
    return one_more(World(), (rung(),), End.ANSWERED)


def store_lost(mode):
    """A store of which it is known that it is lost, and that was tried just now."""
    world = World(delays=repeat(150))
    guard = Guard(world.store, world.time, 1)
    world.store.fire, guard.fire = guard.heard, world.pump.fire
    guard.limits = {name: cell.limits for name, cell in world.book.cells.items()}
    guard.modes = dict.fromkeys(guard.limits, OutageMode(mode))
    world.pump.attach(guard, world.wire, world, world)
    world.call("first", wait_until_ms=0)
    world.run(PROBE_MS - 1)
    assert guard.lost
    return one_more(world, (rung(),), End.DEFERRED)


def target_down():
    """A host whose circuit is open."""
    world = World()
    only = route(ONLY_KEY)
    host = rung("t", only)._replace(routes={ONLY_KEY: only}, ring=TargetRing())
    failed = classify(Signal(500))
    for _ in range(30):
        host.ring.observe(ONLY_KEY, failed, world.time.now_ms(), world.time.now_ms())
    assert not host.ring.ready(world.time.now_ms())
    return one_more(world, (host,), End.DEFERRED)


@pytest.mark.parametrize(
    "refused", [lambda: store_lost("closed"), target_down], ids=["the store is lost", "the target is down"]
)
def test_ov_12_a_refusal_costs_no_more_than_an_answer(refused):
    assert refused() <= answered()
