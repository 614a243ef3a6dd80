"""Many small worlds under random faults: every promise holds in each (design 7)."""

import json
import os
from pathlib import Path

import pytest

import struck
from swarmgate.lab.faults import Fault
from swarmgate.lab.scenario_file import shipped
from swarmgate.lab.sim import seeds
from swarmgate.lab.sim.seeds import Trial
from swarmgate.lab.sim.verdicts import violations
from swarmgate.lab.sim.world import World

CORPUS = json.loads((Path(__file__).parents[1] / "data/seeds.json").read_text())
EVERY_RUN = -(-200 // len(shipped()))  # of each scenario: 200 at least
LONG_RUN = int(os.environ.get("SEEDS", "2000"))
CHUNK = 50
LIVELY = 0.95


def judged(name, first, until):
    """What each trial of a span broke, as (trial, sentences); a crash of the world is a broken promise too."""
    found = []
    for seed in range(first, until):
        trial = seeds.trial_of(name, seed)
        world = seeds.run(trial)
        struck.count(world.weather.pairs)
        sentences = violations(world)
        if sentences:
            small = seeds.shrunk(trial, lambda one: bool(seeds.broken(one)))
            found.append((json.dumps(small.as_json()), sentences))
    return found


def unrecovered(trial):
    """What is not as it was before the faults, as sentences."""
    recovery = seeds.recovered(trial)
    low = [f"goodput: {recovery.goodput:.3f} of a world without faults"] if recovery.goodput < LIVELY else []
    return recovery.broken + low


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", shipped())
def test_no_seed_breaks_a_promise(name):
    assert judged(name, 0, EVERY_RUN) == []


@pytest.mark.seeds
@pytest.mark.parametrize("name", shipped())
@pytest.mark.parametrize("first", range(EVERY_RUN, LONG_RUN, CHUNK))
def test_no_seed_of_a_long_run_breaks_a_promise(name, first):
    assert judged(name, first, min(LONG_RUN, first + CHUNK)) == []


@pytest.mark.parametrize("name", ["planner", "store-outage", "twenty-keys"])
def test_when_faults_stop_every_call_ends_and_the_goodput_comes_back(name):
    assert unrecovered(seeds.lively(name, 1)) == []


@pytest.mark.seeds
@pytest.mark.parametrize("name", shipped())
@pytest.mark.parametrize("first", range(0, LONG_RUN // 10, 20))
def test_whatever_stops_every_call_ends_and_the_goodput_comes_back(name, first):
    found = [(trial, unrecovered(trial)) for trial in (seeds.lively(name, seed) for seed in range(first, first + 20))]
    assert [(json.dumps(trial.as_json()), sentences) for trial, sentences in found if sentences] == []


def test_a_target_that_stays_unwell_is_no_recovery():
    unwell = Fault("brownout", 1_000, 160_000, "api", 1_000)
    assert [one[:7] for one in unrecovered(Trial("store-outage", 2, (unwell,)))] == ["goodput"]


def test_a_call_that_never_ends_is_no_recovery(monkeypatch):
    def closed_early(world, progress=lambda _share: None):
        world.swarm.start()
        world.time.run(20_000)

    monkeypatch.setattr(World, "run", closed_early)
    assert any(one.startswith("P4") for one in unrecovered(Trial("store-outage", 2, ())))


@pytest.mark.parametrize("trial", CORPUS["trials"], ids=lambda one: f"{one['scenario']}-{one['seed']}")
def test_what_was_found_once_stays_fixed(trial):
    assert seeds.broken(seeds.from_json(trial)) == []


@pytest.mark.parametrize("seed", [1, 2, 3, 7])
def test_a_seed_reproduces_its_run(seed):
    trial = seeds.trial_of("planner", seed)
    assert seeds.run(trial).time.trace_hash == seeds.run(trial).time.trace_hash


def test_seeds_differ():
    assert len({seeds.run(Trial("planner", seed, ())).time.trace_hash for seed in range(3)}) == 3


def test_a_trial_survives_its_json():
    trial = seeds.trial_of("planner", 3)
    assert trial.plan
    assert seeds.from_json(json.loads(json.dumps(trial.as_json()))) == trial


def test_shrinking_leaves_only_the_faults_that_matter():
    plan = (Fault("store_flush", 10), Fault("store_down", 20, 5), Fault("clock_step", 30, amount=7))
    small = seeds.shrunk(Trial("planner", 1, plan), lambda one: any(f.kind == "store_down" for f in one.plan))
    assert small.plan == (plan[1],)
