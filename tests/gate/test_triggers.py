"""What leads to the next rung of a ladder, and what does not: each trigger once, on virtual time (design 4; essay A)."""

import json

import pytest
from stage import ROLE, STREAM_HEAD, UNARY, event, framed, token, warm, whole
from test_front import request
from wires import Bench

TWO = """
[targets.first]
base_url = "http://127.0.0.1:7/v1"
keys = { one = "env:KEY" }

[targets.second]
base_url = "http://127.0.0.1:8/v1"
keys = { two = "env:KEY" }

[routes]
m = ["first/large", "second/small"]
"""
PAGE = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 19\r\n\r\n<html>log in</html>"


def said(kind, **more):
    return {"error": {"type": kind, "message": kind, **more}}


def asked(*, stream, text=TWO):
    """A call on its way to the first rung, and that target's end."""
    bench = Bench(text)
    warm(bench.gate)
    body = json.dumps({"model": "m", "max_tokens": 9, "stream": stream}).encode()
    bench.client.data_received(request(body=body))
    bench.dialler.succeed()
    return bench, bench.dialler.opened[0][0]


def sent_to(bench):
    """The targets that were sent to, by connection; a dial that waits is let succeed."""
    while bench.dialler.dials:
        bench.dialler.succeed()
    requests = [raw for _, wire in bench.dialler.opened for raw in wire.written]
    ports = [raw.partition(b"host: ")[2].partition(b"\r\n")[0] for raw in requests]
    return [{b"127.0.0.1:7": "first", b"127.0.0.1:8": "second"}[port] for port in ports]


def waits(bench, until_ms, step_ms=250):
    """Pass so much time; dials succeed while it passes."""
    for _ in range(until_ms // step_ms):
        bench.pass_time(step_ms)
        sent_to(bench)


ANSWERS = {
    "a rate limit of a minute": whole(said("rate_limit"), "429 Too Many Requests", "retry-after: 60\r\n"),
    "a quota of a day": whole(said("requests per day (RPD): Limit 9, Used 9"), "429 Too Many", "retry-after: 9000\r\n"),
    "no capacity, 529": whole(said("overloaded_error"), "529 Overloaded"),
    "no capacity, 498": whole(said("capacity_exceeded"), "498 Flex"),
    "no capacity inside a 200": whole(said("overloaded_error")),
    "a key without money": whole(said("insufficient_quota", code="insufficient_quota"), "429 Too Many Requests"),
    "a dead key": whole(said("invalid_api_key", code="invalid_api_key"), "401 Unauthorized"),
}
EVENTS = {
    "an error as the first event": STREAM_HEAD + framed(event(said("overloaded_error"))) + b"0\r\n\r\n",
    "an error after the role": STREAM_HEAD + framed(ROLE) + framed(event(said("overloaded_error"))) + b"0\r\n\r\n",
}
REPEATED = {  # a read is tried at the same place first
    "a server error": whole(said("server_error"), "500 Oops"),
    "a page of something between": PAGE,
    "a long page": b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 99999\r\n\r\n<" + bytes(99_998),
    "nothing": b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 0\r\n\r\n",
    "a redirect with JSON": whole({"redirect": True}, "302 Found", "location: http://127.0.0.1/\r\n"),
    "an answer that is cut": whole(UNARY)[:-9],
    "a stream that is cut before content": STREAM_HEAD + framed(ROLE),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_another_try_cannot_mend_goes_to_the_next_rung_at_once(name):
    bench, end = asked(stream=False)
    end.data_received(ANSWERS[name])
    assert sent_to(bench) == ["first", "second"]
    bench.dialler.opened[1][0].data_received(whole(UNARY))
    assert bench.ends == ["answered"]
    assert b"x-swarmgate-rung: 1\r\nx-swarmgate-queue-ms: 0\r\nx-swarmgate-model: small\r\n" in bench.wire.written[-1]


@pytest.mark.parametrize("name", EVENTS)
def test_so_does_an_error_inside_a_stream_before_its_first_content(name):
    bench, end = asked(stream=True)
    end.data_received(EVENTS[name])
    assert sent_to(bench) == ["first", "second"]
    assert bench.wire.written == []


@pytest.mark.parametrize("name", REPEATED)
def test_a_failure_is_repeated_once_and_then_goes_to_the_next_rung(name):
    bench, _ = asked(stream=name.startswith("a stream"))
    for _ in range(2):
        end = bench.dialler.opened[-1][0]
        end.data_received(REPEATED[name])
        if not bench.dialler.opened[-1][1].closing and "cut" in name:
            end.connection_lost(None)
        waits(bench, 8_000)
    assert sent_to(bench) == ["first", "first", "second"]
    assert bench.wire.written == []


@pytest.mark.parametrize(("stream", "ms"), [(True, 8_000), (False, 30_000)])
def test_a_target_that_does_not_begin_in_time_loses_the_call(stream, ms):
    bench, _ = asked(stream=stream)
    waits(bench, ms - 500)
    assert sent_to(bench) == ["first"]
    waits(bench, 1_000)
    assert sent_to(bench) == ["first", "second"]
    assert bench.dialler.opened[0][1].closing


def test_comments_and_a_role_are_no_beginning():
    bench, end = asked(stream=True)
    end.data_received(STREAM_HEAD + framed(b": processing\n\n") + framed(ROLE))
    for _ in range(9):
        bench.pass_time(1_000)
        if not bench.dialler.opened[0][1].closing:
            end.data_received(framed(b": processing\n\n"))
    assert sent_to(bench) == ["first", "second"]


def test_a_connection_that_cannot_be_made():
    bench = Bench(TWO)
    warm(bench.gate)
    bench.client.data_received(request(body=b'{"model":"m"}'))
    (call,) = bench.gate.pump.open
    for _ in range(40):
        if call.rung:
            break
        while bench.dialler.dials and not call.rung:
            bench.dialler.fail()
        bench.pass_time(250)
    assert sent_to(bench) == ["second"]


def test_a_budget_that_is_used_up_for_longer_than_a_slow_target():
    bench = Bench(TWO.replace('{ one = "env:KEY" }\n', '{ one = "env:KEY" }\nlimits = ["2 per 60s"]\n'))
    warm(bench.gate)
    for place in ("first", "first", "second"):
        bench.client.data_received(request(body=b'{"model":"m"}'))
        assert sent_to(bench)[-1] == place
        bench.dialler.opened[-1][0].data_received(whole(UNARY))
    assert bench.ends == ["answered"] * 3


def test_a_limit_that_says_no_wait_is_waited_for_a_moment_and_then_left():
    bench, end = asked(stream=False)
    end.data_received(whole(said("rate_limit"), "429 Too Many Requests"))
    waits(bench, 2_000)
    assert sent_to(bench) == ["first", "second"]


@pytest.mark.parametrize("status", ["400 Bad", "404 Not Found", "413 Too Large", "422 Unprocessable"])
def test_a_request_that_is_wrong_or_too_large_is_told_so_by_the_first(status):
    bench, end = asked(stream=False)
    end.data_received(whole(said("invalid_request_error"), status))
    waits(bench, 10_000)
    assert sent_to(bench) == ["first"]
    assert bench.ends in (["failed"], ["refused"])


@pytest.mark.parametrize("how", ["is cut", "falls silent", "says an error"])
def test_nothing_leads_on_after_the_first_content(how):
    bench, end = asked(stream=True)
    end.data_received(STREAM_HEAD + framed(token("a")))
    if how == "is cut":
        end.connection_lost(None)
    elif how == "says an error":
        end.data_received(framed(event(said("overloaded_error"))) + b"0\r\n\r\n")
    waits(bench, 60_000, 1_000)
    assert sent_to(bench) == ["first"]
    assert b"[DONE]" not in b"".join(bench.wire.written)
