"""What policy forbids is a call like any other: it has one end and a name, and whoever asked for it is on record (P4, P12)."""

import json

import pytest
from stage import warm
from wires import Bench

from swarmgate.core.scope import Scope, key_hash

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { one = "env:KEY" }
[targets.other]
base_url = "http://127.0.0.1:8/v1"
keys = { two = "env:KEY" }
[routes]
m = "up/m"
[task_types.literature]
context = 1_000
[egress]
deny = ["denied.org", "*.denied.org"]
"""
LONG = json.dumps({"model": "m", "messages": [{"role": "user", "content": "word " * 9_000}]}).encode()
SHORT = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'


def model_call(body, words=""):
    said = f"x-swarmgate-task-type: literature\r\nx-swarmgate-agent: a1\r\nx-swarmgate-step: s1\r\n{words}"
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n{said}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def fetch(path):
    said = "x-swarmgate-agent: a1\r\nx-swarmgate-step: s1\r\n"
    host = "g" if path.startswith("/") else path.split("/")[2]
    return f"GET {path} HTTP/1.1\r\nhost: {host}\r\n{said}\r\n".encode()


def declined(bench, asked):
    """Status, code and name of the answer; the call that stands under that name."""
    before = len(bench.wire.written)
    bench.client.data_received(asked)
    assert bench.bugs == []
    head, _, body = b"".join(bench.wire.written[before:]).partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    said = json.loads(body)
    code = said["error"]["code"] if "error" in said else said["code"]
    (call,) = [call for call, *_ in bench.gate.callers.ended if call.id == fields["x-request-id"]]
    return int(head.split()[1]), code, call


def has_ended_once(bench, call, reason, target):
    assert bench.ends == ["refused"]
    assert (call.step.agent, call.step.step, call.attempt) == ("a1", "s1", 0)
    assert (call.reason, call.rungs[call.rung].target) == (reason, target)
    assert not bench.gate.pump.open
    assert bench.reserved == 0


@pytest.mark.parametrize(
    ("text", "words", "asked", "told"),
    [
        (TEXT, "", LONG, (413, "policy_context_ceiling")),
        (TEXT, "x-swarmgate-key: sgk_x\r\nauthorization: Bearer sgk_x\r\n", SHORT, (403, "policy_key_scope")),
        (TEXT + '[agents]\nlimits = ["1 USD per 24h"]\n', "", SHORT, (403, "policy_price_unknown")),
        (TEXT, "x-swarmgate-effect: write\r\nx-swarmgate-task: t\r\nx-swarmgate-op: 1\r\n", SHORT,
         (503, "gate_records_lost")),
    ],
    ids=["too long a prompt", "a key for elsewhere", "money without a price", "a keyed write without records"],
)  # fmt: skip
def test_a_model_call(text, words, asked, told):
    bench = Bench(text)
    warm(bench.gate)
    if "sgk_x" in words:
        scope = Scope("k1", "", targets=("other",))
        bench.gate.ask_for_keys(required=False).replace(b"p", {key_hash("sgk_x", b"p"): scope})
    status, code, call = declined(bench, model_call(asked, words))
    assert (status, code) == told
    has_ended_once(bench, call, code, "up")


def test_lg_03_money_under_a_cap_is_not_spent_while_nothing_can_be_recorded():
    priced = '[agents]\nlimits = ["1 USD per 24h"]\n[prices."m"]\ninput = 1.0\noutput = 2.0\n'
    bench = Bench(TEXT + priced)
    warm(bench.gate)
    bench.gate.exchanges.till.is_on_record = lambda: False
    status, code, call = declined(bench, model_call(SHORT))
    assert (status, code) == (503, "gate_records_lost")
    has_ended_once(bench, call, code, "up")
    bench.gate.exchanges.till.is_on_record = lambda: True
    bench.client.data_received(model_call(SHORT))
    assert bench.dialler.dials


@pytest.mark.parametrize(
    ("path", "code", "target"),
    [
        ("/to/http/169.254.169.254/latest/", "policy_address", "http://169.254.169.254"),
        ("/to/https/x.denied.org/a", "policy_host", "https://x.denied.org"),
        ("/to/http/a.org:22/", "policy_port", "http://a.org:22"),
        ("http://b.denied.org/x", "policy_host", "http://b.denied.org"),
    ],
)
def test_a_request_to_a_host(path, code, target):
    bench = Bench(TEXT)
    status, said, call = declined(bench, fetch(path))
    assert (status, said) == (403, code)
    has_ended_once(bench, call, code, target)


def test_a_tunnel_that_nobody_could_meter():
    bench = Bench(TEXT)
    asked = b"CONNECT a.org:443 HTTP/1.1\r\nhost: a.org:443\r\nx-swarmgate-agent: a1\r\nx-swarmgate-step: s1\r\n\r\n"
    status, said, call = declined(bench, asked)
    assert (status, said) == (403, "policy_tunnel_unmetered")
    has_ended_once(bench, call, said, "https://a.org")
