"""One call may ask for many answers: all of them are reserved, in tokens and in money, and teach as many (P1, LG-11)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage import STREAM_HEAD, UNARY, framed, token, warm, whole
from wires import Bench, Wire

from swarmgate.core.estimate import FIRST_TOKENS, Charge, OutputEstimate, charged
from swarmgate.gate.peek import MOST_ANSWERS

LIMIT = 32_000  # what "40_000 tokens per 60s" yields at most, at 80 %
TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = {{ one = "env:KEY" }}
key_limits = ["{limit}"]
largest_tokens = 9_000
{more}
"""
PRICE = """
[prices.m]
input = 1
output = 10
"""
CHAT, TEXTS = "chat/completions", "completions"


class Agents:
    """Callers with a connection each; what each has asked for stands at the target until it is answered."""

    def __init__(self, limit="40_000 tokens per 60s", more=""):
        self.bench = Bench(TEXT.format(limit=limit, more=more))
        warm(self.bench.gate)
        self.wires = []

    def ask(self, path=CHAT, words="", **said):
        """One more call that does not wait; its answer so far."""
        bench = self.bench
        body = json.dumps({"model": "m"} | said).encode()
        head = (
            f"POST /v1/{path} HTTP/1.1\r\nhost: g\r\nx-swarmgate-wait: 0s\r\n{words}content-length: {len(body)}\r\n\r\n"
        )
        door, wire = type(bench.client)(bench.gate.front, bench.gate.sweep, bench.gate.doors, 1_000), Wire()
        door.connection_made(wire)
        self.wires.append(wire)
        door.data_received(head.encode() + body)
        if bench.dialler.dials:
            bench.dialler.succeed()
        assert not bench.bugs
        return wire

    def sent(self):
        """What stands at the target, request by request."""
        return [
            json.loads(wire.written[-1].partition(b"\r\n\r\n")[2])
            for _, wire in self.bench.dialler.opened
            if wire.written
        ]

    def answer(self, tokens):
        """The newest one is answered with so many tokens of output, all its answers together."""
        self.bench.dialler.opened[-1][0].data_received(whole(UNARY | {"usage": used(tokens)}))
        assert not self.bench.bugs


def used(tokens):
    return {"prompt_tokens": 1, "completion_tokens": tokens, "total_tokens": 1 + tokens}


def error(wire):
    head, _, body = b"".join(wire.written).partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]


def made(said):
    """Tokens of output that a target makes of it, at most."""
    prompts = said.get("prompt")
    return (
        max(said.get("n", 1), said.get("best_of", 1))
        * (len(prompts) if isinstance(prompts, list) else 1)
        * said["max_tokens"]
    )


CALLS = st.fixed_dictionaries(
    {"max_tokens": st.integers(1, FIRST_TOKENS)},
    optional={
        "n": st.integers(1, 128),
        "best_of": st.integers(1, 128),
        "prompt": st.lists(st.text(max_size=9), min_size=1, max_size=9),
    },
)


@given(st.lists(CALLS, max_size=12))
def test_p1_what_stands_at_a_target_is_within_its_limit_however_many_answers_are_asked_for(calls):
    agents = Agents()
    for said in calls:
        agents.ask(TEXTS if "prompt" in said else CHAT, **said)
    assert sum(map(made, agents.sent())) <= LIMIT
    assert agents.bench.reserved >= sum(map(made, agents.sent()))


def test_three_calls_for_a_hundred_answers_each_do_not_stand_against_a_limit_for_one():
    agents = Agents()
    told = [error(agents.ask(n=100, max_tokens=1_000)) for _ in range(3)]
    assert [(status, one["code"]) for status, one in told] == [(413, "policy_larger_than_limit")] * 3
    assert agents.sent() == []


def test_so_do_calls_against_a_limit_on_output():
    agents = Agents("40_000 output tokens per 60s", "largest_output = 9_000")
    for _ in range(3):
        agents.ask(n=8, max_tokens=1_000)
    assert len(agents.sent()) == 1


def test_lg_11_money_is_reserved_for_every_answer():
    """A hundred answers of 100 tokens at 10 USD a million cost 0.1 USD."""
    agents = Agents("900000000 tokens per 1s", '[agents]\nlimits = ["0.25 USD per 1h"]\n' + PRICE)
    for _ in range(4):
        agents.ask(words="x-swarmgate-agent: a\r\n", n=100, max_tokens=100)
    assert len(agents.sent()) == 2
    assert (
        error(agents.ask(words="x-swarmgate-agent: a\r\n", n=1_000, max_tokens=100))[1]["code"]
        == "policy_larger_than_limit"
    )


@pytest.mark.parametrize("name", ["n", "best_of"])
@pytest.mark.parametrize("said", [10**9, MOST_ANSWERS + 1, 0, -1, "4", 1.5, True, [2], 10**30])
def test_answers_that_nobody_makes_are_the_callers_error(name, said):
    agents = Agents()
    status, told = error(agents.ask(max_tokens=1, **{name: said}))
    assert (status, told["code"], told["param"]) == (400, "caller_bad_request", name)
    assert agents.sent() == []


def test_a_list_of_tokens_is_one_prompt():
    agents = Agents()
    agents.ask(TEXTS, prompt=list(range(3_000)), max_tokens=1_000)
    assert len(agents.sent()) == 1
    (call,) = agents.bench.gate.pump.open
    assert call.reserve == 1_000


def learned(agents, calls):
    """Have so many calls answered: (answers, tokens each)."""
    for answers, tokens in calls:
        agents.ask(n=answers, max_tokens=FIRST_TOKENS)
        agents.answer(answers * tokens)


def reserves(agents, answers):
    """Tokens of output that one more call reserves, beside its prompt."""
    agents.ask(n=answers, max_tokens=FIRST_TOKENS)
    (call,) = agents.bench.gate.pump.open
    return call.reserve


def test_many_answers_are_not_taken_for_one_long_one():
    agents = Agents("900000000 tokens per 1s")
    learned(agents, [(100, 50)] * 40)
    assert 500 <= reserves(agents, 10) <= 600
    agents.answer(9)
    assert reserves(agents, 1) == FIRST_TOKENS


def test_a_target_that_makes_one_answer_of_many_says_nothing_of_others():
    agents = Agents("900000000 tokens per 1s")
    learned(agents, [(1, 400)] * 40)
    for _ in range(40):
        agents.ask(n=100, max_tokens=FIRST_TOKENS)
        agents.answer(400)
    assert 400 <= reserves(agents, 1) <= 460


def test_what_nobody_counted_of_many_answers_is_estimated_for_all():
    """Its target is cut after it took the call: what was likely of each may have been made."""
    agents = Agents("900000000 tokens per 1s")
    agents.ask(n=50, max_tokens=100)
    (call,) = agents.bench.gate.pump.open
    assert (call.likely_tokens, call.output, call.choices) == (5_000, 100, 50)


def test_up_06_a_stream_of_many_answers_may_be_as_long_as_all_of_them():
    agents = Agents("900000000 tokens per 1s")
    agents.ask(n=4, max_tokens=500, stream=True)
    agents.bench.dialler.opened[-1][0].data_received(STREAM_HEAD + framed(token("a")))
    (attempt,) = agents.bench.gate.exchanges.live
    assert attempt.allowed == (500, 4)


@given(st.sampled_from(Charge), st.integers(0, 10**6), st.integers(0, 10**5), st.integers(1, MOST_ANSWERS))
def test_each_answer_is_charged_like_one_and_the_prompt_once(charge, prompt, allowed, choices):
    likely = OutputEstimate()
    alone, many = charged(charge, prompt, allowed, likely), charged(charge, prompt, allowed, likely, choices)
    if charge is Charge.PROMPT_AND_LARGEST_OUTPUT:
        assert many == (prompt + choices * (alone[0] - prompt), 0)
    else:
        assert many == (alone[0], choices * alone[1])


def test_the_largest_answer_of_each_is_taken_at_once_where_the_provider_does_so():
    """Azure counts max_tokens and best_of when it admits a call."""
    agents = Agents(more='provider = "azure"\n')
    agents.ask(n=4, max_tokens=2_000)
    (call,) = agents.bench.gate.pump.open
    assert (call.prompt - call.asked_tokens, call.reserve) == (8_000, 0)
