"""What becomes of whole swarms in trouble: gates that sleep, multiply and restart, targets that die, far too much work."""

import pytest

from swarmgate.core.book import LEASE_MS
from swarmgate.lab.faults import Fault
from swarmgate.lab.scenario_file import parse
from swarmgate.lab.sim import measures
from swarmgate.lab.sim.verdicts import violations
from swarmgate.lab.sim.world import World

HOST = """
# Twice as much as one host takes.
duration_s = 150
warmup_s = 30
gates = {gates}

[[targets]]
name = "host"
[[targets.limits]]
kind = "sliding_log"
limit = 300
window_ms = 60_000

[[loads]]
name = "reads"
kind = "fetch"
target = "host"
agents = 40
per_minute = 12
"""


def ran(text, *faults, seed=1):
    world = World(parse(text, "trouble"), seed, faults)
    world.run()
    assert violations(world) == []
    return world


def passed(world, name):
    from_ms, until_ms = measures.measured(world)
    return sum(one.passed(from_ms, until_ms) for one in world.targets[name].witnesses)


def answered_share(found):
    return sum(job.end == "answered" for job in found) / len(found)


@pytest.mark.parametrize("gates", [1, 2])
def test_rb_04_a_gate_that_sleeps_for_twice_its_leases_sends_nothing_that_is_stale(gates):
    world = ran(HOST.format(gates=gates), Fault("gate_pause", 35_000, 2 * LEASE_MS + 1_000, "gate-1"))
    assert world.weather.met["gate_pause"]
    assert measures.over_limit(world, world.scenario.target("host")) == 0
    assert world.sent_late == 0


def test_rb_05_any_number_of_gates_lets_the_same_through():
    worlds = [ran(HOST.format(gates=gates)) for gates in (1, 2, 4, 8)]
    through = [passed(world, "host") for world in worlds]
    assert [measures.refused(world, world.scenario.target("host"))[0] for world in worlds] == [0] * 4
    assert max(through) <= 1.01 * min(through), through
    assert min(through) >= 0.97 * 0.8 * 300 * 2


TWO_LIMITS = """
# One key with a limit on requests and one on tokens; which of them binds depends on how long the calls are.
duration_s = 180
warmup_s = 60

[[targets]]
name = "model"
latency = "gpt-4o-mini"
[[targets.limits]]
kind = "sliding_log"
limit = 600
window_ms = 60_000
[[targets.limits]]
kind = "sliding_log"
unit = "tokens"
limit = 600_000
window_ms = 60_000

[[loads]]
name = "reading"
kind = "literature"
target = "model"
agents = 60
per_minute = 30
prompt_tokens = {prompt}
output_tokens = 50
"""


@pytest.mark.parametrize(("prompt", "index"), [(100, 0), (4_000, 1)])
def test_rb_15_each_of_two_limits_of_a_key_is_used_where_it_binds(prompt, index):
    world = ran(TWO_LIMITS.format(prompt=prompt))
    model = world.scenario.target("model")
    assert measures.refused(world, model)[0] == 0
    assert measures.use_of_compiled(world, model) >= 0.97
    limits = world.policies["model"].compiled(index).limits
    unit = model.limits[index].unit
    from_ms, until_ms = measures.measured(world)
    units = sum(one.passed(from_ms, until_ms, unit) for one in world.targets["model"].witnesses)
    assert units * limits.window_ms >= 0.97 * limits.quota * (until_ms - from_ms)


LADDER = """
# Everybody's first choice is ten times as large as the second.
duration_s = 120
warmup_s = 20

[[targets]]
name = "large"
fallback = "small"
[[targets.limits]]
kind = "sliding_log"
limit = 6_000
window_ms = 60_000

[[targets]]
name = "small"
[[targets.limits]]
kind = "sliding_log"
limit = 600
window_ms = 60_000

[[loads]]
name = "reads"
kind = "fetch"
target = "large"
agents = 200
per_minute = 24
"""


def test_ov_15_whoever_falls_back_meets_the_second_targets_own_budget():
    world = ran(LADDER, Fault("brownout", 30_000, 60_000, "large", 1_000))
    small = world.scenario.target("small")
    assert (measures.over_limit(world, small), measures.refused(world, small)[0]) == (0, 0)
    window = world.targets["small"].witnesses[0]
    assert window.passed(40_000, 90_000) >= 0.7 * 0.8 * 600 * 50 / 60


EIGHTY_PER_CENT = """
# Four fifths of what a host takes, from callers who do not wait for each other.
duration_s = 340
warmup_s = 60

[[targets]]
name = "api"
store_lost = "closed"
[[targets.limits]]
kind = "sliding_log"
limit = 600
window_ms = 60_000

[[loads]]
name = "reads"
kind = "fetch"
target = "api"
agents = 64
per_minute = 6
arrivals = "open"
deadline_s = 300
"""
CAPACITY, LOAD, GONE_S = 8.0, 6.4, 20  # calls per second, seconds


@pytest.mark.parametrize(
    "fault",
    [
        Fault("brownout", 100_000, GONE_S * 1_000, "api", 1_000),
        Fault("stall", 100_000, GONE_S * 1_000, "api"),
        Fault("latency_spike", 100_000, GONE_S * 1_000, "api", 8_000),
        Fault("store_down", 100_000, GONE_S * 1_000),
    ],
    ids=lambda fault: fault.kind,
)
def test_ov_06_what_was_gone_is_recovered_from_within_twice_the_drain_time(fault):
    world = ran(EIGHTY_PER_CENT, fault)
    drained_ms = fault.ends_ms + int(2 * GONE_S * LOAD / (CAPACITY - LOAD) * 1_000)
    late = [job for job in world.swarm.jobs if drained_ms < job.wanted.t_ms < 330_000]
    assert len(late) > 300
    assert answered_share(late) == 1
    assert measures.quantile(measures.waits(late), 0.9) <= 1_000


FLOOD = """
# A little that is urgent, and {times} times as much as there is room for of what is not.
duration_s = 60
warmup_s = 15

[[targets]]
name = "api"
[[targets.limits]]
kind = "sliding_log"
limit = 300
window_ms = 60_000

[[loads]]
name = "urgent"
kind = "fetch"
priority = "P0"
target = "api"
agents = 5
per_minute = 6
arrivals = "open"
deadline_s = 20

[[loads]]
name = "bulk"
kind = "fetch"
target = "api"
agents = 50
per_minute = {per_minute}
arrivals = "open"
deadline_s = 20
"""


def test_ov_07_ten_times_too_much_passes_as_much_as_enough_and_all_that_is_urgent():
    worlds = [ran(FLOOD.format(times=times, per_minute=4.2 * times)) for times in (1, 2, 5, 10)]
    through = [passed(world, "api") for world in worlds]
    assert min(through) >= 0.9 * max(through), through
    for world in worlds:
        assert answered_share(measures.jobs(world, "urgent")) >= 0.99


SWARM = """
# Two thousand agents, most of whom want something while their gate is not there.
duration_s = 60
warmup_s = 5

[[targets]]
name = "api"
[[targets.limits]]
kind = "sliding_log"
limit = 30_000
window_ms = 60_000

[[loads]]
name = "reads"
kind = "fetch"
target = "api"
agents = 2_000
per_minute = 2
"""


def test_ov_18_two_thousand_agents_come_back_to_a_gate_that_was_started_anew():
    world = ran(SWARM, Fault("gate_stop", 10_000, 20_000, "gate-1"))
    api = world.scenario.target("api")
    assert (measures.over_limit(world, api), measures.refused(world, api)[0]) == (0, 0)
    late = [job for job in world.swarm.jobs if 40_000 < job.wanted.t_ms < 55_000]
    assert len(late) > 700
    assert answered_share(late) >= 0.99
    assert measures.quantile(measures.waits(late), 0.99) <= 1_000
