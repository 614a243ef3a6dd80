"""Hosts that take less than their policies say: what the gate is told, what is counted, and that it runs."""

import pytest

from swarmgate.config import parse
from swarmgate.lab.demo.hidden import (
    AT_ONCE,
    HOSTS,
    PART_MS,
    TOLD,
    TRUE,
    WANTED_PER_S,
    WINDOW_MS,
    HostFigures,
    Part,
    figures,
    gate_config,
    players,
    run_hidden,
    stand_ins,
)
from swarmgate.lab.witness import Arrival, Departure, Witness

ZERO_MS = 5_000
PASSES = PART_MS // WINDOW_MS * TRUE


def test_the_gate_is_told_three_times_what_is_true():
    config = parse(gate_config(9_103), {})
    hosts = stand_ins().hosts
    assert hosts.keys() == HOSTS.keys()
    for policy in config.policies.values():
        (limit,) = policy.limits
        assert (limit.amount, limit.window_ms) == (TOLD, WINDOW_MS)
        assert hosts[policy.hosts[0]].limits[0].limit in {TOLD // 3, AT_ONCE}


def test_agents_ask_for_more_than_there_is_at_an_even_pace():
    times = []
    for player in players(10):
        while (wanted := player.next()) is not None:
            times.append((wanted.target, wanted.t_ms))
    for host in HOSTS:
        own = sorted(t_ms for target, t_ms in times if target == host)
        assert len(own) == pytest.approx(WANTED_PER_S * 10, abs=3)
        assert len({t_ms // 1_000 for t_ms in own}) == 10
    assert WANTED_PER_S * PART_MS // 1_000 > PASSES


def witness(*arrivals):
    found = Witness()
    for number, (t_ms, ok) in enumerate(arrivals):
        found.arrived(Arrival(ZERO_MS + t_ms, str(number), 0, "", 1, ok))
    return found


def test_a_host_is_seen_in_parts_of_ten_seconds():
    seen = witness(*[(number * 100, number % 10 < 9) for number in range(250)])
    found = figures("sliding.example.org", seen, ZERO_MS, 25)
    assert found.parts == [Part(100, 10, 90 / PASSES), Part(100, 10, 90 / PASSES)]
    assert not found.found  # a tenth refused is too much
    assert len(figures("sliding.example.org", seen, ZERO_MS, 3).parts) == 1


def test_of_places_the_time_for_which_they_were_taken_counts():
    seen = witness((0, True), (0, True))
    for call in ("0", "1"):
        seen.departed(Departure(ZERO_MS + PART_MS, call, 0, 0))
    assert figures("at-once.example.org", seen, ZERO_MS, 10).parts == [Part(2, 0, 2 / AT_ONCE)]


def test_only_the_last_third_tells_whether_a_limit_was_found():
    bad, good = Part(100, 30, 0.7), Part(100, 2, 0.95)
    assert HostFigures("a", "b", [bad, bad, good]).found
    assert not HostFigures("a", "b", [good, good, bad]).found
    assert not HostFigures("a", "b", [good, good, Part(10, 0, 0.1)]).found


def test_it_runs_on_real_sockets(tmp_path):
    seconds = []
    found = run_hidden(2, tmp_path, seconds.append)
    assert [one.host for one in found] == list(HOSTS)
    assert all(one.parts[0].sent for one in found)
    assert max(seconds) > 1
