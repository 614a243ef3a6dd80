"""What is no request is told in the form that whoever sent it reads, where its path is known by then."""

import json

import pytest
from test_front import TEXT
from wires import Bench

from swarmgate.gate.hop import OUR_NAME
from swarmgate.http1.client_limits import BODY_MS, HEAD_MS
from swarmgate.http1.head_buffer import MAX_HEAD_BYTES

CHUNKED = b"transfer-encoding: chunked\r\n\r\n"
FAULTS = {
    "cl_too_large": (413, b"content-length: 9223372036854775808\r\n\r\n"),
    "cl_not_digits": (400, b"content-length: +1\r\n\r\n"),
    "te_not_chunked": (501, b"transfer-encoding: gzip\r\n\r\n"),
    "too_many_headers": (431, b"x: y\r\n" * 101 + b"\r\n"),
    "expect": (417, b"expect: foo\r\n\r\n"),
    "space_before_colon": (400, b"x : y\r\n\r\n"),
    "bare_lf": (400, b"x: y\n\r\n\r\n"),
    "host_repeated": (400, b"host: h\r\n\r\n"),
    "bad_chunk_size": (400, CHUNKED + b"zz\r\n"),
    "bad_chunk_end": (400, CHUNKED + b"1\r\nabc"),
    "bad_trailer": (400, CHUNKED + b"0\r\nhost: h\r\n\r\n"),
    "head_too_large": (431, b"x: " + b"y" * MAX_HEAD_BYTES),
    "head_timeout": (408, b"x: y\r\n"),
    "body_timeout": (408, b"content-length: 9\r\n\r\nabc"),
}
HOP = b"x-swarmgate-hop: (this gate)\r\n"
OPENAI, ANTHROPIC, PROBLEM = "openai", "anthropic", "problem"
PATHS = {
    b"POST /v1/chat/completions": OPENAI,
    b"POST /v1/responses": OPENAI,
    b"POST /v1/files": OPENAI,
    b"POST /v1/embeddings": OPENAI,
    b"POST /v1/messages": ANTHROPIC,
    b"POST /v1/messages/count_tokens": ANTHROPIC,
    b"POST /v1/messages?beta=true": ANTHROPIC,
    b"POST /as/agent=a17/v1/messages": ANTHROPIC,
    b"POST http://127.0.0.1:8787/v1/messages": ANTHROPIC,
    b"POST /to/http/far.example/v1/messages": PROBLEM,
    b"POST http://far.example/v1/messages": PROBLEM,
}


def form_of(head, said):
    """Which of the three forms an error has."""
    if b"application/problem+json" in head:
        assert said["status"] == int(head.split()[1])
        return PROBLEM, said["code"]
    error = said["error"]
    assert error["message"]
    if said.get("type") == "error":
        assert said["request_id"].encode() in head
        return ANTHROPIC, error["code"]
    return OPENAI, error["code"]


def refused(raw):
    """Head and JSON of the only answer to bytes that are no request."""
    bench = Bench(TEXT)
    bench.gate.front.own = {b"127.0.0.1:8787"}
    bench.client.data_received(raw)
    for wait_ms in (HEAD_MS, BODY_MS):
        if not bench.wire.written:
            bench.gate.sweep.look(bench.gate.sweep.now_ms + wait_ms + 1)
    head, _, body = b"".join(bench.wire.written).partition(b"\r\n\r\n")
    assert not bench.gate.pump.open
    assert not bench.dialler.dials
    assert bench.gate.front.refused == 1
    return head.lower(), json.loads(body)


@pytest.mark.parametrize("start", PATHS, ids=bytes.decode)
@pytest.mark.parametrize("name", FAULTS)
def test_hi_01_05_06_who_breaks_a_request_is_told_in_its_own_form(name, start):
    status, rest = FAULTS[name]
    host = b"far.example" if b"http://far" in start else b"127.0.0.1:8787" if b"http://" in start else b"g"
    head, said = refused(b"%b HTTP/1.1\r\nhost: %b\r\n%b" % (start, host, rest))
    assert int(head.split()[1]) == status
    assert form_of(head, said) == (PATHS[start], f"caller_{name}")
    assert b'proxy-status: swarmgate; error=http_request_error; details="caller_%b"' % name.encode() in head
    assert b"\r\nx-request-id: ref-" in head
    assert (b"x-should-retry: false" in head) is (status != 408)


def test_a_broken_connect_is_told_as_a_problem():
    head, said = refused(b"CONNECT far.example:443 HTTP/1.1\r\nhost: far.example:443\r\ncontent-length: 1\r\n\r\nx")
    assert form_of(head, said) == (PROBLEM, "caller_connect_body")


def test_an_anthropic_client_is_known_by_its_version_too():
    head, said = refused(b"GET /v1/models HTTP/1.1\r\nhost: g\r\nanthropic-version: 2023-06-01\r\nexpect: foo\r\n\r\n")
    assert form_of(head, said) == (ANTHROPIC, "caller_expect")


@pytest.mark.parametrize(
    "raw",
    [
        b"\x16\x03\x01",
        b"GET /v1/messages\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\nhost: g\n\n",
        b"POST x HTTP/1.1\r\n\r\n",
    ],
)
def test_where_no_path_is_known_the_usual_form_is_taken(raw):
    head, said = refused(raw)
    assert form_of(head, said)[0] == OPENAI
    assert b"proxy-status: swarmgate; error=http_request_error" in head
    assert b"x-request-id: ref-" in head


@pytest.mark.parametrize(
    ("start", "line", "form", "code"),
    [
        (b"GET /nowhere", b"", OPENAI, "caller_unknown_path"),
        (b"GET /nowhere", b"anthropic-version: 2023-06-01\r\n", ANTHROPIC, "caller_unknown_path"),
        (b"POST /v1/messages", HOP, ANTHROPIC, "gate_loop"),
        (b"POST /v1/responses", HOP, OPENAI, "gate_loop"),
        (b"GET /to/http/far.example/", HOP, PROBLEM, "gate_loop"),
    ],
)
def test_what_reaches_no_surface_is_told_in_the_same_form(start, line, form, code):
    bench = Bench(TEXT)
    host = b"far.example" if b"http://far" in start else b"g"
    bench.client.data_received(
        b"%b HTTP/1.1\r\nhost: %b\r\n%b\r\n" % (start, host, line.replace(b"(this gate)", OUR_NAME))
    )
    head, _, body = b"".join(bench.wire.written).partition(b"\r\n\r\n")
    assert form_of(head.lower(), json.loads(body)) == (form, code)
