from itertools import pairwise, takewhile
from random import Random
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.lab.errors import LabError
from swarmgate.lab.scenario import Load
from swarmgate.lab.workload import KINDS, LoadKind, agents, lengths, stream

kinds = st.sampled_from(get_args(LoadKind))


def demand(**fields):
    return Load(**{"name": "load", "kind": "hypotheses", "agents": 3, "target": "models"} | fields).demand()


def calls(until_ms, answer_ms=0, seed=1, **fields):
    swarm = agents(demand(**fields), Random(seed))
    return list(takewhile(lambda wanted: wanted.t_ms < until_ms, stream(swarm, answer_ms)))


@given(kinds, st.integers(0, 2**32), st.integers(0, 30_000), st.sampled_from(["open", "closed"]))
def test_a_stream_is_ordered_reproducible_and_counts_each_agents_calls(kind, seed, answer_ms, arrivals):
    drawn = calls(120_000, answer_ms, seed, kind=kind, arrivals=arrivals)
    assert drawn == calls(120_000, answer_ms, seed, kind=kind, arrivals=arrivals)
    assert all(one.t_ms <= other.t_ms for one, other in pairwise(drawn))
    for agent in ("load-1", "load-2", "load-3"):
        own = [wanted for wanted in drawn if wanted.agent == agent]
        assert [wanted.op for wanted in own] == list(range(1, len(own) + 1))
    assert len({wanted.call_id for wanted in drawn}) == len(drawn)


@given(kinds, st.integers(0, 2**32))
def test_calls_carry_what_their_kind_says(kind, seed):
    for wanted in calls(60_000, seed=seed, kind=kind):
        assert wanted.priority == KINDS[kind].priority
        assert wanted.effect == KINDS[kind].effect
        assert wanted.deadline_ms == wanted.t_ms + KINDS[kind].deadline_ms
        assert wanted.output_tokens <= wanted.output_cap_tokens
        assert (wanted.idempotency_key is not None) == (wanted.effect == "write")
        assert (wanted.prompt_tokens > 0) == (kind != "fetch")


@given(st.integers(0, 2**32), st.integers(1, 60_000))
def test_a_closed_agent_waits_for_its_answer_and_an_open_one_does_not(seed, answer_ms):
    closed = calls(300_000, answer_ms, seed, agents=1, per_minute=20)
    assert all(other.t_ms - one.t_ms >= answer_ms for one, other in pairwise(closed))
    opened = calls(300_000, answer_ms, seed, agents=1, per_minute=20, arrivals="open")
    assert opened == calls(300_000, 0, seed, agents=1, per_minute=20, arrivals="open")


@given(st.integers(0, 2**32), st.integers(1, 5))
def test_another_agent_changes_no_other(seed, count):
    few = calls(60_000, seed=seed, agents=count)
    more = calls(60_000, seed=seed, agents=count + 1)
    assert few == [wanted for wanted in more if wanted.agent != f"load-{count + 1}"]


@pytest.mark.parametrize("arrivals", ["open", "closed"])
@pytest.mark.parametrize("per_minute", [0.5, 3, 60])
def test_the_rate_is_the_loads(arrivals, per_minute):
    minutes = 2_000 / per_minute
    drawn = calls(round(minutes * 60_000), agents=10, per_minute=per_minute, arrivals=arrivals)
    assert len(drawn) == pytest.approx(20_000, rel=0.05)


# means of the traces: Azure 1,155 and 211, Mooncake 12,035 and 343, ChatDev 1,625 and 478
@pytest.mark.parametrize(
    ("kind", "prompt", "output"), [("hypotheses", 1155, 211), ("literature", 12035, 343), ("protocol", 1625, 478)]
)
def test_lengths_have_the_means_of_their_traces(kind, prompt, output):
    assert lengths(kind)[0].mean() == pytest.approx(prompt, rel=0.05)
    assert lengths(kind)[1].mean() == pytest.approx(output, rel=0.05)


def test_the_users_mean_context_of_8k_is_a_matter_of_scale():
    drawn = calls(10_000_000, kind="literature", agents=20, prompt_percent=67)
    assert sum(wanted.prompt_tokens for wanted in drawn) / len(drawn) == pytest.approx(8_000, rel=0.05)


def test_a_load_keeps_its_hours_and_its_fixed_lengths():
    drawn = calls(10**9, from_s=60, until_s=120, prompt_tokens=32_000, output_tokens=9, per_minute=60)
    assert drawn
    assert all(60_000 <= wanted.t_ms < 120_000 for wanted in drawn)
    assert {(wanted.prompt_tokens, wanted.output_tokens, wanted.output_cap_tokens) for wanted in drawn} == {
        (32_000, 9, 1024)
    }


def test_a_gap_of_nothing_is_refused():
    with pytest.raises(LabError) as caught:
        agents(demand()._replace(gap_ms=0), Random(1))
    assert caught.value.field == "gap_ms"
