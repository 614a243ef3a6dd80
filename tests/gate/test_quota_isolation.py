"""TI-07: a team that asks a hundred times what it may have takes nothing from another: not budget, not time, not success."""

import json
from typing import NamedTuple

import pytest
from stage import UNARY, warm, whole
from wires import Bench, Wire

from swarmgate.core.scope import Scope, key_hash
from swarmgate.gate.service import Door

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { only = "env:KEY" }
limits = ["600 per 60s"]
[teams.red]
agents = ["-"]
[teams.blue]
agents = ["-"]
[egress]
presets = "off"
"""
RATE = 8  # a second: what the gate lets through
STEP_MS = 50
STEPS = 60  # three seconds
EVERY = 20  # steps between two calls of blue: one a second
ANSWER = whole(UNARY)


class Asked(NamedTuple):
    """One call: when it was asked, and the connection on which its answer comes."""

    at_step: int
    wire: Wire


class Swarm:
    """A gate before a target that answers at once, and calls of two teams on connections of their own."""

    def __init__(self):
        self.bench = Bench(TEXT)
        warm(self.bench.gate)
        keeper = self.bench.gate.ask_for_keys(required=True)
        scopes = {f"sgk_{team}": Scope(team, team) for team in ("red", "blue")}
        keeper.replace(b"p", {key_hash(key, b"p"): scope for key, scope in scopes.items()})
        self.step = 0
        self.calls = {"red": [], "blue": []}  # that are not answered yet
        self.answered = []

    def ask(self, team, agent, priority="P1"):
        bench = self.bench
        door, wire = Door(bench.gate.front, bench.gate.sweep, bench.gate.doors, 100_000), Wire()
        door.connection_made(wire)
        body = json.dumps({"model": "m", "messages": []}).encode()
        words = f"x-swarmgate-key: sgk_{team}\r\nx-swarmgate-agent: {agent}\r\nx-swarmgate-wait: 2s\r\nx-swarmgate-priority: {priority}\r\n"
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n{words}content-length: {len(body)}\r\n\r\n"
        self.calls[team].append(Asked(self.step, wire))
        door.data_received(head.encode() + body)
        self.serve()

    def serve(self):
        """The target answers whatever has reached it."""
        bench = self.bench
        while bench.dialler.dials:
            bench.dialler.succeed()
        for end, wire in bench.dialler.opened:
            if wire.written:
                wire.written.clear()
                end.data_received(ANSWER)

    def play(self, flood, priority="P1"):
        """Ten seconds, in which red asks so often per step and blue once a second."""
        for self.step in range(STEPS):
            for number in range(flood):
                self.ask("red", f"a{self.step * flood + number}", priority)
            if self.step % EVERY == 0:
                self.ask("blue", "b1")
            self.bench.pass_time(STEP_MS)
            self.serve()
            self.note()
        assert not self.bench.bugs

    def note(self):
        """What has been answered by now, and how long it took."""
        for team, calls in self.calls.items():
            for asked in calls:
                if asked.wire.written:
                    self.answered.append((team, self.step - asked.at_step, int(asked.wire.written[0].split()[1])))
            calls[:] = [asked for asked in calls if not asked.wire.written]

    def of(self, team):
        """Steps that each call took, and how many were answered well."""
        found = [(steps, status) for which, steps, status in self.answered if which == team]
        return [steps for steps, _ in found], sum(status == 200 for _, status in found)


@pytest.mark.parametrize("priority", ["P1", "P0"])
def test_ti_07_a_flood_of_one_team_is_not_felt_by_the_other(priority):
    alone, beside = Swarm(), Swarm()
    alone.play(0)
    flood = 100 * RATE * STEP_MS // 1_000  # a hundred times the whole limit
    beside.play(flood, priority)
    steps_alone, good_alone = alone.of("blue")
    steps_beside, good_beside = beside.of("blue")
    assert good_alone == len(steps_alone) == STEPS // EVERY
    assert good_beside == good_alone
    assert sum(steps_beside) <= sum(steps_alone) * 1.05 + 0.05 * len(steps_alone)
    assert beside.of("red")[1] >= 0.8 * RATE * STEPS * STEP_MS // 1_000  # and it has what it may have meanwhile
