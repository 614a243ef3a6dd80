"""A caller's own `x-request-id`: kept with its call, echoed beside ours, and sent to nobody."""

import pytest
from stage import UNARY, warm, whole
from test_front import TEXT, request
from wires import Bench, Wire

from swarmgate.gate.identity import UNSAID, read_identity
from swarmgate.gate.service import Door

OWN = "x-request-id: trace-17/a=b"
BODY = b'{"model":"fast"}'
LONGEST = "y" * 128
KEY = "sgk_0123456789_" + "x" * 43


def fields_of(written):
    head = written.partition(b"\r\n\r\n")[0].decode()
    return dict(line.split(": ", 1) for line in head.split("\r\n")[1:])


@pytest.mark.parametrize("said", [b"trace-17/a=b", b"0", LONGEST.encode()])
def test_a_sane_one_is_read(said):
    assert read_identity({b"x-request-id": said}).client_request_id == said.decode()


@pytest.mark.parametrize(
    "said", [b"", LONGEST.encode() + b"y", b"a b", b"\xff", "\u00e9".encode(), b"a, b", KEY.encode()]
)
def test_any_other_is_as_if_there_were_none(said):
    assert read_identity({b"x-request-id": said}) == UNSAID


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/files"])
def test_it_is_echoed_beside_ours_and_not_sent(path):
    bench = Bench(TEXT)
    warm(bench.gate)
    for own in (OWN, "x-request-id: other"):
        bench.client.data_received(request(path, BODY, "POST", own))
        while bench.dialler.dials:
            bench.dialler.succeed()
        end, wire = bench.dialler.opened[0]
        assert b"x-request-id" not in wire.written[-1]
        end.data_received(whole(UNARY))
        fields = fields_of(bench.wire.written[-1 if path != "/v1/files" else 0])
        assert fields["x-swarmgate-client-request-id"] == own.partition(": ")[2]
        assert fields["x-request-id"].startswith("req-")
        bench.wire.written.clear()
    ended = [call.client_request_id for call, *_ in bench.gate.callers.ended]
    assert sorted(ended) == ["other", "trace-17/a=b"]


@pytest.mark.parametrize(("more", "status"), [("x-swarmgate-wait: 0s", b"429"), ("x-swarmgate-timeout: 1ms", b"504")])
def test_a_deferral_and_an_error_have_it_too(more, status):
    bench = Bench(TEXT.replace("[routes]", 'limits = ["1 concurrent"]\n[routes]'))
    warm(bench.gate)
    bench.client.data_received(request(body=BODY))
    bench.dialler.succeed()
    other, wire = Door(bench.gate.front, bench.gate.sweep, bench.gate.doors, 100), Wire()
    other.connection_made(wire)
    other.data_received(request("/v1/responses", BODY, "POST", OWN, more))
    while bench.dialler.dials:
        bench.dialler.succeed()
    bench.pass_time(1_000)
    (said,) = wire.written
    assert said.split()[1] == status
    assert fields_of(said)["x-swarmgate-client-request-id"] == "trace-17/a=b"
