"""TI-07: a team that fills the gate with calls that wait leaves room for others; one that is alone has all of it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wires import Bench, Wire

from records import a_call
from swarmgate.core.crowd import Crowd
from swarmgate.core.scope import Scope, key_hash
from swarmgate.gate.service import Door

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { only = "env:KEY" }
limits = ["1 concurrent"]
"""
ROOM = 100
TEAMS = {"sgk_red": "red", "sgk_blue": "blue", "sgk_green": "green"}


class Full:
    """A gate with room for a hundred calls, of which one can be sent."""

    def __init__(self, teams):
        self.bench = Bench(TEXT)
        self.bench.gate.desk.crowd.fill(ROOM)
        keeper = self.bench.gate.ask_for_keys(required=True)
        keeper.replace(b"p", {key_hash(key, b"p"): Scope(key, TEAMS[key]) for key in teams})
        self.number = 0

    def ask(self, key, path="/v1/chat/completions"):
        """The status of a call by an agent of a new name; 0 = it waits."""
        bench, self.number = self.bench, self.number + 1
        door, wire = Door(bench.gate.front, bench.gate.sweep, bench.gate.doors, 10 * ROOM), Wire()
        door.connection_made(wire)
        body = json.dumps({"model": "m", "messages": []}).encode()
        words = f"x-swarmgate-key: {key}\r\nx-swarmgate-agent: a{self.number}\r\nx-swarmgate-wait: 300s\r\n"
        head = f"POST {path} HTTP/1.1\r\nhost: g\r\n{words}content-length: {len(body)}\r\n\r\n"
        door.data_received(head.encode() + body)
        return int(wire.written[0].split()[1]) if wire.written else 0

    def flood(self, key, times):
        """Ask as often as one can; a few between two looks of the gate."""
        found = []
        for _ in range(times):
            found.append(self.ask(key))
            if len(found) % 4 == 0:
                self.bench.pass_time(250)
        return found


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/images/generations"])
def test_ti_07_who_fills_the_gate_leaves_room_for_others(path):
    gate = Full(["sgk_red", "sgk_blue"])
    found = gate.flood("sgk_red", 3 * ROOM)
    assert set(found) == {0, 503}
    assert 80 <= found.count(0) <= 84  # it is counted a few times a second
    assert [gate.ask("sgk_blue", path) for _ in range(10)] == [0] * 10
    assert gate.ask("sgk_red", path) == 503


def test_one_team_alone_has_all_the_room_there_is():
    gate = Full(["sgk_red"])
    assert gate.flood("sgk_red", 3 * ROOM).count(0) == ROOM


@given(st.lists(st.sampled_from(sorted(TEAMS)), max_size=400))
def test_ti_07_no_team_has_more_than_four_times_what_is_left_when_it_comes(order):
    crowd, calls = Crowd(ROOM), []

    for team in order:
        crowd.count(calls, is_crowded=True)
        if len(calls) < ROOM and not crowd.is_too_much(team, calls):
            left, own = ROOM - len(calls), sum(one.tenant == team for one in calls)
            assert own < 4 * left
            calls.append(a_call())
            calls[-1].tenant = team
    assert len(calls) <= ROOM
