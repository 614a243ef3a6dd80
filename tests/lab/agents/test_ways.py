import json

import pytest

from swarmgate.http1.upstreams import Origin
from swarmgate.lab.agents.body import chat_body
from swarmgate.lab.agents.ways import ByThemselves, Direct, ThroughGate, deferral_of
from swarmgate.lab.agents.wire import Answer
from swarmgate.lab.standin.question import read_question
from swarmgate.lab.traces.players import Character, wanted_of
from swarmgate.lab.traces.rows import TraceCall

MODEL, WEB = Origin("http", "127.0.0.1", 1), (Origin("http", "127.0.0.1", 2), Origin("http", "127.0.0.1", 3))
WISH = wanted_of("team-1", 7, 1_000, TraceCall(0, 900, 55), Character("team", "literature", "P1", "model", 15_000))
FETCH = WISH._replace(task_type="fetch", target="a.org")
GATE = ThroughGate(Origin("http", "127.0.0.1", 9), "m", egress=True)


def directly(seed=1):
    return ByThemselves(Direct(MODEL, WEB, {"team-1": "sk-1"}, "m"), seed)


def answer(status, body=b"", **fields):
    return Answer(
        status, {name.encode().replace(b"_", b"-"): value for name, value in fields.items()}, body, b"", 0, True
    )


def deferred(**more):
    return answer(
        429, json.dumps({"error": {"code": "policy_rate", "deferral": {"retry_after_ms": 700} | more}}).encode()
    )


@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize("tokens", [1, 50, 900, 15_000])
def test_bodies_cost_what_the_trace_says(tokens, is_stream):
    body = chat_body(WISH._replace(prompt_tokens=tokens), "m", is_stream=is_stream)
    question = read_question(body)
    assert question.call == "team-1/7"
    assert question.output_tokens == 55
    assert question.is_stream == is_stream
    assert max(tokens, 6) <= question.prompt_tokens <= max(tokens, 6) + 3


def test_the_gate_is_told_who_calls_and_gets_its_ticket_back():
    origin, method, data = GATE.outgoing(WISH, b"tkt")
    head, _, body = data.partition(b"\r\n\r\n")
    assert (origin.port, method) == (9, b"POST")
    for line in (
        b"x-swarmgate-agent: team-1",
        b"x-swarmgate-priority: P1",
        b"x-swarmgate-ticket: tkt",
        b"x-swarmgate-step: 7",
    ):
        assert line in head
    assert b"authorization" not in head
    assert json.loads(body)["user"] == "team-1/7"
    assert GATE.outgoing(FETCH, b"").data.startswith(b"GET /to/http/a.org/page/7 ")


def test_who_is_deferred_comes_back_when_told_and_not_after_its_deadline():
    assert GATE.after(WISH, deferred(ticket="t"), 1, 5_000) == (5_700, True, b"t")
    assert GATE.after(WISH, deferred(), 1, WISH.deadline_ms).at_ms is None
    assert GATE.after(WISH, answer(503, b"{}"), 1, 5_000).at_ms is None


def test_a_target_s_own_429_is_no_deferral():
    assert deferral_of(answer(429, b'{"error": {"code": "rate_limit_exceeded"}}')) is None
    assert deferral_of(answer(429, b'"deferral" but no JSON')) is None
    assert deferral_of(answer(200, deferred().body)) is None


@pytest.mark.parametrize(
    ("fields", "least", "most"),
    [
        ({"retry_after_ms": b"250"}, 250, 250),
        ({"retry_after": b"3"}, 3_000, 3_000),
        ({"retry_after": b"1.5"}, 1_500, 1_500),
        ({"retry_after": b"tomorrow"}, 375, 500),
        ({}, 375, 500),
    ],
)
def test_direct_agents_wait_as_their_sdk_does(fields, least, most):
    at_ms = directly().after(WISH, answer(429, **fields), 1, 10_000).at_ms
    assert least <= at_ms - 10_000 <= most


def test_direct_agents_give_up_after_two_repeats_and_repeat_no_error_of_theirs():
    way = directly()
    assert way.after(WISH, answer(429), 3, 0).at_ms is None
    assert way.after(WISH, answer(400), 1, 0).at_ms is None
    assert way.after(WISH, answer(0), 1, 0).at_ms is not None


def test_one_budget_paces_everybody():
    way = directly()
    way.share(10, 1_000)
    assert [way.first(WISH, 0) for _ in range(5)] == [0, 100, 200, 300, 400]


def test_direct_agents_use_their_own_key_and_a_host_s_own_port():
    assert b"authorization: Bearer sk-1" in directly().outgoing(WISH, b"").data
    hosts = {directly().outgoing(FETCH._replace(target=f"{n}.org"), b"").origin for n in range(20)}
    assert hosts == set(WEB)
