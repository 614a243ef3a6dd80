"""What is answered without a call: paths, methods, sizes, names, words, and a gate that stops."""

import json

import pytest
from stage import UNARY, warm, whole
from wires import Bench

from swarmgate.gate.front import authorities

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { only = "env:KEY" }
[routes]
fast = "up/real-name"
"""


def request(path="/v1/chat/completions", body=b'{"model":"fast"}', method="POST", *lines):
    head = [f"{method} {path} HTTP/1.1", "host: g", f"content-length: {len(body)}", *lines, "", ""]
    return "\r\n".join(head).encode() + body


def answered(raw, bench=None):
    """Status and error of what the gate says to one request."""
    bench = bench or Bench(TEXT)
    bench.client.data_received(raw)
    head, _, body = b"".join(bench.wire.written).partition(b"\r\n\r\n")
    bench.wire.written.clear()
    assert not bench.gate.pump.open
    assert not bench.dialler.dials
    assert b"x-should-retry: false" in head
    assert b"x-request-id: " in head
    said = json.loads(body)
    return int(head.split()[1]), said.get("error", said)


@pytest.mark.parametrize(
    ("raw", "status", "code", "words"),
    [
        (request("/nowhere"), 404, "caller_unknown_path", "/v1/chat/completions"),
        (request("/v1/chat/completions", b"", "GET"), 405, "caller_method", "POST"),
        (request(body=b"[]"), 400, "caller_bad_request", "one JSON object"),
        (request(body=b'{"model":"fast","model":"slow"}'), 400, "caller_bad_request", "twice"),
        (request(body=b'{"model":"fest"}'), 404, "caller_unknown_model", "fast"),
        (request("/as/agent=a"), 400, "caller_bad_request", "path to call"),
        (request("/as/prority=P0/v1/chat/completions"), 400, "caller_bad_request", "nearest is x-swarmgate-priority"),
        (
            request("/v1/embeddings", b'{"model":"fast"}', "POST", "x-swarmgate-wait: 5"),
            400,
            "caller_bad_request",
            "unit",
        ),
        (request("/v1/responses", b"{}", "POST", "x-swarmgate-effect: maybe"), 400, "caller_bad_request", "model"),
    ],
)
def test_refusals(raw, status, code, words):
    said, error = answered(raw)
    assert (said, error["code"]) == (status, code)
    assert words in error["message"]


def test_a_body_that_is_too_long_is_refused_before_it_is_read():
    bench = Bench(TEXT)
    bench.gate.models.most_body_bytes = 100
    assert answered(request(body=b" " * 101), bench)[0] == 413
    bench = Bench(TEXT)
    bench.gate.models.most_body_bytes = 100
    chunked = b"POST /v1/completions HTTP/1.1\r\nhost: g\r\ntransfer-encoding: chunked\r\n\r\n"
    assert answered(chunked + b"65\r\n" + b" " * 101 + b"\r\n", bench)[0] == 413


def test_a_gate_that_stops_takes_no_new_calls():
    bench = Bench(TEXT)
    bench.gate.desk.is_stopping = True
    assert answered(request(), bench)[1]["code"] == "gate_stopping"


def test_a_path_with_identity_serves_like_the_path_itself():
    bench = Bench(TEXT)
    warm(bench.gate)
    bench.client.data_received(request("/as/agent=a17,goal=g3,priority=P0/v1/chat/completions?api-version=1&key=sgk_1"))
    call = next(iter(bench.gate.pump.open))
    assert (call.step.agent, call.step.goal, call.rank) == ("a17", "g3", 0)
    bench.dialler.succeed()
    end, wire = bench.dialler.opened[0]
    head, _, body = wire.written[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/chat/completions?api-version=1 HTTP/1.1\r\n")
    assert json.loads(body) == {"model": "real-name"}
    end.data_received(whole(UNARY))
    assert bench.ends == ["answered"]
    assert b"x-swarmgate-model: real-name" in bench.wire.written[0]


def test_what_belongs_to_the_gate_stays_here():
    bench = Bench(TEXT)
    bench.client.data_received(
        request(
            "/v1/messages",
            b'{"model":"fast"}',
            "POST",
            "Authorization: Bearer sgk_agent",
            "X-Api-Key: sgk_agent",
            "Cookie: c",
            "traceparent: 00-" + "a" * 32 + "-" + "b" * 16 + "-01",
            "x-swarmgate-agent: a1",
            "OpenAI-Organization: theirs",
            "X-Goog-User-Project: theirs",
            "X-DashScope-WorkSpace: theirs",
            f"x-mine: sgk_0123456789_{'x' * 43}",
            "anthropic-version: 2023-06-01",
            "Connection: keep-alive, x-hop",
            "x-hop: 1",
            "Accept-Encoding: gzip",
        )
    )
    bench.dialler.succeed()
    sent = bench.dialler.opened[0][1].written[0].partition(b"\r\n\r\n")[0]
    names = [line.partition(b":")[0] for line in sent.split(b"\r\n")[1:]]
    assert names == [
        b"host",
        b"authorization",
        b"accept-encoding",
        b"x-swarmgate-hop",
        b"anthropic-version",
        b"content-length",
    ]
    assert b"authorization: Bearer sk-1\r\n" in sent
    assert b"accept-encoding: identity\r\n" in sent


def test_pipelined_requests_are_answered_in_order():
    bench = Bench(TEXT)
    warm(bench.gate)
    bench.client.data_received(request() + request(body=b"[]") + request())
    bench.dialler.succeed()
    end, _ = bench.dialler.opened[0]
    end.data_received(whole(UNARY))
    statuses = [raw.split()[1] for raw in bench.wire.written]
    assert statuses == [b"200", b"400"]
    end.data_received(whole(UNARY))
    assert bench.ends == ["answered", "answered"]


class Echo:
    """A surface that answers with what it was given."""

    def __init__(self, name):
        self.name = name

    def begin(self, end, head, path, said):
        end.respond(200, [(b"x-path", path)], f"{self.name} {said}".encode())


def served(front_setup, raw):
    bench = Bench(TEXT)
    bench.gate.front.own = authorities("127.0.0.1", 8787)
    front_setup(bench.gate.front)
    bench.client.data_received(raw)
    head, _, body = b"".join(bench.wire.written).partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    return int(head.split()[1]), fields.get("x-path"), body.decode()


def all_surfaces(front):
    front.exact[b"/a"] = Echo("exact")
    for prefix in (b"/a/", b"/a/b/", b"/to/"):
        front.serve_below(prefix, Echo(prefix.decode()))
    front.absolute, front.tunnels = Echo("absolute"), Echo("tunnels")


@pytest.mark.parametrize(
    ("start", "status", "path", "body"),
    [
        ("GET /a", 200, "/a", "exact None"),
        ("GET /a?b=/a/b/", 200, "/a?b=/a/b/", "exact None"),
        ("GET /a/x?y", 200, "/a/x?y", "/a/ None"),
        ("GET /a/b/c", 200, "/a/b/c", "/a/b/ None"),
        ("GET /as/agent=z/to/https/h/p?q", 200, "/to/https/h/p?q", "/to/ {'agent': 'z'}"),
        ("GET http://127.0.0.1:8787/a/x", 200, "/a/x", "/a/ None"),
        ("GET http://LOCALHOST:8787/as/goal=g/a", 200, "/a", "exact {'goal': 'g'}"),
        ("GET http://[::1]:8787/a", 200, "/a", "exact None"),
        ("GET http://other.org/a", 200, "http://other.org/a", "absolute None"),
        ("GET http://127.0.0.1:8788/a", 200, "http://127.0.0.1:8788/a", "absolute None"),
        ("GET https://127.0.0.1:8787/a", 200, "https://127.0.0.1:8787/a", "absolute None"),
        ("CONNECT h:443", 200, "h:443", "tunnels None"),
        ("GET http://127.0.0.1:8787", 404, None, None),
        ("OPTIONS *", 404, None, None),
        ("GET /b", 404, None, None),
    ],
)
def test_which_surface_serves_a_target(start, status, path, body):
    authority = start.split("://")[1].partition("/")[0] if "://" in start else start.split()[1]
    host = authority if "://" in start or start.startswith("CONNECT") else "g"
    said = served(all_surfaces, f"{start} HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())
    assert said[:2] == (status, path)
    assert body in {said[2], None}


@pytest.mark.parametrize("start", ["GET http://other.org/", "CONNECT h:443"])
def test_without_a_surface_proxy_forms_are_not_served(start):
    host = start.split()[1].removeprefix("http://").rstrip("/")

    def without(front):
        front.absolute = front.tunnels = None

    status, _, body = served(without, f"{start} HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())
    assert status == 404
    assert json.loads(body)["code"] == "caller_unknown_path"


def test_a_request_that_passed_this_gate_already_is_a_loop():
    bench = Bench(TEXT)
    warm(bench.gate)
    bench.client.data_received(request("/v1/responses", b'{"model":"fast"}', "POST", "x-swarmgate-hop: other"))
    bench.dialler.succeed()
    sent = bench.dialler.opened[0][1].written[0].partition(b"\r\n\r\n")[0]
    hops = [line.partition(": ")[2] for line in sent.decode().split("\r\n") if line.startswith("x-swarmgate-hop")]
    assert "other" in hops
    bench.dialler.opened[0][0].data_received(whole(UNARY))
    status, error = answered(request("/v1/responses", b"{}", "POST", f"x-swarmgate-hop: {', '.join(hops)}"))
    assert (status, error["code"]) == (508, "gate_loop")


def test_every_refusal_has_a_name_of_its_own():
    bench, names = Bench(TEXT), []
    for raw in (request("/nowhere"), request(body=b"[]"), request(body=b'{"model":"x"}'), b"GET / HTTP/0.9\r\n\r\n"):
        bench.client.data_received(raw)
        head, _, body = b"".join(bench.wire.written).partition(b"\r\n\r\n")
        bench.wire.written.clear()
        names += [line for line in head.split(b"\r\n") if line.startswith(b"x-request-id: ref-")]
        assert b'"error"' in body
    assert len(set(names)) == 4
