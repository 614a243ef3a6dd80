"""Another configuration for a running gate: budgets are revised, learned things stay, and a bad one changes nothing."""

import pytest
from stage import UNARY, warm, whole
from wires import Bench

from swarmgate.config import parse
from swarmgate.core.errors import BadInput
from swarmgate.core.limits import BadLimit
from swarmgate.core.outcome import Signal, classify
from swarmgate.gate.reload import kinds, reload
from swarmgate.wiring import plan

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { one = "env:KEY" }
limits = ["600 per 60s", "4 concurrent"]
[agents]
limits = ["5 per 60s"]
"""
SHARED, AGENT = "up: requests per 60s", "agent a: requests per 60s"
ANSWER = whole(UNARY)
ASK = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nx-swarmgate-agent: a\r\nx-swarmgate-wait: 0s\r\n"
    b'content-length: 27\r\n\r\n{"model":"m","messages":[]}'
)


class Running:
    """A gate and what it was told last."""

    def __init__(self, text=TEXT):
        self.bench = Bench(text)
        warm(self.bench.gate)

    @property
    def book(self):
        return self.bench.gate.store.book

    def reload(self, text, renewed=()):
        served = plan(parse(text, {"KEY": "sk-2"}), kinds(self.book))
        return reload(self.bench.gate, self.book, served, renewed).changed

    def begin(self):
        before = len(self.bench.wire.written)
        self.bench.client.data_received(ASK)
        if self.bench.dialler.dials:
            self.bench.dialler.succeed()
        return b"".join(self.bench.wire.written[before:])

    def finish(self):
        before = len(self.bench.wire.written)
        self.bench.dialler.opened[-1][0].data_received(ANSWER)
        return b"".join(self.bench.wire.written[before:])


def test_a_call_in_flight_settles_and_the_next_meets_the_new_limits():
    gate = Running()
    gate.begin()
    level = gate.book.cells[SHARED].level
    changed = gate.reload(TEXT.replace("600 per", "60 per").replace('"5 per', '"1 per'))
    assert set(changed) == {SHARED, f"{SHARED}:way", AGENT}
    assert gate.book.cells[SHARED].level == level  # what was used stays used
    assert [changed[name].revision for name in (SHARED, AGENT)] == [2, 2]
    assert gate.bench.gate.published[SHARED].amount == 60
    assert b"200 OK" in gate.finish()
    assert gate.bench.reserved == 0
    assert b"429" in gate.begin()  # the agent's one call was used before the change
    assert gate.bench.bugs == []


def test_routes_targets_and_caps_are_swapped():
    gate = Running()
    gate.begin()
    gate.finish()
    more = '[targets.two]\nbase_url = "http://127.0.0.1:8/v1"\nkeys = { k = "env:KEY" }\n[routes]\nm = "two/other"\n'
    gate.reload(TEXT.partition("[agents]")[0] + more)
    assert gate.bench.gate.desk.caps is None
    gate.begin()
    _, wire = gate.bench.dialler.opened[-1]
    assert b'"model":"other"' in wire.written[-1]
    assert b"authorization: Bearer sk-2" in wire.written[-1]
    gate.finish()
    assert gate.bench.ends == ["answered"] * 2


def test_keys_that_are_out_stay_out_unless_they_were_renewed():
    gate = Running()
    ring = gate.bench.gate.ladders.other("m")[0].ring
    gate.reload(TEXT.replace("600 per", "500 per"))
    assert gate.bench.gate.ladders.other("m")[0].ring is ring
    gate.reload(TEXT, renewed=["up"])
    assert gate.bench.gate.ladders.other("m")[0].ring is not ring


def rings_of(gate, *models):
    return [gate.bench.gate.ladders.ladders[model][0].ring for model in models]


@pytest.mark.parametrize("provider", ["", 'provider = "moonshot"\n'], ids=["apart", "together"])
def test_a_model_that_is_new_at_a_target_knows_what_is_known_of_its_keys(provider):
    text = TEXT.replace("[agents]", provider + "[agents]")
    gate = Running(text + '[routes]\nm = "up/m"\n')
    (before,) = rings_of(gate, "m")
    before.observe("one", classify(Signal(429)), 1, 2)
    gate.reload(text + '[routes]\nn = "up/n"\nm = ["up/m"]\nagain = ["up/n", "up/m"]\n')
    m, n, again = rings_of(gate, "m", "n", "again")
    assert m is before
    assert n is again
    assert n.ready(3) is not bool(provider)  # a 429 is the model's own, where its provider counts models apart
    m.observe("one", classify(Signal(401)), 4, 5)
    assert n.back_at_ms(6) is None
    gate.reload(text + '[routes]\nl = "up/l"\n')
    assert rings_of(gate, "l")[0].back_at_ms(7) is None
    gate.reload(text + '[routes]\nl = "up/l"\n', renewed=["up"])
    assert rings_of(gate, "l")[0].ready(8)


def test_another_way_to_count_begins_anew():
    routes = '[routes]\nm = "up/m"\nn = "up/n"\n'
    gate = Running(TEXT + routes)
    gate.reload(TEXT.replace("[agents]", 'provider = "moonshot"\n[agents]') + routes)
    m, n = rings_of(gate, "m", "n")
    assert m is n


def test_the_same_again_changes_nothing():
    assert Running().reload(TEXT) == {}


def test_a_paused_budget_stays_paused():
    gate = Running()
    gate.bench.gate.operator.pause(SHARED)
    changed = gate.reload(TEXT.replace("600 per", "60 per"))
    assert changed[SHARED].paused
    assert changed[SHARED].revision == 3


def test_what_cannot_change_changes_nothing():
    gate = Running()
    before = {name: cell.limits for name, cell in gate.book.cells.items()}
    ladders = gate.bench.gate.ladders.ladders
    with pytest.raises(BadLimit):  # it would need slots, and a bucket is in use
        gate.reload(TEXT.replace("600 per", "2 per"))
    assert {name: cell.limits for name, cell in gate.book.cells.items()} == before
    assert gate.bench.gate.ladders.ladders == ladders


def test_a_budget_of_another_shape_is_refused_by_name():
    gate = Running()
    served = plan(parse(TEXT.replace("600 per", "2 per"), {"KEY": "sk-2"}))
    with pytest.raises(BadInput) as caught:
        reload(gate.bench.gate, gate.book, served)
    assert caught.value.field == SHARED


def test_planners_operators_and_unread_paths_see_what_is_served_now():
    gate = Running()
    inside = gate.bench.gate
    directory = inside.window.directory
    gate.reload(TEXT.replace("targets.up", "targets.two").replace(":9/v1", ":8/v1"))
    (rung,) = directory.rungs()
    assert rung is inside.ladders.other("m")[0]
    assert directory.owner("two: requests per 60s").target == "two"
    warm(inside)
    gate.bench.client.data_received(b"GET /v1/files HTTP/1.1\r\nhost: g\r\n\r\n")
    gate.bench.dialler.succeed()
    _, wire = gate.bench.dialler.opened[-1]
    assert b"host: 127.0.0.1:8\r\n" in wire.written[-1]


def test_what_a_person_mended_is_tried_again():
    gate = Running()
    ring = gate.bench.gate.ladders.other("m")[0].ring
    ring.observe("one", classify(Signal(status=402)), 1, 2)
    assert not ring.ready(3)
    gate.bench.gate.operator.resume("up")
    assert ring.ready(3)
