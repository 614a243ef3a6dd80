"""A long plan is found and made a little at a time, and what is wrong in it is told whenever it is met."""

import json
from collections import deque
from types import SimpleNamespace

from swarmgate.core.book import Book
from swarmgate.core.errors import BadInput
from swarmgate.core.planning import Way
from swarmgate.core.scope import NOBODY, Scope
from swarmgate.gate.view.plans import FINDS_A_TURN, MOST_OF_ONE, MOST_STEPS, MOST_WAITING, Plans, StepWays


class Turns(deque):
    """A loop's turns, made one by one."""

    call_soon = deque.append

    def __init__(self):
        super().__init__()
        self.now_s = 0.0
        self.begins_s = []

    def time(self):
        return self.now_s

    def call_at(self, at_s, act):
        self.now_s = max(self.now_s, at_s)
        self.begins_s.append(self.now_s)
        self.append(act)


class Finder:
    """Counts; the step `wrong` leads nowhere."""

    def __init__(self):
        self.found = 0

    def find(self, asked, _viewer):
        self.found += 1
        if asked.id == "wrong":
            raise BadInput("model", "has no route")
        return StepWays("t", (Way((), ()),), ("",))


class End:
    """What is answered."""

    def __init__(self):
        self.answers = []

    def respond(self, status, _headers, body):
        self.answers.append((status, json.loads(body)))


HEAD = SimpleNamespace(content_length=2, fields={})


def plan(*ids):
    turns, finder, end = Turns(), Finder(), End()
    request = Plans(turns, Book(0), lambda: 0, finder).begin(end, HEAD, {}, NOBODY)
    request.on_body(json.dumps({"steps": [{"id": one, "model": "m"} for one in ids]}).encode())
    request.complete()
    while turns:
        before = finder.found
        turns.popleft()()
        assert finder.found - before <= FINDS_A_TURN
    (answer,) = end.answers
    return answer


def test_ov_20_others_have_their_turns_while_a_plan_is_made():
    status, said = plan(*map(str, range(MOST_STEPS)))
    assert status == 200
    assert len(said["order"]) == MOST_STEPS


def test_a_step_that_leads_nowhere_is_named_wherever_it_stands():
    status, said = plan(*map(str, range(50)), "wrong", "51")
    assert (status, said["error"]["param"]) == (400, "steps[50].model")


def asked_by(plans, end, name, viewer=NOBODY):
    head = SimpleNamespace(content_length=2, fields={b"x-swarmgate-agent": name} if name else {})
    request = plans.begin(end, head, {}, viewer)
    request.on_body(b'{"steps": [{"id": "1", "model": "m"}]}')
    request.complete()


def test_one_caller_cannot_hold_every_place():
    turns, greedy, others = Turns(), End(), End()
    plans = Plans(turns, Book(0), lambda: 0, Finder())
    for _ in range(MOST_WAITING):
        asked_by(plans, greedy, b"greedy")
    assert [status for status, _ in greedy.answers] == [503] * (MOST_WAITING - MOST_OF_ONE)
    assert "4 plans of this caller" in greedy.answers[0][1]["error"]["message"]
    for name in (b"", b"a", b"b"):
        for _ in range(MOST_OF_ONE):
            asked_by(plans, others, name)
    assert others.answers == []
    asked_by(plans, others, b"c")
    assert "16 plans" in others.answers.pop()[1]["error"]["message"]
    while turns:
        turns.popleft()()
    assert [status for status, _ in others.answers] == [200] * 3 * MOST_OF_ONE


def test_whoever_shows_a_key_is_its_key_whatever_it_says():
    end = End()
    plans = Plans(Turns(), Book(0), lambda: 0, Finder())
    for number in range(MOST_OF_ONE + 1):
        asked_by(plans, end, b"a%d" % number, Scope("k1"))
    assert [status for status, _ in end.answers] == [503]


def test_plans_back_to_back_get_a_quarter_of_the_loop():
    turns, end = Turns(), End()
    plans = Plans(turns, Book(0), lambda: 0, Finder())
    for number in range(5):
        head = SimpleNamespace(content_length=2, fields={b"x-swarmgate-agent": b"%d" % number})
        request = plans.begin(end, head, {}, NOBODY)
        request.on_body(json.dumps({"steps": [{"id": str(one), "model": "m"} for one in range(40)]}).encode())
        request.complete()
    worked_s = 0.0
    while turns:
        turns.now_s += 0.001
        worked_s += 0.001
        turns.popleft()()
    assert len(end.answers) == len(turns.begins_s) == 5
    whole_s = turns.begins_s[-1] - turns.begins_s[0]
    assert 0.2 <= worked_s * 4 / 5 / whole_s <= 0.3
