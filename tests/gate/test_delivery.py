"""Whether requests have arrived is asked seldom: not of those that are answered at once, and not for long."""

import pytest
from wires import Loop

from records import a_call
from swarmgate.core.events import DELIVERED
from swarmgate.gate.delivery import LOOK_AGAIN_S, Deliveries


class Sent:
    """A send of which the system says, look by look, whether it has arrived."""

    def __init__(self, *arrived):
        self.arrived = list(arrived)
        self.asked = 0
        self.end = object()
        self.call = a_call()
        self.call.wire = self

    def is_delivered(self):
        self.asked += 1
        return self.arrived.pop(0)


class Bench:
    def __init__(self):
        self.loop, self.fired = Loop(), []
        self.deliveries = Deliveries(self.loop, lambda call, event: self.fired.append((call, event)))

    def look(self):
        (alarm,) = self.loop.alarms
        self.loop.alarms.clear()
        self.loop.now_s += LOOK_AGAIN_S
        assert alarm.at_s == pytest.approx(self.loop.now_s)
        alarm.act()


def test_what_is_answered_within_a_look_is_never_asked_about():
    bench, quick = Bench(), Sent()
    bench.deliveries.watch(quick)
    bench.look()
    quick.end = None
    bench.look()
    assert (quick.asked, bench.fired, bench.loop.alarms) == (0, [], [])


def test_what_waits_is_asked_about_until_it_has_arrived_and_told_once():
    bench, slow, fast = Bench(), Sent(False, False, True), Sent(True)
    bench.deliveries.watch(slow)
    bench.look()
    bench.deliveries.watch(fast)
    for _ in range(3):
        bench.look()
    assert (slow.asked, fast.asked) == (3, 1)
    assert bench.fired == [(fast.call, DELIVERED), (slow.call, DELIVERED)]
    assert bench.loop.alarms == []
    bench.deliveries.watch(Sent())
    assert len(bench.loop.alarms) == 1


@pytest.mark.parametrize("arrived", [None, True])
def test_a_call_that_has_gone_on_hears_nothing(arrived):
    bench, sent = Bench(), Sent(arrived)
    bench.deliveries.watch(sent)
    bench.look()
    sent.call.wire = None
    bench.look()
    assert (sent.asked, bench.fired, bench.loop.alarms) == (1, [], [])
