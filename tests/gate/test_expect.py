"""HI-08 at model routes: what a head alone forbids is refused before its body is asked for, never after a 100."""

import pytest
from stage import warm
from test_front import TEXT
from wires import Bench

BODY = b'{"model":"fast","messages":[]}'
STRICT = '\n[access]\nidentity = ["agent"]\n'
FORBIDDEN = [
    b"x-swarmgate-priority: P9",
    b"x-swarmgate-wait: soon",
    b"x-swarmgate-timeout: 5 parsecs",
    b"x-swarmgate-effect: maybe",
    b"x-swarmgate-agent: " + b"a" * 5_000,
]


def asked(path=b"/v1/chat/completions", *fields, text=TEXT):
    """A request's head of which the sender waits for 100; its body is there when it comes."""
    bench = Bench(text)
    warm(bench.gate)
    lines = (b"host: g", b"expect: 100-continue", b"content-length: %d" % len(BODY), *fields)
    bench.client.data_received(b"POST %b HTTP/1.1\r\n%b\r\n\r\n" % (path, b"\r\n".join(lines)))
    return bench


def said(bench):
    return b"".join(bench.wire.written)


@pytest.mark.parametrize("path", [b"/v1/chat/completions", b"/v1/messages", b"/v1/embeddings"])
@pytest.mark.parametrize("field", FORBIDDEN, ids=lambda field: field[:22].decode())
def test_hi_08_what_the_head_forbids_is_said_before_100(path, field):
    bench = asked(path, field)
    assert said(bench).startswith(b"HTTP/1.1 400 ")
    assert b"caller_" in said(bench)
    assert bench.dialler.dials == []
    assert bench.ends == []


def test_hi_08_a_class_in_the_path_is_judged_too():
    assert said(asked(b"/as/agent=a,priority=P9/v1/chat/completions")).startswith(b"HTTP/1.1 400 ")


def test_hi_08_who_must_say_who_it_is_hears_so_before_100_and_is_counted_once():
    bench = asked(text=TEXT + STRICT)
    assert said(bench).startswith(b"HTTP/1.1 400 ")
    assert bench.gate.desk.unattributed == 1


def test_hi_08_who_says_nothing_wrong_hears_100_and_is_served():
    bench = asked(b"/v1/chat/completions", b"x-swarmgate-priority: P0", b"x-swarmgate-agent: a")
    assert said(bench) == b"HTTP/1.1 100 Continue\r\n\r\n"
    bench.client.data_received(BODY)
    assert len(bench.dialler.dials) == 1
