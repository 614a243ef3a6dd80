"""A first rung that is late for long prompts only: short ones of other callers stay with it (llm_gateways 13), on virtual time."""

import json

import pytest
from stage import DONE, LAST, ROLE, STREAM_HEAD, UNARY, framed, token, warm, whole
from test_front import request
from test_triggers import TWO, sent_to, waits
from wires import Bench, Wire

from swarmgate.core.circuit import FEWEST_RESULTS, FIRST_OPEN_MS
from swarmgate.core.prompt_size import PROMPT_BOUNDS
from swarmgate.gate.service import Door

LONG, SHORT = PROMPT_BOUNDS[0] + 1, 9
STREAM = STREAM_HEAD + framed(ROLE) + framed(token("a")) + framed(DONE) + LAST
TARGETS = {b"127.0.0.1:7": "first", b"127.0.0.1:8": "second"}


class Caller:
    """One more connection of an agent to the gate of a bench."""

    def __init__(self, bench):
        self.bench, self.wire = bench, Wire()
        gate = bench.gate
        self.door = Door(gate.front, gate.sweep, gate.doors, 100)
        self.door.connection_made(self.wire)

    def ask(self, tokens, *, stream=True):
        said = {"model": "m", "stream": stream, "max_tokens": 9, "messages": [{"content": "x" * 4 * tokens}]}
        self.door.data_received(request(body=json.dumps(said).encode()))
        sent_to(self.bench)

    @property
    def rung(self):
        """Which rung its answer came from."""
        return b"".join(self.wire.written).partition(b"x-swarmgate-rung: ")[2][:1]


class Slow:
    """Both targets: the first says nothing to long prompts, and answers short ones at once; the second answers all."""

    def __init__(self, *, is_dead=False):
        self.bench, self.answered, self.is_dead = Bench(TWO), {}, is_dead
        self.hits = []  # (target, whether the prompt is long)
        self.silent = []  # ends of connections on which nothing was said yet
        warm(self.bench.gate)

    def play(self, ms=0):
        """Answer what came to the targets while so much time passes."""
        for _ in range(1 + ms // 250):
            for end, wire in self.bench.dialler.opened:
                raw = b"".join(wire.written[self.answered.get(wire, 0) :])
                self.answered[wire] = len(wire.written)
                if raw:
                    self._hit(end, raw)
            if ms:
                waits(self.bench, 250)

    def _hit(self, end, raw):
        target = TARGETS[raw.partition(b"host: ")[2].partition(b"\r\n")[0]]
        is_long = len(raw) > 4 * PROMPT_BOUNDS[0]
        self.hits.append((target, is_long))
        if target == "first" and (is_long or self.is_dead):
            self.silent.append(end)
        elif b'"stream":true' in raw.replace(b" ", b""):
            end.data_received(STREAM)
        else:
            end.data_received(whole(UNARY))


def flood(slow, tokens=LONG, *, stream=True):
    """So many calls at once that the breaker has enough results, until all of them are served by the second rung."""
    callers = [Caller(slow.bench) for _ in range(FEWEST_RESULTS)]
    for caller in callers:
        caller.ask(tokens, stream=stream)
    slow.play(9_000 if stream else 31_000)
    assert {caller.rung for caller in callers} == {b"1"}


def served(slow, tokens, *, stream=True):
    """The rung that serves one more call, and what the targets saw of it."""
    caller, before = Caller(slow.bench), len(slow.hits)
    caller.ask(tokens, stream=stream)
    slow.play()
    return caller.rung, [target for target, _ in slow.hits[before:]]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_llm_gateways_13_long_prompts_that_are_late_send_no_short_one_away(stream):
    slow = Slow()
    flood(slow, stream=stream)
    assert served(slow, SHORT) == (b"0", ["first"])
    assert served(slow, SHORT, stream=False) == (b"0", ["first"])
    assert served(slow, LONG, stream=stream) == (b"1", ["second"])  # it does not wait to learn what the others did


def test_long_ones_are_spared_the_wait_though_short_ones_are_served_all_the_time():
    slow = Slow()
    for _ in range(3 * FEWEST_RESULTS):
        assert served(slow, SHORT) == (b"0", ["first"])
    flood(slow)
    assert served(slow, LONG) == (b"1", ["second"])
    assert served(slow, SHORT) == (b"0", ["first"])


def test_llm_gateways_13_a_first_rung_that_is_silent_for_all_is_passed_over_by_all():
    slow = Slow(is_dead=True)
    flood(slow, SHORT)
    assert served(slow, SHORT) == (b"1", ["second"])
    assert served(slow, LONG) == (b"1", ["second"])


def test_a_long_prompt_finds_out_when_long_ones_are_read_in_time_again():
    slow = Slow()
    flood(slow)
    slow.play(FIRST_OPEN_MS)
    assert served(slow, SHORT) == (b"0", ["first"])
    probe = Caller(slow.bench)
    probe.ask(LONG)
    slow.play()
    assert slow.hits[-1] == ("first", True)
    assert served(slow, LONG) == (b"1", ["second"])  # beside the probe
    slow.silent.pop().data_received(STREAM)
    assert probe.rung == b"0"
    Caller(slow.bench).ask(LONG)
    slow.play()
    assert slow.hits[-1] == ("first", True)
