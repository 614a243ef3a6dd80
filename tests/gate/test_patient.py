"""Callers who wait for long: nothing for 25 s, then a comment every 10 s, then the answer or an error event."""

import json

import pytest
from stage import DONE, LAST, STREAM_HEAD, UNARY, framed, token, warm, whole
from test_front import request
from wires import Bench

from swarmgate.gate.taps import data_of
from swarmgate.http1.head import parse_response
from swarmgate.http1.response_reader import response_body

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { only = "env:KEY" }
limits = ["1 concurrent"]
"""
WORD = framed(b": keepalive\n\n")


def waiting(*lines, body=b'{"model":"m","stream":true}', path="/v1/chat/completions"):
    """A call that waits behind another one, and the connection of that other one."""
    bench = Bench(TEXT)
    warm(bench.gate)
    bench.client.data_received(request(path, body, "POST", "x-swarmgate-wait: 200s", *lines))
    bench.dialler.succeed()
    return bench, *bench.dialler.opened[0]


def fire(bench, ms, step_ms=250):
    """Time passes in the gate's own steps."""
    for _ in range(0, ms, step_ms):
        bench.pass_time(step_ms)


def slow_to_begin(**asked):
    """A call whose target sends nothing: with a timeout that is long enough not to be slow."""
    bench, end, wire = waiting(**asked)
    (call,) = bench.gate.pump.open
    call.content_ms = 200_000
    return bench, end, wire


def test_llm_gateways_84_a_stream_hears_after_25_s_and_then_every_10_s():
    bench, end, _ = slow_to_begin()
    fire(bench, 24_750)
    assert bench.wire.written == []
    fire(bench, 250)
    head, *words = bench.wire.written
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"content-type: text/event-stream\r\n" in head
    assert words == [WORD]
    fire(bench, 9_750)
    assert len(bench.wire.written) == 2
    fire(bench, 250)
    assert bench.wire.written[2:] == [WORD]
    end.data_received(STREAM_HEAD + framed(token("a")))
    end.data_received(framed(DONE) + LAST)
    said = b"".join(bench.wire.written)
    assert said.count(b"HTTP/1.1") == 1
    assert said.endswith(framed(token("a")) + framed(DONE) + LAST)
    assert bench.ends == ["answered"]
    fire(bench, 20_000)
    assert bench.wire.written.count(WORD) == 2


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_an_error_after_that_is_an_event_and_no_clean_end(path):
    bench, end, _ = slow_to_begin(path=path)
    fire(bench, 26_000)
    end.data_received(whole({"error": {"message": "no such thing", "type": "invalid_request_error"}}, "400 Bad"))
    said = b"".join(bench.wire.written)
    _, _, event = said.rpartition(b"data: ")
    assert json.loads(event.partition(b"\n\n")[0])["error"]["code"] == "target_error"
    assert b"[DONE]" not in said
    assert not said.endswith(LAST)
    assert bench.wire.closing
    assert bench.ends == ["failed"]


def test_a_deferral_after_that_is_an_event_too():
    bench = Bench(TEXT)  # a new gate must assume that all its slots are taken
    bench.client.data_received(request("/v1/messages", b'{"model":"m","stream":true}', "POST", "x-swarmgate-wait: 30s"))
    bench.dialler.succeed()
    fire(bench, 31_000)
    said = b"".join(bench.wire.written)
    assert said.count(WORD) == 1
    event = json.loads(said.rpartition(b"event: error\ndata: ")[2].partition(b"\n\n")[0])
    assert event["error"]["deferral"]["reason"] == "policy_rate"
    assert bench.ends == ["deferred"]


def test_an_answer_that_is_no_stream_becomes_its_only_event():
    bench, end, _ = slow_to_begin()
    fire(bench, 25_000)
    end.data_received(whole(UNARY))
    said = b"".join(bench.wire.written)
    assert said.endswith(framed(b"data: " + json.dumps(UNARY).encode() + b"\n\n") + LAST)
    assert bench.ends == ["answered"]


def shown(bench):
    """The body of the stream so far."""
    return response_body(parse_response(STREAM_HEAD), b"POST").feed(
        b"".join(bench.wire.written).partition(b"\r\n\r\n")[2]
    )


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("size", [10, 200_000], ids=["held", "too long to hold"])
@pytest.mark.parametrize("reads", [1, 7])
def test_an_answer_of_several_lines_becomes_one_event_too(size, line_end, reads):
    bench, end, _ = slow_to_begin()
    fire(bench, 25_000)
    answer = json.dumps(UNARY | {"id": "x" * size}, indent=1).encode().replace(b"\n", line_end)
    raw = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(answer) + answer
    for at in range(reads):
        end.data_received(raw[len(raw) * at // reads : len(raw) * (at + 1) // reads])
    (event,) = [one for one in shown(bench).split(b"\n\n") if data_of(one)]
    assert json.loads(data_of(event)) == json.loads(answer)
    assert bench.ends == ["answered"]


def test_one_that_breaks_off_is_followed_by_an_event_that_says_so():
    bench, end, _ = slow_to_begin()
    fire(bench, 25_000)
    end.data_received(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{" + b" " * 100_000)
    end.connection_lost(ConnectionResetError())
    assert b'  \n\ndata: {"error":{' in shown(bench)
    assert not b"".join(bench.wire.written).endswith(LAST)


def test_who_does_not_stream_hears_nothing_before_its_answer():
    bench, end, _ = slow_to_begin(body=b'{"model":"m"}')
    fire(bench, 60_000)
    assert bench.wire.written == []
    end.data_received(whole(UNARY))
    assert bench.ends == ["answered"]


def test_se_05_a_caller_that_read_no_comments_pauses_the_answer_from_its_beginning():
    bench = Bench(TEXT)
    warm(bench.gate)
    bench.client.data_received(request(body=b'{"model":"m","stream":true}'))
    bench.client.pause_writing()  # nothing is there that could be paused
    bench.dialler.succeed()
    end, wire = bench.dialler.opened[0]
    end.data_received(STREAM_HEAD + framed(token("a")))
    assert wire.paused
    bench.client.resume_writing()
    assert not wire.paused
