"""Answers without end: bytes and tokens stop them, and what came of them is charged (UP-06)."""

import json

import pytest
from stage import STREAM_HEAD, event, framed, token, warm
from test_front import TEXT, request
from test_hostile_targets import CAPPED, PAGE
from test_relay import started
from wires import Bench

from swarmgate.core.price import LONGEST_CONTEXT, LONGEST_THOUGHT, could_stream
from swarmgate.gate.counted import MOST_ANSWER_BYTES
from swarmgate.gate.egress.fetch import MOST_UNTOLD_BYTES, Fetch

LONG = b"data: " + b"x" * 100_000 + b"\n\n"


def asked(bench, **more):
    body = json.dumps({"model": "fast", "stream": True, "messages": []} | more).encode()
    bench.client.data_received(request(body=body).replace(b"host: g", b"host: g\r\nx-swarmgate-agent: a", 1))
    bench.dialler.succeed()
    return bench.dialler.opened[-1]


def live(bench):
    """The one answer that is shown now."""
    (exchange,) = bench.gate.exchanges.live
    return exchange


@pytest.mark.parametrize("stream", [True, False])
def test_up_06_an_answer_beyond_any_of_a_model_is_stopped(stream):
    bench, end, wire = started(stream=stream)
    end.data_received((STREAM_HEAD if stream else PAGE) + framed(LONG if stream else b"{" + LONG))
    live(bench).got_bytes = MOST_ANSWER_BYTES - len(LONG)
    for ends in ([], ["failed"]):
        end.data_received(framed(LONG))
        bench.pass_time(5_000)
        assert bench.ends == ends
    said = b"".join(bench.wire.written)
    assert wire.closing
    assert bench.reserved == 0
    assert (b'"code":"target_endless"' in said) is stream
    assert b"[DONE]" not in said
    assert not said.endswith(b"0\r\n\r\n")
    assert bench.wire.closing


def after(bench, end, pieces):
    """As if so many pieces of content had come, and five seconds later."""
    live(bench).events = pieces - 1
    end.data_received(framed(token("a")))
    bench.pass_time(5_000)


@pytest.mark.parametrize(
    ("asked_for", "most"), [({"max_tokens": 500}, 1_000), ({"max_tokens": 500, "n": 4}, 3 * LONGEST_THOUGHT + 4_000)]
)
def test_up_06_a_stream_beyond_twice_what_its_caller_allows_and_any_thought_is_stopped_and_charged(asked_for, most):
    bench = Bench(CAPPED)
    warm(bench.gate)
    end, wire = asked(bench, **asked_for)
    cell = bench.gate.store.book.cells["agent a: tokens per 86400s"]
    end.data_received(STREAM_HEAD + framed(token("a")))
    after(bench, end, LONGEST_THOUGHT + most)
    assert bench.ends == []
    after(bench, end, LONGEST_THOUGHT + most + 1)
    assert bench.ends == ["failed"]
    assert wire.closing
    assert b'"code":"target_endless"' in bench.wire.written[-1] + bench.wire.written[-2]
    assert bench.reserved == 0
    assert cell.level // cell.limits.scale >= LONGEST_THOUGHT + most


def test_up_06_where_a_caller_allows_any_length_the_models_window_and_the_bytes_bound_it():
    bench, end, _ = started(stream=True)
    end.data_received(STREAM_HEAD + framed(token("a")))
    after(bench, end, 2 * LONGEST_CONTEXT)
    assert bench.ends == []
    after(bench, end, 3 * LONGEST_CONTEXT)
    assert bench.ends == ["failed"]


def test_what_could_be_one_stream():
    assert could_stream(LONGEST_THOUGHT + 256_000, 0, 128_000)
    assert not could_stream(LONGEST_THOUGHT + 256_001, 0, 128_000)
    assert could_stream(LONGEST_THOUGHT, 1, 0)
    assert could_stream(8 * (LONGEST_THOUGHT + 256_000), 0, 128_000, 8)


@pytest.mark.parametrize("path", ["/to/http/a.org/", "/v1/files/f/content"])
@pytest.mark.parametrize("sized", [True, False])
def test_up_06_an_answer_of_a_host_that_does_not_say_its_length_has_a_bound(path, sized):
    bench = Bench(TEXT + '[egress]\nunknown = "10 per 1s"\n[resolve]\n"a.org" = "127.0.0.1:9"\n')
    bench.gate.egress.upstreams.dialler = bench.dialler
    warm(bench.gate)
    bench.gate.store.book.birth_ms = -(2**51)
    bench.client.data_received(request(path, b"", "GET"))
    bench.dialler.succeed()
    end, wire = bench.dialler.opened[0]
    length = b"content-length: 99999999999" if sized else b"transfer-encoding: chunked"
    end.data_received(PAGE.replace(b"transfer-encoding: chunked", length) + framed(b"abc"))
    fetch = live(bench)
    assert isinstance(fetch, Fetch)
    fetch.got_bytes = MOST_UNTOLD_BYTES
    bench.pass_time(5_000)
    assert not bench.ends
    end.data_received(framed(b"abc"))
    bench.pass_time(5_000)
    assert bench.ends == ([] if sized else ["failed"])
    assert wire.closing is not sized


def test_up_06_an_error_in_a_stream_is_not_listened_to_for_ever():
    bench, end, wire = started(stream=True)
    end.data_received(STREAM_HEAD + framed(event({"error": {"message": "it broke", "type": "server_error"}})))
    for _ in range(99):
        if not wire.closing:
            end.data_received(framed(b"data: {}\n\n" * 500))
    assert wire.closing
    assert bench.reserved == 0
