"""Crawls: every page once, by the trace; the last one comes when the host that binds is through (issue: egress)."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmgate.cli.sim import resized
from swarmgate.config.problems import FileError
from swarmgate.lab.crawl import crawlers, tasks, with_hosts
from swarmgate.lab.scenario_file import load_shipped, parse
from swarmgate.lab.sim import arms, makespan
from swarmgate.lab.sim.verdicts import evaluate, violations
from swarmgate.lab.sim.world import World

ALL = Path(__file__).parents[3] / "shared/data/egress/deep_research_task_urls.jsonl"
TEXT = """
# three words of story
duration_s = 10
[[crawls]]
name = "c"
trace = "deep-research"
agents = 3
[[crawls.limits]]
kind = "sliding_log"
limit = 1
window_ms = 1_000
"""


def wanted_of(crawler):
    return list(iter(crawler.next, None))


def shown(scenario):
    """A run of the scenario: its world, and the checks that fail."""
    world = World(scenario, scenario.seed)
    world.run()
    return world, [verdict for verdict in evaluate(world, lambda _: world) if not verdict.holds]


@given(agents=st.integers(1, 250), seed=st.integers(0, 9))
@settings(max_examples=20, deadline=None)
def test_each_agent_asks_once_for_every_page_of_its_task_at_an_even_pace(agents, seed):
    crawl = parse(TEXT, "c").crawls[0].model_copy(update={"agents": agents})
    told = tasks(crawl)
    everyone = list(crawlers(crawl, Random(seed)))
    assert len({one.name for one in everyone}) == agents
    for number, crawler in enumerate(everyone):
        wanted = wanted_of(crawler)
        assert tuple(one.target for one in wanted) == told[number % len(told)]
        assert {after.t_ms - before.t_ms for before, after in pairwise(wanted)} <= {1_000}


def test_hosts_of_a_crawl_are_targets_with_its_limits_unless_a_table_has_others():
    own = '\n[[targets]]\nname = "en.wikipedia.org"\n[[targets.limits]]\nkind = "concurrency"\nlimit = 2\n'
    scenario = parse(TEXT + own, "c")
    few, whole = with_hosts(scenario), with_hosts(resized(scenario, 100, None))
    assert whole.target("en.wikipedia.org").limits[0].kind == "concurrency"
    assert whole.target("www.sciencedirect.com").limits[0].limit == 1
    assert len(few.targets) < len(whole.targets) == 970


OWNERS = """
[[crawls.group_limits]]
kind = "sliding_log"
limit = 2
window_ms = 1_000
"""


def test_hosts_of_one_owner_have_limits_together_too():
    world = World(resized(parse(TEXT + OWNERS, "c"), 100, None), 1)
    groups: dict[str, set[str]] = {}
    for name, policy in world.policies.items():
        (one,) = policy.shared
        assert one.name in {demand[0] for demand in policy.rung().routes["key-1"].fixed}
        groups.setdefault(one.name, set()).add(name)
    assert len(groups) < len(world.policies) == 970
    assert groups["group wikipedia.org:0"] == {"en.wikipedia.org", "zh.wikipedia.org"}


def test_a_limit_of_owners_that_no_gate_could_keep_is_told():
    with pytest.raises(FileError) as caught:
        parse(TEXT + OWNERS.replace("limit = 2", "limit = 2_251_799_813_685_249"), "c")
    assert [problem.field for problem in caught.value.problems] == ["crawls[0].group_limits[0].limit"]


@pytest.mark.parametrize(
    ("trace", "says"),
    [("deep-reserch", "is no file"), ("chatdev", "names no hosts"), ("/", "directory")],
)
def test_a_trace_that_leads_nowhere_is_told(trace, says):
    with pytest.raises(FileError, match=says) as caught:
        parse(TEXT.replace("deep-research", trace), "c")
    assert [problem.field for problem in caught.value.problems] == ["crawls[0].trace"]


@pytest.mark.skipif(not ALL.exists(), reason="the tasks lie outside the repository")
def test_the_shipped_trace_has_every_page_that_the_tasks_cite():
    cited = [json.loads(line)["urls"] for line in ALL.read_text().splitlines()]
    crawl = parse(TEXT, "c").crawls[0].model_copy(update={"agents": len(cited)})
    assert [len(one) for one in tasks(crawl)] == [len(urls) for urls in cited]


def test_a_hundred_agents_are_through_when_the_host_that_binds_is():
    world, failing = shown(resized(load_shipped("deep-research"), 100, 160))
    assert failing == []
    assert Counter(job.end for job in world.swarm.jobs) == {"answered": 1_735}
    told = makespan.as_json(world, [direct := arms.direct(world.scenario, 1)])
    assert (told["target"], told["requests"], told["window_ms"]) == ("www.sciencedirect.com", 84, 1_000)
    assert told["published_ms"] < told["no_headroom_ms"] < told["compiled_ms"] <= told["ms"]
    assert told["hosts"]["www.sciencedirect.com"]["over_limit"] == {
        "swarmgate": 0,
        "direct agents": direct.over_by_target["www.sciencedirect.com"],
    }
    assert direct.over_limit == sum(direct.over_by_target.values()) > 500


@pytest.mark.seeds
@pytest.mark.timeout(7_200)
def test_two_thousand_agents_are_through_when_the_host_that_binds_is():
    world, failing = shown(load_shipped("deep-research"))
    assert failing == []
    assert violations(world) == []
    assert Counter(job.end for job in world.swarm.jobs) == {"answered": 34_700}
