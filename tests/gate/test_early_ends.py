"""A stream that ends before its count is charged what flowed of it, whoever ends it."""

import asyncio

import pytest
from stage import DONE, FINISH, LAST, STREAM_HEAD, event, framed, token
from test_cap_desk import PRICE
from test_complaints import LIMITED_TOKENS, begun, tokens

DEAR = 2_000  # micro-units for a token of output
EARLY_ENDS = {
    "the caller leaves": "cancelled",
    "the target breaks off": "failed",
    "its last chunk comes too early": "failed",
    "the caller's time is over": "failed",
    "the gate stops": "failed",
    "nobody counted": "answered",
}


@pytest.mark.parametrize("counted", [True, False], ids=["counted", "not counted"])
@pytest.mark.parametrize("how", EARLY_ENDS)
def test_llm_gateways_51_se_03_what_was_generated_is_charged_however_a_stream_ends(how, counted):
    body = b'{"model":"m","stream":true,"max_tokens":5,"stream_options":{"include_usage":true}}'
    bench, end = begun(body, f"x-swarmgate-timeout: {6 if counted else 2}s" if "time is over" in how else "x-mine: 1")
    before = tokens(bench)
    end.data_received(STREAM_HEAD + framed(token("a")))
    for _ in range(40):  # more than it was to be
        end.data_received(framed(token("b")))
    if counted:
        bench.pass_time(6_000)
    if how == "the caller leaves":
        bench.client.connection_lost(None)
    elif how == "the target breaks off":
        end._transport.closing = True
        end.connection_lost(None)
    elif how == "its last chunk comes too early":
        end.data_received(LAST)
    elif how == "the caller's time is over":
        bench.loop.now_s += 0 if counted else 2
        bench.gate._upkeep.on_deadline()
    elif how == "the gate stops":
        asyncio.run(bench.gate.stop(0))
    else:
        end.data_received(framed(FINISH + DONE) + LAST)
    passed_s = int(bench.loop.now_s) - 1_000
    drained = 900_000 * 80 // 100 * passed_s // 60
    assert bench.ends == [EARLY_ENDS[how]]
    assert bench.reserved == 0
    assert 40 <= tokens(bench) - max(0, before - drained) <= 50


@pytest.mark.parametrize("how", ["the caller leaves", "the target breaks off"])
def test_llm_gateways_51_pieces_of_many_tokens_are_charged_as_many(how):
    body = b'{"model":"m","stream":true,"max_tokens":5}'
    text = LIMITED_TOKENS + '[agents]\nlimits = ["5 USD per 1d"]\n' + PRICE
    bench, end = begun(body, "x-swarmgate-agent: a", text=text)
    before = tokens(bench)
    end.data_received(STREAM_HEAD + framed(token("word" * 8)))
    for _ in range(49):
        end.data_received(framed(token("word" * 8)))
    if how == "the caller leaves":
        bench.client.connection_lost(None)
    else:
        end._transport.closing = True
        end.connection_lost(None)
    assert bench.reserved == 0
    assert 400 <= tokens(bench) - before <= 410
    assert 400 * DEAR <= bench.gate.store.book.cells["agent a: USD per 86400s"].level <= 420 * DEAR


def test_those_that_are_counted_are_charged_as_the_target_counts():
    body = b'{"model":"m","stream":true,"max_tokens":900,"stream_options":{"include_usage":true}}'
    bench, end = begun(body)
    before = tokens(bench)
    end.data_received(STREAM_HEAD + framed(token("word" * 8)))
    for _ in range(49):
        end.data_received(framed(token("word" * 8)))
    bench.pass_time(6_000)
    drained = 900_000 * 80 // 100 * 6 // 60
    end.data_received(
        framed(event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 310}}) + DONE) + LAST
    )
    assert bench.ends == ["answered"]
    assert 310 <= tokens(bench) - max(0, before - drained) <= 325
