"""Streams as real providers sent them, each event in a chunk of its own: what the gate learns is what the tap sees of all events."""

import json

import pytest
from stage import LAST, STREAM_HEAD, framed, warm
from test_front import TEXT, request
from test_recordings import FOLDER, recorded
from wires import Bench

from swarmgate.gate.taps import NO_USAGE, StreamTap

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the recordings lie beside the repository")
PATHS = {"chat.completions": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}


def through_the_gate(path, events):
    """Tokens in and out, whether they are an estimate, and how the call ended."""
    bench = Bench(TEXT)
    warm(bench.gate)
    asked = json.dumps({"model": "fast", "stream": True, "max_tokens": 100_000}).encode()
    bench.client.data_received(request(body=asked).replace(b"/v1/chat/completions", path.encode()))
    bench.dialler.succeed()
    end, _ = bench.dialler.opened[0]
    end.data_received(STREAM_HEAD)
    for event in events:
        if not bench.dialler.opened[0][1].closing:
            end.data_received(framed(event))
    if not bench.dialler.opened[0][1].closing:
        end.data_received(LAST)
    return bench


def test_what_is_learned_of_a_recorded_stream_is_what_is_in_it():
    seen = 0
    for name, api, response in recorded(stream=True):
        events = [event.encode() for event in response.get("sse") or ()]
        if response["status"] != 200 or not events or api not in PATHS:
            continue
        tap = StreamTap()
        for event in events:
            tap.feed(event)
        tap.close()
        if tap.failure is not None or tap.usage == NO_USAGE or not tap.finished:
            continue
        bench = through_the_gate(PATHS[api], events)
        assert bench.ends == ["answered"], name
        assert bench.gate.callers.ended[-1][1:] == (tap.usage, False), name
        seen += 1
    assert seen > 20
