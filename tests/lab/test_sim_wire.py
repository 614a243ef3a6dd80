"""The simulated network: connections lead where they were dialled, whatever rung the call is at since."""

from random import Random
from types import SimpleNamespace

import pytest

from swarmgate.core.events import READY, Lost, LostKind
from swarmgate.lab.faults import Fault
from swarmgate.lab.scenario import SlidingLogLimit, Target
from swarmgate.lab.sim.target import Request, SimTarget
from swarmgate.lab.sim.virtual_time import VirtualTime
from swarmgate.lab.sim.weather import Weather
from swarmgate.lab.sim.wire import SimWire

LIMIT = SlidingLogLimit(kind="sliding_log", limit=10, window_ms=1_000)


class Net:
    def __init__(self, *faults):
        self.time = VirtualTime()
        weather = Weather(faults, self.time, Random(1))
        targets = {name: SimTarget(Target(name=name, limits=(LIMIT,)), self.time, Random(2)) for name in ("a", "b")}
        self.wire = SimWire(self.time, weather, Random(3), targets, lambda _: Request("c/1#1", 1, 0, 1, 1, 1))
        self.heard = []
        self.wire.bind(lambda _call, event: self.heard.append(event), self.time.at)
        rungs = tuple(SimpleNamespace(target=name) for name in targets)
        self.call = SimpleNamespace(id="c", rungs=rungs, rung=0, attempt=0, end=None, wire=None, route=None)
        self.call = type("Call", (), {**vars(self.call), "__hash__": object.__hash__})()

    def connect(self):
        self.wire.connect(self.call)
        self.time.run(self.time.now_ms() + 1_000)


def test_a_parked_connection_belongs_to_the_target_that_it_leads_to():
    net = Net()
    net.connect()
    net.call.rung = 1
    net.wire.park(net.call)
    assert net.wire.idle == {"a": 1, "b": 0}
    net.wire.park(net.call)
    assert net.wire.idle == {"a": 1, "b": 0}


@pytest.mark.parametrize("kept", [False, True])
def test_only_a_kept_connection_can_be_stale(kept):
    net = Net(Fault("stale", 0, 10_000, "a", 1_000))
    net.connect()
    if kept:
        net.wire.park(net.call)
        net.connect()
    net.wire.send(net.call)
    assert net.heard[-1] == (Lost(LostKind.STALE, sent=False) if kept else READY)


def test_what_a_dead_process_had_open_ends_at_the_target():
    net = Net()
    net.connect()
    net.wire.send(net.call)
    target = net.wire.targets["a"]
    while not target.witnesses[0].arrivals:
        net.time.run(net.time.now_ms() + 1)
    net.wire.cut()
    net.time.run(net.time.now_ms() + target.settings.one_way_ms + 1)
    assert target.witnesses[0].in_progress_ms(0, net.time.now_ms()) <= target.settings.one_way_ms + 2
