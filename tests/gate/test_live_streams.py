"""What is bounded: streams that run, calls that are open, calls in line that name no agent."""

import pytest
from stage import DONE, LAST, STREAM_HEAD, framed, token, warm
from test_front import TEXT, answered, request
from wires import Bench

from life import World, rung, slot_only
from swarmgate.core import waiting
from swarmgate.core.commands import End
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.reasons import Reason
from swarmgate.gate.live_streams import LiveStreams
from swarmgate.gate.service import Door

STREAM = b'{"model":"fast","stream":true}'


def streaming(*capped):
    """A gate where two streams may run."""
    bench = Bench(TEXT + "\n".join(capped))
    bench.gate.desk.streams = LiveStreams(bench.gate.store, bench.gate.published, "two streams", 2)
    warm(bench.gate)
    return bench


def another(bench, raw):
    """One more caller."""
    client, wire = bench.client, bench.wire
    bench.client = Door(bench.gate.front, bench.gate.sweep, bench.gate.doors, 99)
    bench.wire = type(wire)()
    bench.client.connection_made(bench.wire)
    bench.client.data_received(raw)
    if bench.dialler.dials:
        bench.dialler.succeed()
    mine, bench.client, bench.wire = bench.wire, client, wire
    return mine


@pytest.mark.parametrize(
    "capped", ["", '[teams.all]\nagents = ["*"]\nlimits = ["900 per 60s"]\n'], ids=["alone", "with caps"]
)
def test_a_third_stream_waits_in_line_and_who_does_not_stream_does_not(capped):
    bench = streaming(capped)
    for _ in range(2):
        another(bench, request(body=STREAM))
        bench.dialler.opened[-1][0].data_received(STREAM_HEAD + framed(token("a")))
    another(bench, request(body=STREAM, method="POST"))
    waits = list(bench.gate.pump.open)[-1]
    assert (waits.state.public, waits.denied.blockers[0].budget) == ("queued", "two streams")
    another(bench, request())
    assert list(bench.gate.pump.open)[-1].state.public == "running"
    bench.dialler.opened[0][0].data_received(framed(DONE) + LAST)
    assert waits.state.public == "running"


def test_llm_gateways_29_a_deferral_names_the_cap():
    bench = streaming()
    for _ in range(2):
        another(bench, request(body=STREAM))
    said = another(bench, request("/v1/chat/completions", STREAM, "POST", "x-swarmgate-wait: 0s")).written[-1]
    assert b'"budget":"two streams","policy":"2 concurrent"' in said


def test_a_gate_with_as_many_calls_as_it_may_have_says_so():
    bench = Bench(TEXT)
    bench.gate.desk.crowd.fill(1)
    another(bench, request())
    for path in ("/v1/chat/completions", "/v1/files"):
        said = another(bench, request(path)).written[0]
        assert b" 503 " in said.split(b"\r\n")[0]
        assert b"gate_busy" in said
        assert b"retry-after: " in said
        assert b"x-should-retry" not in said


@pytest.mark.interpreted  # replaces a constant
def test_nameless_calls_in_one_line_are_bounded(monkeypatch):
    monkeypatch.setattr(waiting, "NAMELESS_TICKETS", 3)
    world = World({"slot": Limits(BudgetKind.LEASES, burst=1)})
    rungs = (rung("t", slot_only()),)
    world.call("holder", rungs=rungs)
    world.run(1)
    calls = [world.call(f"x{number}", rungs=rungs) for number in range(5)]
    world.run(100)
    assert [call.reason for call in calls if call.end is End.DEFERRED] == [Reason.POLICY_AGENT_BACKLOG] * 2


def test_compressed_bodies_are_not_taken():
    status, error = answered(request("/v1/messages", b"{}", "POST", "content-encoding: gzip"))
    assert (status, error["code"]) == (415, "caller_encoding")
    plain = request("/v1/messages", b"{}", "POST", "content-encoding: identity")
    assert answered(plain)[1]["code"] != "caller_encoding"  # not compressed: judged by its body
