"""What answers say is left of a key's quota reaches its ring, and keys are weighed by it."""

import re
from collections import Counter

import pytest
from stage import UNARY, whole
from wires import Bench

BODY = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'
ASK = b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\ncontent-length: %d\r\n\r\n%b" % (len(BODY), BODY)
TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
provider = "%s"
keys = { rich = "env:RICH", poor = "env:POOR" }
"""


class TwoKeys(Bench):
    """A gate with two keys at one target; `extra` are the answer's headers by key."""

    def __init__(self, provider, extra):
        super().__init__(TEXT % provider)
        self.extra = extra
        self.used = Counter()

    def call(self):
        self.client.data_received(ASK)
        if self.dialler.dials:
            self.dialler.succeed()
        end, wire = self.dialler.opened[-1]
        key = re.search(rb"(?:Bearer |api-key: )([a-z]+)", wire.written.pop())[1].decode()
        self.used[key] += 1
        end.data_received(whole(UNARY, extra=self.extra[key]))
        self.pass_time(10)
        return key


def left(remaining, limit, reset, suffix="-tokens"):
    return (
        f"x-ratelimit-limit{suffix}: {limit}\r\nx-ratelimit-remaining{suffix}: {remaining}\r\n"
        f"x-ratelimit-reset{suffix}: {reset}\r\n"
    )


def two_keys(provider, rich, poor, monkeypatch):
    from swarmgate import config

    parse = config.parse
    monkeypatch.setattr(config, "parse", lambda text, _environment: parse(text, {"RICH": "rich", "POOR": "poor"}))
    return TwoKeys(provider, {"rich": rich, "poor": poor})


@pytest.mark.parametrize(
    ("rich", "poor"),
    [
        (left(9_000, 9_000, "60s"), left(1_000, 9_000, "60s")),  # the window is used up at the poor one
        (left(9_000, 9_000, "2ms"), left(1_000, 1_000, "0s")),  # always refilled: the windows are unlike
    ],
)
def test_keys_are_weighed_by_what_is_left(rich, poor, monkeypatch):
    bench = two_keys("openai", rich, poor, monkeypatch)
    for _ in range(256):  # the first plan is made before anything is told
        bench.call()
    assert abs(bench.used["rich"] - bench.used["poor"]) <= 2
    bench.used.clear()
    for _ in range(1_000):
        bench.call()
    assert 870 <= bench.used["rich"] <= 930


def test_a_key_that_says_that_nothing_is_left_rests_until_its_reset(monkeypatch):
    bench = two_keys("azure", left(9, 9, "60"), left(0, 9, "20"), monkeypatch)
    while bench.call() != "poor":
        pass
    bench.used.clear()
    for _ in range(300):
        bench.call()
    assert bench.used == {"rich": 300}
    bench.pass_time(20_000)
    assert "poor" in [bench.call() for _ in range(300)]
