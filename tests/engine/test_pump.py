"""The pump: order without recursion, one alarm for everybody, a bug in one call is no one else's, deadlines."""

import pytest

from life import OK, Life, World, route, rung
from swarmgate.core.commands import End
from swarmgate.core.events import CLIENT_LEFT
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.record import State
from swarmgate.engine.pump import Pump

FREE = (rung("free", route(fixed=(), metered=(), whole=())),)
SLOT = (rung("slot", route(fixed=(("slot", 0, 1),), metered=())),)
AT_ONCE = Life(sends=(((0, OK),),), wire_ms=0)


class Alarm:
    """ports.Timer that only remembers."""

    def __init__(self):
        self.armed = []

    def arm(self, at_ms):
        self.armed.append(at_ms)


def test_a_long_chain_of_wake_ups_needs_no_stack():
    world = World()
    holder = world.call("holder", Life(sends=((),)), rungs=SLOT)
    world.run(20)
    calls = [world.call(f"c{number}", AT_ONCE, rungs=SLOT) for number in range(3_000)]
    assert {call.state for call in calls} == {State.WAITING}
    world.pump.fire(holder, CLIENT_LEFT)
    assert {call.end for call in calls} == {End.ANSWERED}
    world.check_clean()


def test_events_fired_by_adapters_wait_for_their_turn():
    world = World()
    world.call("x", AT_ONCE, rungs=FREE)
    states = [(before.value, after.value) for _, before, _, after in world.pump.happened]
    assert states == [("new", "connecting"), ("connecting", "asking"), ("asking", "sending"), ("sending", "ended")]


def test_a_bug_in_one_call_stops_no_other():
    world = World()
    failed = []
    world.pump.failed = lambda call, bug: failed.append((call.id, bug))
    relay, world.relay = world.relay, None
    world.pump.attach(world.store, world.wire, world, world)
    broken = world.call("broken", AT_ONCE, rungs=FREE)
    assert [name for name, _ in failed] == ["broken"]
    world.relay = relay
    world.pump.attach(world.store, world.wire, world, world)
    fine = world.call("fine", AT_ONCE, rungs=FREE)
    assert broken.id not in world.answers
    assert fine.end is End.ANSWERED


def test_the_alarm_is_armed_when_the_first_instant_moves_and_else_left_alone():
    world = World()
    alarm = Alarm()
    world.pump._timer = alarm
    world.call("holder", Life(sends=((),)), rungs=SLOT)
    world.run(20)
    first = world.call("first", Life(wire_ms=0), rungs=SLOT)
    assert alarm.armed == [world.time.now_ms() + 250]
    world.call("second", Life(wire_ms=0), rungs=SLOT)
    assert len(alarm.armed) == 1
    world.pump.ring()
    assert alarm.armed == [world.time.now_ms() + 250] * 2  # it rang too early: again
    world.time.run(world.time.now_ms() + 250)
    world.pump.ring()
    assert alarm.armed[-1] > world.time.now_ms()
    assert first.state is State.WAITING


@pytest.mark.parametrize(("deadline_ms", "how"), [(1_000_600, End.FAILED), (1_009_000, None)])
def test_the_sweep_ends_what_is_over(deadline_ms, how):
    world = World()
    call = world.call("x", Life(sends=((),)), rungs=FREE, deadline_ms=deadline_ms)
    world.run(800)
    assert call.end is how
    assert (call in world.pump.open) == (how is None)


def test_open_holds_exactly_what_has_not_ended():
    world = World({"slot": Limits(BudgetKind.LEASES, burst=1)})
    assert isinstance(world.pump, Pump)
    calls = [world.call(f"c{number}", rungs=SLOT) for number in range(5)]
    assert list(world.pump.open) == calls
    world.run()
    assert not world.pump.open
