"""What an answer says of how it was served: our limits as their owner states them, and the revision in force."""

import json
import re

import pytest
from stage import UNARY, warm, whole
from test_front import request
from wires import Bench, Wire

from swarmgate.core.compiler import Published, Unit
from swarmgate.gate.served import policy, shown_headers, shown_lines
from swarmgate.gate.service import Door
from swarmgate.http1.head import parse_response
from swarmgate.http1.render import header_lines

TOLD = [
    b"Date: now",
    b"set-cookie: a",
    b"X-A: b",
    b"x-ratelimit-limit: 1",
    b"retry-after: 5",
    b"alt-svc: h3",
    b"x-request-id: 7",
]
WISHES = [b"connection: keep-alive", b"connection: x-a", b"connection: close, x-a"]
TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { first = "env:KEY" }
limits = ["500 per 60s", "900_000 tokens per 60s"]
key_limits = ["100 per 60s", "40 concurrent"]
"""


@pytest.mark.parametrize("wish", [*WISHES, b"x-b: c", b"x-long: " + b"x" * 5_000], ids=lambda wish: wish[:24].decode())
def test_shown_lines_are_the_shown_fields(wish):
    for told in (TOLD, TOLD[::-1], [*TOLD, b"X-A: c"]):
        head = parse_response(b"\r\n".join([b"HTTP/1.1 200 OK", wish, *told, b"content-length: 3", b"", b""]))
        assert shown_lines(head) == header_lines(shown_headers(head))
        assert (b"x-a: b\r\n" in shown_lines(head)) == (b"x-a" not in wish)
        assert b"set-cookie" not in shown_lines(head)


def test_the_fields_of_an_answer():
    bench = Bench(TEXT)
    warm(bench.gate)
    seen = []
    for _ in range(2):
        bench.client.data_received(request(body=b'{"model":"m","max_tokens":3}'))
        if bench.dialler.dials:
            bench.dialler.succeed()
        bench.dialler.opened[0][0].data_received(whole(UNARY))
        head = bench.wire.written[-1].partition(b"\r\n\r\n")[0].decode()
        seen.append(dict(line.split(": ", 1) for line in head.split("\r\n")[1:]))
    fields = seen[1]
    assert fields["x-swarmgate-key-id"] == "first"
    assert fields["x-swarmgate-attempts"] == "1"
    assert fields["x-swarmgate-rung"] == "0"
    assert fields["x-swarmgate-queue-ms"] == "0"
    assert fields["x-swarmgate-limit-revision"] == "1"
    assert fields["x-request-id"].startswith("req-")
    assert fields["ratelimit-policy"] == '"up/first: requests per 60s";q=100;w=60'
    left = [int(re.fullmatch(r'"up/first: requests per 60s";r=(\d+);t=\d+', one["ratelimit"])[1]) for one in seen]
    assert left[0] == left[1] + 1 > 0


def asked(bench):
    """One call that does not wait: what its answer says of our limit."""
    ask = request("/v1/chat/completions", b'{"model":"m","max_tokens":3}', "POST", "x-swarmgate-wait: 0s")
    bench.client.data_received(ask)
    while bench.dialler.dials:
        bench.dialler.succeed()
    if bench.gate.pump.open:
        bench.dialler.opened[0][0].data_received(whole(UNARY))
    return re.search(rb"\r\nratelimit: ([^\r]*)", bench.wire.written[-1])[1].decode().rpartition('"')[2]


def limited(*limits):
    bench = Bench(TEXT.partition("limits")[0] + f"limits = {json.dumps(limits)}\n")
    warm(bench.gate)
    return bench


def test_a_slot_is_told_from_when_it_is_free():
    bench = limited("1 per 10s")  # busy for 10 s / 80 % after its answer
    assert asked(bench) == ";r=0;t=13"
    bench.pass_time(5_000)
    assert asked(bench) == ";r=0;t=8"  # deferred
    bench.pass_time(8_000)
    assert asked(bench) == ";r=0;t=13"


def test_of_several_slots_the_next_one_is_told():
    bench = limited("2 per 10s")
    assert asked(bench) == ";r=1;t=13"
    bench.pass_time(4_000)
    assert asked(bench) == ";r=0;t=9"


def test_where_a_call_s_end_decides_no_time_is_told():
    bench = limited("1 concurrent")
    assert asked(bench) == ";r=0"
    other = Door(bench.gate.front, bench.gate.sweep, bench.gate.doors, 100)
    other.connection_made(Wire())
    other.data_received(request(body=b'{"model":"m"}'))
    assert len(bench.gate.pump.open) == 1
    bench.client.data_received(request("/v1/chat/completions", b'{"model":"m"}', "POST", "x-swarmgate-wait: 0s"))
    while bench.dialler.dials:
        bench.dialler.succeed()
    assert b"429 Too Many" in bench.wire.written[-1]
    assert b'\r\nratelimit: "up: concurrent";r=0\r\n' in bench.wire.written[-1]


def test_a_counter_is_told_from_when_its_oldest_slice_is_forgotten():
    bench = limited("2000 per 1d")
    told = asked(bench)
    assert 86_400 <= int(told.partition(";t=")[2]) <= 86_400 * 25 // 24


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("gpt-4o-mini", b"gpt-4o-mini"),
        ("caf\u00e9", b"caf?"),
        ("m\r\nset-cookie: a=1", rb"'m\r\nset-cookie: a=1'"),
    ],
)
def test_where_no_route_renames_it_the_model_is_the_caller_s(asked, told):
    bench = Bench(TEXT)
    warm(bench.gate)
    bench.client.data_received(request(body=json.dumps({"model": asked}).encode()))
    bench.dialler.succeed()
    bench.dialler.opened[0][0].data_received(whole(UNARY))
    assert b"\r\nx-swarmgate-model: %b\r\n" % told in bench.wire.written[-1]


def test_of_what_is_not_read_no_model_is_told():
    bench = Bench(TEXT)
    warm(bench.gate)
    bench.client.data_received(request("/v1/files", b"{}", "POST"))
    bench.dialler.succeed()
    bench.dialler.opened[0][0].data_received(whole(UNARY))
    assert b"x-swarmgate-key-id" in bench.wire.written[-2]
    assert b"x-swarmgate-model" not in bench.wire.written[-2]


@pytest.mark.parametrize(
    ("published", "item"),
    [
        (Published(5, 1_500), b'"a \\"b\\\\";q=5;w=2'),
        (Published(5, unit=Unit.CONCURRENT), b'"a \\"b\\\\";q=5;qu="concurrent-requests"'),
        (Published(9, 60_000, Unit.TOKENS), b'"a \\"b\\\\";q=9;w=60;qu="tokens"'),
    ],
)
def test_a_policy_as_an_item(published, item):
    assert policy('a "b\\', published) == item
