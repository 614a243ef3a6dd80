"""What a provider keeps is known to one account: whatever is about it goes with that account's keys, and with no other."""

import json

from stage import UNARY, warm, whole
from wires import Bench

from life import route, rung
from swarmgate.core.keys import KeyRing, QuotaScope
from swarmgate.core.outcome import Signal, classify
from swarmgate.core.pinned_ring import pinned

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = {{ a = "env:KEY", b = "env:KEY", c = "env:KEY" }}
{more}
"""
LAB = 'accounts = { lab = ["b", "a"] }'


class Files:
    """An agent that works with files; what each request went with."""

    def __init__(self, more=""):
        self.bench = Bench(TEXT.format(more=more))
        warm(self.bench.gate)

    def ask(self, way, status="200 OK", said=UNARY, *, body=b"{}"):
        """The key that a request went with, or the code of its refusal."""
        bench, before = self.bench, len(self.bench.wire.written)
        head = f"{way} HTTP/1.1\r\nhost: g\r\nx-swarmgate-wait: 0s\r\ncontent-length: {len(body)}\r\n\r\n"
        bench.client.data_received(head.encode() + body)
        if bench.dialler.dials:
            bench.dialler.succeed()
        if len(bench.wire.written) == before:
            bench.dialler.opened[-1][0].data_received(whole(said, status))
        head, _, body = b"".join(bench.wire.written[before:]).partition(b"\r\n\r\n")
        assert not bench.bugs
        found = [line for line in head.decode().split("\r\n") if line.startswith("x-swarmgate-key-id: ")]
        return found[0].partition(": ")[2] if found else json.loads(body)["error"]["code"]

    def model(self, **more):
        return self.ask("POST /v1/chat/completions", body=b'{"model":"m"}', **more)


KEPT = [
    "POST /v1/files",
    "GET /v1/files/f/content",
    "GET /v1/batches",
    "POST /v1/batches",
    "POST /v1/threads/t/runs",
    "DELETE /v1/files/f",
]


def test_what_is_kept_goes_with_one_key_and_what_is_not_with_all():
    agent = Files()
    assert {agent.ask(way) for way in KEPT * 3} == {"a"}
    assert {agent.ask("POST /v1/images/generations") for _ in range(9)} == {"a", "b", "c"}
    assert {agent.model() for _ in range(9)} == {"a", "b", "c"}
    assert agent.bench.reserved == 0


RATE, DEAD = classify(Signal(status=429)), classify(Signal(status=401))


def test_the_keys_of_one_account_stand_in_for_each_other():
    agent = Files(LAB)
    assert {agent.ask(way) for way in KEPT * 3} == {"b"}


def held(*scopes):
    """A ring, and the same held to its first account."""
    ring = KeyRing([QuotaScope(str(at), keys) for at, keys in enumerate(scopes)])
    return ring, pinned(rung("t", *[route(key) for keys in scopes for key in keys])._replace(ring=ring))


def test_a_dead_key_gives_way_to_another_of_its_account_and_then_to_none():
    ring, one = held(("a", "b"), ("c",))
    assert one.routes.keys() == {"a", "b"}
    assert [one.ring.candidates(1_000, n) for n in (1, 8)] == [("a",)] * 2
    ring.observe("a", DEAD, 900, 1_000)  # by a model call
    assert one.ring.candidates(1_000) == ("b",)
    one.ring.observe("b", DEAD, 900, 1_000)
    assert (one.ring.candidates(1_000), one.ring.back_at_ms(1_000), one.ring.ready(1_000)) == ((), None, False)
    assert ring.candidates(1_000) == ("c",)
    assert one.ring.revive()
    assert one.ring.ready(1_000)


def test_while_the_account_is_out_there_is_no_other_and_it_says_until_when():
    ring, one = held(("a",), ("b",))
    assert one.ring.observe("a", RATE, 1_000, 1_500)
    back_ms = one.ring.back_at_ms(1_500)
    assert one.ring.candidates(1_500) == ()
    assert back_ms > 1_500
    assert ring.candidates(1_500) == ("b",)
    assert one.ring.candidates(back_ms) == ("a",)
    assert one.ring.views(1_500).keys() == {"a"}


def test_one_account_needs_no_holding():
    ring, one = held(("a", "b"))
    assert one.ring is ring
