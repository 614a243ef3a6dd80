"""One model's refusal leaves the other models of its target their keys, unless the refusal is the key's."""

import pytest
from stage import UNARY, warm, whole
from test_front import request
from wires import Bench

from swarmgate.config import parse
from swarmgate.control.orders import keys_out
from swarmgate.core.keys import KeyRing
from swarmgate.core.outcome import Signal, classify
from swarmgate.core.scope import NOBODY
from swarmgate.gate.quotas import MOST_PLACES, Quotas
from swarmgate.gate.reload import kinds, reload
from swarmgate.gate.view.finder import ModelFinder
from swarmgate.gate.view.plans import PlanStep
from swarmgate.http1.head import parse_response
from swarmgate.providers.tables import dialect_named
from swarmgate.wiring import plan

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { a = "env:KEY" }
"""
TWO_KEYS = TEXT.replace('"env:KEY" }', '"env:KEY", b = "env:KEY" }')
PREFIX = '[routes]\n"x*" = "up/*"\n"y*" = "up/*"\n'
NAMED = '[routes]\none = "up/one"\ntwo = "up/two"\n'
LIMITED = whole({"error": {"message": "Rate limit"}}, "429 Too Many Requests", "retry-after: 60\r\n")
REFUSED = whole({"error": {"message": "no", "code": "invalid_api_key"}}, "401 Unauthorized")
OK, DEFERRED = 200, 429


def made(text=TEXT):
    bench = Bench(text)
    warm(bench.gate)
    return bench


def ask(bench, model, answer=None, path="/v1/chat/completions"):
    """One call that does not wait: its status, and how many requests left for it."""
    bench.wire.written.clear()
    bench.client.data_received(request(path, b'{"model":"%b"}' % model.encode(), "POST", "x-swarmgate-wait: 0s"))
    sends = 0
    while bench.gate.pump.open:
        while bench.dialler.dials:
            bench.dialler.succeed()
        end, wire = next((end, wire) for end, wire in bench.dialler.opened if wire.written)
        assert model.encode() in b"".join(wire.written)
        wire.written.clear()
        end.data_received(answer or whole(UNARY))
        sends += 1
    return int(b"".join(bench.wire.written).split(b" ", 2)[1]), sends


@pytest.mark.parametrize("text", [TEXT, TEXT + PREFIX], ids=["any", "beginnings"])
def test_a_refusal_of_one_model_leaves_the_others_their_key(text):
    bench = made(text)
    assert ask(bench, "x-1", LIMITED) == (DEFERRED, 1)
    assert ask(bench, "x-1") == (DEFERRED, 0)
    for other in ("x-2", "y-1"):
        assert ask(bench, other) == (OK, 1)
    assert ask(bench, "x-1") == (DEFERRED, 0)
    bench.pass_time(60_000)
    assert ask(bench, "x-1") == (OK, 1)


@pytest.mark.parametrize("routes", ["", NAMED], ids=["any", "named"])
@pytest.mark.parametrize("met", [False, True])
def test_a_key_that_is_refused_is_refused_for_all_until_a_person_acts(met, routes):
    bench = made(TEXT + routes)
    if met:
        assert ask(bench, "two") == (OK, 1)
    assert ask(bench, "one", REFUSED)[1] == 1
    assert ask(bench, "two")[1] == 0
    bench.gate.operator.resume("up")
    assert ask(bench, "two") == (OK, 1)


@pytest.mark.parametrize("routes", ["", NAMED], ids=["any", "named"])
def test_where_the_provider_counts_all_models_together_they_rest_together(routes):
    bench = made(TEXT + 'provider = "moonshot"\n' + routes)
    assert ask(bench, "one", LIMITED) == (DEFERRED, 1)
    assert ask(bench, "two") == (DEFERRED, 0)


def test_a_reload_keeps_what_rests_for_one_model():
    bench = made()
    ask(bench, "one", LIMITED)
    for renewed, seen in ([], (DEFERRED, 0)), (["up"], (OK, 1)):
        served = plan(parse(TEXT, {"KEY": "sk"}), kinds(bench.gate.store.book))
        reload(bench.gate, bench.gate.store.book, served, renewed)
        assert ask(bench, "two") == (OK, 1)
        assert ask(bench, "one") == seen


def test_invented_names_fill_no_memory():
    bench = made()
    for number in range(600):
        ask(bench, f"m{number}")
    assert len(bench.gate.ladders.met) <= 256
    assert ask(bench, "one", LIMITED) == (DEFERRED, 1)
    assert ask(bench, "one") == (DEFERRED, 0)


def test_planners_are_told_of_the_model_that_they_ask_for():
    bench = made()
    ask(bench, "one", LIMITED)
    find = ModelFinder(bench.gate.ladders, bench.gate.clock.now_ms).find
    one, two = (find(PlanStep("s", model=model), NOBODY) for model in ("one", "two"))
    assert one.not_before_ms > 0 == two.not_before_ms
    assert len(bench.gate.ladders.met) == 1  # to be planned for is not to be called


def test_who_waits_for_one_model_hears_of_a_key_that_a_person_brought_back():
    bench = made(TWO_KEYS)
    now_ms = bench.gate.clock.now_ms()
    ring = bench.gate.ladders.called("one")[0].ring
    ring.observe("a", classify(Signal(429, hint_ms=20_000)), now_ms - 1, now_ms)
    ring.observe("b", classify(Signal(401)), now_ms - 1, now_ms)
    bench.client.data_received(request("/v1/chat/completions", b'{"model":"one"}', "POST", "x-swarmgate-wait: 60s"))
    bench.dialler.succeed()
    assert [call.state.value for call in bench.gate.pump.open] == ["waiting"]
    bench.gate.operator.resume("up")
    assert [call.route and call.route.key for call in bench.gate.pump.open] == ["b"]


def test_metrics_tell_of_a_key_the_longest_time_that_it_is_out():
    bench = made(TWO_KEYS)
    ladders, now_ms = bench.gate.ladders, 1_000
    for model, hint_ms in ("one", 5_000), ("two", 70_000), ("three", 9_000):
        ladders.called(model)[0].ring.observe("a", classify(Signal(429, hint_ms=hint_ms)), now_ms - 1, now_ms)
    assert keys_out(ladders, now_ms) == [("up", "a", 70_000)]
    ladders.called("one")[0].ring.observe("b", classify(Signal(401)), now_ms - 1, now_ms)
    assert keys_out(ladders, now_ms) == [("up", "a", 70_000), ("up", "b", -1)]


def test_what_is_remembered_of_readings_is_bounded():
    quotas, head = Quotas(dialect_named("openai")), parse_response(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(MOST_PLACES + 9):
        quotas.left(KeyRing(()), "a", head, 1, lambda: 1)
    assert len(quotas._next_ms) <= MOST_PLACES
