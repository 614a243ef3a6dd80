"""
Many small worlds from seeds: every scenario with few agents, under random faults, judged by the promises alone.

A seed that breaks a promise is shrunk by leaving out one fault after another while it still breaks it; what is left is a
`Trial` that anybody can run again. Found trials join a corpus that every test run replays.
"""

from collections.abc import Callable
from dataclasses import asdict
from random import Random
from typing import Any, NamedTuple, get_args

from swarmgate.lab import scenario as told
from swarmgate.lab.crawl import with_hosts
from swarmgate.lab.faults import Fault, FaultKind, random_plan, without
from swarmgate.lab.scenario_file import load_shipped
from swarmgate.lab.sim.measures import answered_share, goodput_ratio
from swarmgate.lab.sim.verdicts import violations
from swarmgate.lab.sim.world import World

AGENTS = 50
SECONDS = 60
KEYS = 2
CRAWLERS = 8  # of whom each meets a dozen hosts or more
MOST_PER_MINUTE = 20.0
MOST_CALLS = 600.0  # of one load in a minute, so that a runaway is still one
CALM_SHARE = 5  # every fifth seed has no faults at all
FAULTS_BELOW_MS = 45_000
FOR_GOOD: tuple[FaultKind, ...] = ("revision", "lie")  # limits stay as set, keys out for as long as was told
LIVE_FROM_S, LIVE_S = 105, 165
LEARNS_S = 300  # more, and as long again to measure: what is believed too low grows by 1 % a minute


class Trial(NamedTuple):
    """A world that can be run again: scenario, seed and faults say everything."""

    scenario: str
    seed: int
    plan: tuple[Fault, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"scenario": self.scenario, "seed": self.seed, "plan": [asdict(fault) for fault in self.plan]}


class Recovery(NamedTuple):
    """Goodput after the faults as a share of the same world's without faults, and the promises that were broken on the way."""

    goodput: float
    broken: list[str]


def from_json(values: dict[str, Any]) -> Trial:
    """The trial that `as_json` wrote."""
    return Trial(values["scenario"], values["seed"], tuple(Fault(**fault) for fault in values["plan"]))


def small(name: str, seed: int = 0) -> told.Scenario:
    """
    A shipped scenario with at most 50 agents for 60 s and few keys, so that it is still under pressure.

    Every third seed has targets that honour idempotency keys, every second one ladders of two rungs.
    """
    scenario = load_shipped(name)
    below = [*scenario.targets[1:], scenario.targets[0]] if seed % 2 and len(scenario.targets) > 1 else ()
    targets = tuple(
        target.model_copy(
            update={
                "keys": min(KEYS, target.keys),
                "scopes": min(KEYS, target.scopes),
                "honours_keys": seed % 3 == 0,
                "fallback": below[number].name if below else None,
            }
        )
        for number, target in enumerate(scenario.targets)
    )
    share = min(1.0, AGENTS / scenario.agents)
    return scenario.model_copy(
        update={
            "loads": tuple(_lighter(load, share) for load in scenario.loads),
            "crawls": tuple(crawl.model_copy(update={"agents": CRAWLERS}) for crawl in scenario.crawls),
            "targets": targets,
            "duration_s": SECONDS,
            "warmup_s": 5,
            "faults": (),
            "checks": (),
        }
    )


def _lighter(load: told.Load, share: float) -> told.Load:
    """A load of fewer agents, who want more each, so that there is still pressure."""
    agents = max(1, int(load.agents * share))
    per_minute = min(load.per_minute / share, max(load.per_minute, MOST_PER_MINUTE), MOST_CALLS / agents)
    return load.model_copy(update={"agents": agents, "per_minute": per_minute})


def trial_of(name: str, seed: int) -> Trial:
    """The trial of a seed of one scenario."""
    rng = Random(f"{name}/{seed}")
    scenario = small(name, seed)
    if seed % CALM_SHARE == 0:
        return Trial(name, seed, ())
    targets = [target.name for target in with_hosts(scenario).targets]
    return Trial(name, seed, random_plan(rng, FAULTS_BELOW_MS, targets=targets, gates=scenario.gates))


def run(trial: Trial) -> World:
    """Run a trial to its end."""
    world = World(small(trial.scenario, trial.seed), trial.seed, trial.plan)
    world.run()
    return world


def broken(trial: Trial) -> list[str]:
    """The promises that a trial breaks."""
    return violations(run(trial))


def lively(name: str, seed: int) -> Trial:
    """The liveness trial of a seed: faults that end, and leave nothing behind that only a person can mend."""
    rng = Random(f"{name}/{seed}/live")
    scenario = small(name, seed)
    kinds = [kind for kind in get_args(FaultKind) if kind not in FOR_GOOD]
    targets = [target.name for target in with_hosts(scenario).targets]
    return Trial(name, seed, random_plan(rng, FAULTS_BELOW_MS, kinds, targets=targets, gates=scenario.gates))


def recovered(trial: Trial) -> Recovery:
    """
    What a world is like from a minute after the last fault on, and whether every call ends and frees what it held (design 7: liveness).

    Of what passes only answers count. Limits that have to be found again are given five windows more, and six to be judged by.
    """
    scenario = small(trial.scenario, trial.seed)
    later_s = LEARNS_S if any(limit.hidden for target in scenario.targets for limit in target.limits) else 0
    spans = {"duration_s": LIVE_S + 2 * later_s, "warmup_s": LIVE_FROM_S + later_s}
    scenario = scenario.model_copy(update=spans)
    faulty, calm = World(scenario, trial.seed, trial.plan), World(scenario, trial.seed, ())
    for world in (faulty, calm):
        world.run()
    goodput, possible = (goodput_ratio(world) * answered_share(world) for world in (faulty, calm))
    return Recovery(goodput / possible, violations(faulty))


def shrunk(trial: Trial, breaks: Callable[[Trial], bool]) -> Trial:
    """The trial with as few faults as still break the promise."""
    index = 0
    while index < len(trial.plan):
        smaller = trial._replace(plan=without(trial.plan, index))
        if breaks(smaller):
            trial = smaller
        else:
            index += 1
    return trial
