from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.lab.errors import LabError
from swarmgate.lab.traces.mix import CONTEXT_TOKENS, PARTS, UNFIT, workload
from swarmgate.lab.traces.players import Character, closed_players, open_players
from swarmgate.lab.traces.reading import Trace
from swarmgate.lab.traces.rows import TraceCall
from swarmgate.lab.traces.shipped import origins, shipped_trace
from swarmgate.lab.workload import stream

SOMEBODY = Character("load", "literature", "P1", "model", CONTEXT_TOKENS)


def test_shipped_traces_name_source_and_licence():
    for name, origin in origins().items():
        trace = shipped_trace(name)
        assert len(trace.calls) == origin.calls
        assert origin.source
        assert origin.licence


def test_a_profile_that_is_neither_shipped_nor_a_file_is_told():
    with pytest.raises(LabError, match="'nope' is no file, and none of mix, azure"):
        workload("nope", agents=10)


def test_parts_are_the_whole():
    assert sum(part.agents_percent for part in PARTS) == sum(part.calls_percent for part in PARTS) == 100
    assert {part.trace for part in PARTS} <= set(origins())


def test_the_mix_is_the_default_and_one_kind_is_labelled():
    assert workload(agents=100).warning == ""
    assert workload("chatdev", agents=100).warning == UNFIT


def test_two_thousand_agents_make_the_users_load():
    loads = workload(agents=2_000, calls_per_s=133, seconds=60)
    assert len(loads.players) == 2_000
    wanted = list(stream(loads.players, 2_000))
    steady = [one for one in wanted if one.t_ms >= 10_000]
    calls = [one for one in steady if one.task_type != "fetch"]
    tokens = sum(one.prompt_tokens + one.output_tokens for one in calls)
    assert len(calls) / 50 >= 100  # QPS
    assert tokens * 60 / 50 >= 48_000_000  # TPM
    assert {one.priority for one in calls} == {"P0", "P1", "P2"}
    assert {one.effect for one in calls} == {"read", "write"}
    assert max(one.prompt_tokens for one in calls) <= CONTEXT_TOKENS
    assert len({one.target for one in steady if one.task_type == "fetch"}) > 100


arrivals = st.lists(st.integers(0, 10_000), min_size=2, max_size=40).map(sorted)


@given(arrivals, st.integers(1, 7), st.integers(1, 100), st.floats(1.0, 60.0))
def test_time_is_scaled_and_counts_are_not(times, agents, wanted, seconds):
    trace = Trace("t", tuple(TraceCall(t, n + 1, 1) for n, t in enumerate(times)))
    players = open_players(trace, SOMEBODY, agents, wanted / seconds, seconds)
    played = list(stream(players))
    assert len(played) == wanted
    assert Counter(one.prompt_tokens for one in played) == Counter(n % len(times) + 1 for n in range(wanted))
    assert all(0 <= one.t_ms <= seconds * 1_000 for one in played)
    # What came at one instant comes at one instant: bursts stay.
    together = sum(a == b for a, b in pairwise(times[:wanted]))
    assert sum(a.t_ms == b.t_ms for a, b in pairwise(played[: len(times)])) >= together


@given(st.integers(1, 20), st.integers(500, 5_000))
def test_a_closed_agent_waits_for_its_answer_and_then_fetches(agents, answer_ms):
    calls = tuple(TraceCall(t, 5, 5, "s", ("a.org", "b.org")) for t in (0, 1_000, 9_000))
    for player in closed_players(Trace("t", calls), SOMEBODY, agents, agents / 10, 60):
        free_ms, kinds = 0, []
        while (wanted := player.next(free_ms)) is not None:
            assert wanted.t_ms >= free_ms
            kinds.append(wanted.target)
            free_ms = wanted.t_ms + answer_ms
        assert kinds == [("model", "a.org", "b.org")[n % 3] for n in range(len(kinds))]


def test_what_cannot_be_is_said():
    trace = Trace("t", (TraceCall(0, 1, 1, "s"),))
    with pytest.raises(LabError, match="use more agents"):
        closed_players(trace, SOMEBODY, 1, 10.0, 60)
    for wrong in ({"agents": 0}, {"seconds": 0}, {"calls_per_s": -1.0}, {"calls_per_s": float("nan")}):
        with pytest.raises(LabError):
            workload(**{"agents": 10, **wrong})


def test_the_same_load_twice_is_the_same():
    def once():
        return [tuple(one) for one in stream(workload(agents=60, seconds=5).players, 500)]

    assert once() == once()
