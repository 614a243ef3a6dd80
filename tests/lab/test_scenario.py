import pytest

from swarmgate.config.problems import FileError
from swarmgate.lab.errors import LabError
from swarmgate.lab.limiters import ConcurrencyCap, FixedWindow, Gcra, SlidingLog, TokenBucket
from swarmgate.lab.scenario import Check, ConcurrencyLimit, Load, Target
from swarmgate.lab.scenario_file import load_shipped, parse, shipped

STORIES = {
    "deep-research",
    "hidden-limit",
    "p2-flood",
    "planner",
    "published-limits",
    "runaway",
    "store-outage",
    "twenty-keys",
    "two-thousand-agents",
}
SMALLEST = """
duration_s = 10
[[targets]]
name = "a"
[[targets.limits]]
kind = "sliding_log"
limit = 1
window_ms = 1000
[[loads]]
name = "l"
kind = "fetch"
target = "a"
agents = 1
"""


def test_every_story_is_shipped_and_told_in_three_lines():
    assert set(shipped()) == STORIES
    for name in shipped():
        story = load_shipped(name).story
        assert len(story.splitlines()) == 3, name
        assert all(len(line) > 30 for line in story.splitlines())


@pytest.mark.parametrize("name", sorted(STORIES))
def test_a_shipped_scenario_measures_and_checks_something(name):
    scenario = load_shipped(name)
    assert scenario.name == name
    assert scenario.warmup_s < scenario.duration_s
    assert scenario.checks
    assert any(check.metric == "violations" and check.holds(0) and not check.holds(1) for check in scenario.checks)
    for load in scenario.loads:
        scenario.target(load.target)


def test_the_swarm_of_two_thousand_has_two_thousand():
    assert load_shipped("two-thousand-agents").agents == 2_000


def test_twenty_keys_have_scopes_of_their_own_and_demand_for_all():
    scenario = load_shipped("twenty-keys")
    target = scenario.targets[0]
    assert len({target.scope_of(key) for key in range(target.keys)}) == 20
    load = scenario.loads[0]
    demand = load.demand()
    tokens_per_minute = load.agents * load.per_minute * demand.prompt.mean() * demand.prompt_percent / 100
    assert tokens_per_minute > 20 * 4_000_000


def test_hidden_limits_are_of_all_five_kinds_and_never_the_assumed_ones():
    limits = [target.limits[0] for target in load_shipped("hidden-limit").targets]
    assert {limit.kind for limit in limits} == {"fixed_window", "sliding_log", "token_bucket", "gcra", "concurrency"}
    assert all(limit.hidden and limit.assumed != limit.limit for limit in limits)


def test_the_outage_holds_every_fault_of_store_and_gate():
    kinds = {fault.kind for fault in load_shipped("store-outage").faults}
    assert kinds == {
        "store_lag",
        "store_frozen",
        "store_down",
        "store_flush",
        "clock_step",
        "gate_crash",
        "gate_pause",
    }


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        ({"kind": "fixed_window", "limit": 2, "window_ms": 100, "phase_ms": 30}, FixedWindow),
        ({"kind": "sliding_log", "limit": 2, "window_ms": 100}, SlidingLog),
        ({"kind": "token_bucket", "limit": 2, "window_ms": 100}, TokenBucket),
        ({"kind": "gcra", "limit": 2, "window_ms": 100}, Gcra),
        ({"kind": "concurrency", "limit": 2}, ConcurrencyCap),
    ],
)
def test_each_kind_of_limit_makes_its_own_limiter_for_each_scope(table, kind):
    limit = Target(name="a", limits=[table]).limits[0]
    limiter = limit.limiter()
    assert type(limiter) is kind
    assert [limiter.arrive(0).ok for _ in range(3)] == [True, True, False]
    assert limit.limiter().arrive(0).ok
    assert not limit.hidden


def test_burst_and_tolerance_narrow_a_bucket():
    for table in ({"kind": "token_bucket", "burst": 1}, {"kind": "gcra", "tolerance": 1}):
        limiter = Target(name="a", limits=[table | {"limit": 5, "window_ms": 100}]).limits[0].limiter()
        assert [limiter.arrive(0).ok for _ in range(2)] == [True, False]


def test_a_load_overrides_what_its_kind_says():
    fields = {"name": "l", "kind": "hypotheses", "agents": 1, "target": "a", "priority": "P2", "deadline_s": 7}
    demand = Load(**fields, per_minute=0.5, prompt_tokens=10, output_tokens=3).demand()
    assert (demand.priority, demand.deadline_ms, demand.gap_ms) == ("P2", 7_000, 120_000)
    assert (demand.prompt.mean(), demand.output.mean()) == (10, 3)
    kind = Load(name="l", kind="hypotheses", agents=1, target="a").demand()
    assert (kind.priority, kind.deadline_ms, kind.gap_ms, kind.closed) == ("P0", 60_000, 20_000, True)


@pytest.mark.parametrize(("bound", "good", "bad"), [("at_least", 2, 1), ("at_most", 2, 3)])
def test_a_check_keeps_its_bound(bound, good, bad):
    check = Check(metric="violations", **{bound: 2})
    assert check.holds(good)
    assert not check.holds(bad)


def test_a_hidden_cap_is_hidden():
    assert ConcurrencyLimit(kind="concurrency", limit=4, assumed=2).hidden


def test_the_smallest_file_has_defaults_for_the_rest():
    scenario = parse(SMALLEST, "smallest")
    assert (scenario.seed, scenario.gates, scenario.agents, scenario.faults) == (1, 1, 1, ())
    assert scenario.target("a").headroom_percent == 80


def test_an_unknown_scenario_names_the_nearest():
    with pytest.raises(LabError, match="'p2-flood'"):
        load_shipped("p2-floods")


def test_a_table_where_a_list_stands_is_told_shortly():
    with pytest.raises(FileError, match=r"targets: must be a list: write \[\[targets\]\] for each of its tables"):
        parse(SMALLEST.replace("[[targets]]", "[targets]").replace("[[targets.limits]]", "[targets.limits]"), "s.toml")
