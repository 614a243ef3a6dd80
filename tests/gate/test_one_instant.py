"""Nothing lasts less than no time, though the clock goes on while events are worked off (uvloop reads it anew for each timer)."""

import re

import pytest
from stage import STREAM_HEAD, UNARY, framed, token, warm, whole
from test_compress import STORY, SUMMARY, Conversation
from test_cost import ask
from wires import Bench, Loop

from swarmgate.gate.view.calls import call_row

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { one = "env:KEY" }
"""


@pytest.fixture(autouse=True)
def running(monkeypatch):
    """A clock that goes on by a millisecond whenever it is read."""

    def time(loop):
        loop.now_s += 0.001
        return loop.now_s

    monkeypatch.setattr(Loop, "time", time)


def queued(bench):
    """What callers heard of their time in line, and what views tell of it afterwards."""
    said = b"".join(bench.wire.written)
    told = [int(ms) for ms in re.findall(rb"x-swarmgate-queue-ms: (-?\d+)", said)]
    rows = [call_row(call, bench.gate.exchanges.now_ms()) for call, *_ in bench.gate.pump.client.ended]
    return told, [row["queue_ms"] for row in rows], [row["age_ms"] for row in rows]


def test_a_call_that_follows_a_summary_arrives_before_it_is_sent():
    agent = Conversation()
    agent.ask(STORY)
    agent.answer(SUMMARY)
    agent.answer(UNARY)
    assert agent.bench.ends == ["answered"] * 2
    told, seen, ages = queued(agent.bench)
    assert len(told) == 1
    assert min(told + seen + ages) >= 0


def test_requests_that_stand_behind_others_arrive_before_they_are_sent():
    bench = Bench(TEXT)
    warm(bench.gate)
    bench.client.data_received(b"".join(ask(stream=(b"false", b"true")[number % 2]) for number in range(6)))
    bench.dialler.succeed()
    end, _ = bench.dialler.opened[-1]
    for number in range(6):
        end.data_received(
            STREAM_HEAD + framed(token("a") + b"data: [DONE]\n\n") + b"0\r\n\r\n" if number % 2 else whole(UNARY)
        )
    assert bench.ends == ["answered"] * 6
    told, seen, ages = queued(bench)
    assert len(told) == 6
    assert min(told + seen + ages) >= 0
