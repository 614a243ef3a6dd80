"""A stream that ends before its count is charged what flowed of it, whoever ends it."""

import asyncio

import pytest
from stage import DONE, FINISH, LAST, STREAM_HEAD, framed, token
from test_complaints import begun, tokens

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
