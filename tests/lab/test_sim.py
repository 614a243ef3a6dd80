"""The scenarios show what they must, in a size that fits a test run."""

from dataclasses import replace

import pytest

from swarmgate.config.targets import with_room
from swarmgate.lab.faults import Fault
from swarmgate.lab.scenario_file import load_shipped, parse, shipped
from swarmgate.lab.sim import measures
from swarmgate.lab.sim.seeds import small
from swarmgate.lab.sim.verdicts import evaluate, violations
from swarmgate.lab.sim.world import World

TOKENS = """
# One key of a million tokens a minute under more demand than it can carry, calls of about twelve seconds.
duration_s = 300
warmup_s = 60

[[targets]]
name = "model"
latency = "gpt-4o-mini"
[[targets.limits]]
kind = "sliding_log"
unit = "tokens"
limit = 1_000_000
window_ms = 60_000

[[loads]]
name = "reading"
kind = "literature"
target = "model"
agents = 80
per_minute = 6
prompt_tokens = 8_000
output_tokens = 600
"""


def ran(scenario, seed=1):
    world = World(scenario, seed)
    world.run()
    return world


def test_a_simulated_gate_compiles_a_limit_as_a_real_one_does():
    policy = World(load_shipped("two-thousand-agents"), 1).policies["models"]
    published = policy.budgets[0].budget.published
    plain = replace(published, largest=(policy.largest_call,) * 3)
    assert published == with_room(plain)
    assert published != plain


HOUR = """
# A limit of an hour, and a gate that does not live so long.
duration_s = 60
warmup_s = 5

[[targets]]
name = "api"
[[targets.limits]]
kind = "sliding_log"
limit = 100
window_ms = 3_600_000

[[loads]]
name = "reads"
kind = "fetch"
target = "api"
agents = 10
per_minute = 60
"""


@pytest.mark.parametrize("kind", ["gate_crash", "gate_stop", "power_loss"])
@pytest.mark.parametrize("cut", [0, 3])
def test_a_counter_is_not_granted_anew_however_its_gate_ends(kind, cut):
    faults = tuple(
        Fault(kind, at_ms, 500, "gate-1", cut if kind == "gate_stop" else 0) for at_ms in (3_000, 6_000, 20_000)
    )
    world = World(parse(HOUR, "hour"), 1 + cut, faults)
    world.run()
    assert violations(world) == []
    assert 50 < world.targets["api"].witnesses[0].sent <= 100


def shorter(name, seconds, warmup):
    return load_shipped(name).model_copy(update={"duration_s": seconds, "warmup_s": warmup})


@pytest.mark.parametrize("name", shipped())
def test_a_calm_world_keeps_every_promise_and_meets_no_429_where_limits_are_published(name):
    world = ran(small(name))
    assert violations(world) == []
    if not any(policy.hidden for policy in world.policies.values()):
        assert sum(measures.refused(world, target)[0] for target in world.scenario.targets) == 0


SHORTER = {
    "planner": (90, 30),
    "published-limits": (90, 30),
    "p2-flood": (60, 20),
    "runaway": (60, 20),
    "twenty-keys": (240, 60),
    "two-thousand-agents": (40, 10),
    "store-outage": (900, 60),
    "hidden-limit": (1_800, 900),
}


def test_every_shipped_scenario_is_judged():
    assert {*SHORTER, "deep-research"} == set(shipped())  # that one in test_crawl.py


LONGEST = {"twenty-keys", "hidden-limit"}  # a minute of a core each: with the long runs, and small in every run (above)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.seeds if name in LONGEST else ()) for name in SHORTER]
)
def test_a_shorter_scenario_shows_what_it_must(name):
    world = ran(shorter(name, *SHORTER[name]))
    failed = [verdict for verdict in evaluate(world, ran) if not verdict.holds]
    assert failed == []


def test_a_token_budget_yields_most_of_the_limit_with_calls_of_twelve_seconds():
    world = ran(parse(TOKENS, "tokens"))
    assert violations(world) == []
    took = sorted(job.ended_ms - job.first_ms for job in world.swarm.jobs if job.end == "answered")
    assert 8_000 <= measures.quantile(took, 0.5) <= 16_000
    assert measures.use(world, world.scenario.target("model")) >= 0.6


def test_the_trace_of_a_world_does_not_depend_on_what_watches_it():
    scenario = small("p2-flood")
    watched, unwatched = World(scenario, 5), World(scenario, 5)
    unwatched.umpire.orders = False
    watched.run()
    unwatched.run()
    assert watched.time.trace_hash == unwatched.time.trace_hash
