"""A rung whose sends mostly fail rests: the next one serves meanwhile, and a probe finds out when it is back."""

import pytest

from life import BROKEN, FAILS, OK, OVERLOADED, REFUSES, SLOT, Life, World, rung, slot_only
from swarmgate.core.circuit import FEWEST_RESULTS, FIRST_OPEN_MS, Circuit
from swarmgate.core.commands import End
from swarmgate.core.reasons import Reason
from swarmgate.core.rung_breaker import RungBreaker
from swarmgate.core.rungs import Tried


def ladder(*targets):
    return tuple(rung(name, slot_only(slot=f"slot {name}"))._replace(breaker=RungBreaker()) for name in targets)


def world_of(*targets):
    return World({f"slot {name}": SLOT for name in targets})


def fail(rungs, place=0, event=OVERLOADED, many=FEWEST_RESULTS):
    for _ in range(many):
        rungs[place].breaker.observe(event.outcome, 0, 1_000_000, 1_000_000)


def test_llm_gateways_13_a_rung_that_failed_twenty_times_is_not_called_until_a_probe_succeeds():
    rungs, world = ladder("t", "u"), world_of("t", "u")
    lives = [Life(sends=(((5, OVERLOADED),),))] * FEWEST_RESULTS + [Life()] * 10  # these stand behind them
    calls = [world.call(f"x{number}", life, rungs=rungs) for number, life in enumerate(lives)]
    world.run(1_000)
    assert {(call.end, call.rung) for call in calls} == {(End.ANSWERED, 1)}
    assert sum(target == "t" for _, target, _, _ in world.wire.seen) == FEWEST_RESULTS
    later = world.call("later", rungs=rungs)
    world.run(100)
    assert (later.end, later.rung, later.trail) == (End.ANSWERED, 1, (Tried(0, Reason.TARGET_BROKEN),))
    world.time.run(world.time.now_ms() + FIRST_OPEN_MS)
    probe, beside = world.call("probe", rungs=rungs), world.call("beside", rungs=rungs)
    world.run(100)
    assert (probe.end, probe.rung) == (End.ANSWERED, 0)
    assert beside.rung == 1
    assert rungs[0].breaker.by_size[0].state is Circuit.CLOSED
    assert world.call("again", rungs=rungs).rung == 0


def test_what_waits_to_try_again_there_goes_on_too():
    rungs, world = ladder("t", "u"), world_of("t", "u")
    call = world.call("x", Life(sends=(((5, FAILS),),)), rungs=rungs)
    world.run(20)
    fail(rungs)
    world.run(5_000)
    assert (call.end, call.rung) == (End.ANSWERED, 1)
    assert [target for _, target, _, _ in world.wire.seen] == ["t", "u"]


@pytest.mark.parametrize("event", [REFUSES, OK])
def test_refusals_and_answers_break_nothing(event):
    rungs = ladder("t", "u")
    fail(rungs, event=event, many=10 * FEWEST_RESULTS)
    assert rungs[0].breaker.by_size[0].state is Circuit.CLOSED


def test_where_nothing_below_is_well_the_first_is_tried_as_ever():
    rungs, world = ladder("t", "u"), world_of("t", "u")
    fail(rungs, 0)
    fail(rungs, 1)
    assert world.call("x", rungs=rungs).rung == 0
    alone = ladder("t")
    fail(alone)
    assert world.call("y", rungs=alone).rung == 0


def test_a_last_rung_that_broke_once_is_well_again_by_what_is_sent_to_it():
    """It is sent to without asking, so nothing was its probe: it stayed broken for good, and no rung above it was passed over."""
    rungs, world = ladder("t", "u"), world_of("t", "u")
    fail(rungs, 0)
    fail(rungs, 1)
    world.time.run(world.time.now_ms() + FIRST_OPEN_MS)
    call = world.call("x", Life(sends=(((5, OVERLOADED),),)), rungs=rungs)
    world.run(100)
    assert (call.end, call.rung) == (End.ANSWERED, 1)
    assert rungs[1].breaker.by_size[0].state is Circuit.CLOSED
    assert world.call("y", rungs=rungs).trail == (Tried(0, Reason.TARGET_BROKEN),)


def test_a_write_that_has_left_goes_nowhere_else():
    rungs, world = ladder("t", "u"), world_of("t", "u")
    fail(rungs, many=FEWEST_RESULTS - 1)
    call = world.call("x", Life(sends=(((5, BROKEN),),)), rungs=rungs)
    call.effect = call.effect.WRITE
    world.run(5_000)
    assert (call.end, call.rung) == (End.UNKNOWN_EFFECT, 0)
