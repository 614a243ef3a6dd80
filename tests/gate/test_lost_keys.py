"""SC-06: a key that is revoked sends nothing more: not what waits in line, not what was begun to be said; what runs goes on."""

import json

import pytest
from stage import UNARY, warm, whole
from wires import Bench, Wire

from swarmgate.core.scope import NOBODY, Scope, key_hash
from swarmgate.gate.desk import Desk
from swarmgate.gate.service import Door

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = {{ only = "env:KEY" }}
limits = ["{limit}"]
[egress]
unknown = "1000 per 1s"
ceiling = "1000 per 1s"
[resolve]
"site.test" = "127.0.0.1:9"
"""
SCOPES = {"sgk_leaked": Scope("leaked", "red"), "sgk_good": Scope("good", "blue")}
BODY = b'{"model":"m","messages":[]}'
ROUTES = ("/v1/chat/completions", "/v1/images/generations", "/to/http/site.test/x")
ANSWER = whole(UNARY)


class Scene:
    """A gate that asks for keys, and connections to it."""

    def __init__(self, limit="1 concurrent", *, required=True):
        self.bench = Bench(TEXT.format(limit=limit))
        warm(self.bench.gate)
        self.keeper = self.bench.gate.ask_for_keys(required=required)
        self.keep(*SCOPES)

    def keep(self, *keys):
        """From now on these keys are good, as the order of the control process has it."""
        self.keeper.replace(b"p", {key_hash(key, b"p"): SCOPES[key] for key in keys})
        self.bench.gate.desk.end_lost()

    def begin(self, key, path=ROUTES[0], body=BODY, *, sent=None):
        """A request on a connection of its own, of whose body only so much is sent at first."""
        bench = self.bench
        door, wire = Door(bench.gate.front, bench.gate.sweep, bench.gate.doors, 100), Wire()
        door.connection_made(wire)
        head = f"POST {path} HTTP/1.1\r\nhost: g\r\nx-swarmgate-key: {key}\r\nx-swarmgate-wait: 60s\r\n"
        door.data_received(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body[:sent])
        self.dial()
        return door, wire

    def dial(self):
        while self.bench.dialler.dials:
            self.bench.dialler.succeed()

    def sends(self):
        return sum(b"".join(wire.written).count(b"HTTP/1.1") for _, wire in self.bench.dialler.opened)

    def answer(self):
        end, wire = next(pair for pair in self.bench.dialler.opened if pair[1].written)
        wire.written.clear()
        end.data_received(ANSWER)
        self.dial()


def said(wire):
    head, _, body = b"".join(wire.written).partition(b"\r\n\r\n")
    error = json.loads(body) if body else {}
    return int(head.split()[1]) if head else 0, error.get("error", error).get("code")


@pytest.mark.parametrize("path", ROUTES[:2])
def test_sc_06_what_waits_in_line_is_refused_at_once_and_what_runs_goes_on(path):
    scene = Scene()
    (_, first), (_, second), (_, good) = (scene.begin(key, path) for key in ("sgk_leaked", "sgk_leaked", "sgk_good"))
    assert scene.sends() == 1
    scene.keep("sgk_good")
    assert said(second) == (401, "caller_key_refused")
    assert (said(first), said(good)) == ((0, None), (0, None))
    scene.answer()
    assert said(first)[0] == 200  # it is paid for, and a write must not be torn
    scene.answer()
    assert said(good)[0] == 200
    assert scene.bench.ends == ["failed", "answered", "answered"]
    assert scene.bench.reserved == 0
    assert not scene.bench.bugs


def test_sc_06_what_ran_is_not_sent_again():
    scene = Scene("1000 per 1s")
    _, wire = scene.begin("sgk_leaked")
    scene.keep("sgk_good")
    end, sent = scene.bench.dialler.opened[0]
    sent.written.clear()
    end.data_received(whole({"error": {"message": "down"}}, "503 Down"))
    for _ in range(100):
        scene.bench.pass_time(100)
        scene.dial()
    assert said(wire)[0] in {401, 503}
    assert scene.sends() == 0
    assert not scene.bench.bugs


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("path", ROUTES)
def test_sc_06_a_request_that_had_begun_to_come_in_is_refused(path, required):
    scene = Scene("1000 per 1s", required=required)
    door, wire = scene.begin("sgk_leaked", path, sent=5)
    scene.keep("sgk_good")
    door.data_received(BODY[5:])
    scene.dial()
    assert said(wire) == (401, "caller_key_refused")
    assert scene.sends() == 0
    assert not scene.bench.bugs
    if path in ROUTES[:2]:
        _, good = scene.begin("sgk_good", path)
        scene.answer()
        assert said(good)[0] == 200


def test_nobody_is_lost_where_no_key_was_shown():
    scene = Scene(required=False)
    (_, first), (_, second) = scene.begin(""), scene.begin("")
    scene.keep()
    scene.answer()
    scene.answer()
    assert said(first)[0] == said(second)[0] == 200
    assert not Desk.has_lost(scene.bench.gate.desk, NOBODY)
