"""Where the operator asks who causes a call (P12), nothing leaves without it: by no door, and whoever reads the answer."""

import asyncio
from base64 import b64encode

import pytest
from outside import FAST, stage, to
from test_front import TEXT, answered, request
from wires import Bench

from swarmgate import config
from swarmgate.config.problems import FileError

ASKED = """
[access]
identity = ["agent", "goal"]
"""
WHO = {"x-swarmgate-agent": "a1", "x-swarmgate-goal": "g1"}
DOORS = {
    "path": ("GET", to("http://a.org/x"), {}),
    "absolute": ("GET", "http://a.org/x", {"host": "a.org"}),
    "absolute and upgraded": ("GET", "http://a.org/x", {"host": "a.org", "x-swarmgate-upgrade": "https"}),
    "tunnel": ("CONNECT", "a.org:443", {"host": "a.org:443"}),
    "only half": ("GET", to("http://a.org/x"), {"x-swarmgate-agent": "a1"}),
}


@pytest.mark.parametrize(("method", "target", "headers"), DOORS.values(), ids=DOORS)
def test_p12_what_says_too_little_is_refused_at_every_door_to_hosts(method, target, headers):
    async def play():
        async with stage(text=ASKED + FAST.replace("[egress]", '[egress]\nconnect = "tunnel"')) as on:
            answer = await on.caller.ask(method, target, headers)
            return answer, on.world.connections, on.gate.desk.unattributed

    answer, connections, counted = asyncio.run(play())
    assert (answer.status, answer.headers["content-type"]) == (400, "application/problem+json")
    assert (answer.said["code"], answer.said["status"]) == ("caller_identity_missing", 400)
    assert "x-swarmgate-goal" in answer.said["detail"]
    assert (connections, counted) == (0, 1)


@pytest.mark.parametrize(
    "headers", [WHO, {"proxy-authorization": "Basic " + b64encode(b"agent=a1,goal=g1:sgk_any").decode()}]
)
@pytest.mark.parametrize("door", ["path", "absolute", "tunnel"])
def test_p12_what_says_enough_goes_also_as_the_user_of_a_proxys_url(door, headers):
    method, target, usual = DOORS[door]

    async def play():
        async with stage(
            text=ASKED + FAST.replace("[egress]", '[egress]\nports = [80, 443]\nconnect = "tunnel"')
        ) as on:
            answer = await on.caller.ask(method, target, usual | headers)
            calls = [*on.gate.pump.open, *(call for call, *_ in on.gate.callers.ended)]
            return answer.status, [call.step[:3] for call in calls], on.gate.desk.unattributed

    assert asyncio.run(play()) == (200, [("a1", "", "g1")], 0)


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("/v1/chat/completions", ()),
        ("/v1/chat/completions", ("x-swarmgate-agent: a1",)),
        ("/as/agent=a1/v1/responses", ()),
        ("/v1/embeddings", ("x-swarmgate-goal: g1",)),
        ("/v1/files", ()),
        ("/v1/chat/completions", ("traceparent: 00-" + "a" * 32 + "-" + "b" * 16 + "-01",)),
    ],
)
def test_p12_model_routes_refuse_in_the_form_of_the_sdk(path, lines):
    bench = Bench(ASKED + TEXT)
    status, error = answered(request(path, b'{"model":"fast"}', "POST", *lines), bench)
    assert (status, error["code"], error["type"]) == (400, "caller_identity_missing", "invalid_request_error")
    assert error["param"] in {"x-swarmgate-agent", "x-swarmgate-goal"}
    assert bench.gate.desk.unattributed == 1


def test_p12_anthropics_sdk_reads_it_too():
    status, error = answered(request("/v1/messages", b'{"model":"fast"}'), Bench(ASKED + TEXT))
    assert (status, error["type"], error["code"]) == (400, "invalid_request_error", "caller_identity_missing")


def test_p12_a_kept_connection_is_asked_again_for_each_call():
    bench = Bench(ASKED + TEXT)
    named = request(
        "/v1/chat/completions", b'{"model":"nope"}', "POST", *[f"{name}: {said}" for name, said in WHO.items()]
    )
    codes = [answered(raw, bench)[1]["code"] for raw in (named, request(), named, request())]
    assert codes == ["caller_unknown_model", "caller_identity_missing"] * 2


def test_words_that_nobody_knows_are_no_identity():
    with pytest.raises(FileError, match="goat"):
        config.parse('[access]\nidentity = ["goat"]\n', {})
