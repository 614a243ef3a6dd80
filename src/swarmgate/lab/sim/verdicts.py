"""
The checks of a scenario, evaluated; and the promises that every run must keep, whatever the scenario.

A violation is a broken promise: more at a target than it published, an accepted call without exactly one end, a
reservation that outlives its call, a better ticket that was passed.
"""

from collections.abc import Callable
from typing import NamedTuple

from swarmgate.lab import scenario as told
from swarmgate.lab.sim import measures
from swarmgate.lab.sim.makespan import makespan
from swarmgate.lab.sim.measures import Twin
from swarmgate.lab.sim.world import World


class CheckVerdict(NamedTuple):
    """One check of a scenario: what was measured and whether it holds."""

    check: told.Check
    value: float
    holds: bool


_BROKEN = {
    "P3": "takes changed more or less than they should",
    "P5": "better tickets were delayed",
    "P6": "repeats at the promised instant would have been denied",
}


def violations(world: World) -> list[str]:
    """Every promise that this run broke, as sentences."""
    found = []
    for target in world.scenario.targets:
        excess = measures.beyond_faults(world, target)
        if excess > 0:
            found.append(f"P2: a window of {target.name} held {excess} units more than its published limit")
    if world.swarm.open_jobs:
        found.append(f"P4: {world.swarm.open_jobs} calls never came to an end")
    if world.swarm.double_ends:
        found.append(f"P4: {world.swarm.double_ends} ends of calls that had ended")
    if world.umpire.over_bound:
        found.append(f"P1: {world.umpire.over_bound} budgets admitted more than burst + rate * T")
    found += [f"{promise}: {times} {_BROKEN[promise]}" for promise, times in sorted(world.umpire.broken.items())]
    if world.idled:
        found.append(f"P5: {world.idled} times a call slept that could run")
    if world.orphaned:
        found.append(f"P9: {world.orphaned} reservations outlived their calls")
    if world.sent_late:
        found.append(f"P14: {world.sent_late} requests left after their callers' deadlines")
    twice = world.writes_twice()
    if twice:
        found.append(f"P7: {twice} writes were done more than once")
    found += world.left_behind()
    found += world.contradictions()
    return found


def evaluate(world: World, twin: Twin) -> list[CheckVerdict]:
    """Every check of the scenario."""
    return [_verdict(world, check, twin) for check in world.scenario.checks]


def _verdict(world: World, check: told.Check, twin: Twin) -> CheckVerdict:
    value = _WORLD[check.metric](world, check, twin) if check.metric in _WORLD else _worst(world, check)
    return CheckVerdict(check, value, check.holds(value))


def _worst(world: World, check: told.Check) -> float:
    """A metric of targets: its sum if it counts, else that of the target that keeps its bound least."""
    values = [_TARGET[check.metric](world, target) for target in measures.tables(world, check.target)]
    if check.metric in _SUMS:
        return sum(values)
    return min(values) if check.at_least is not None else max(values)


def _share(world: World, target: told.Target) -> float:
    refusals, arrivals = measures.refused(world, target)
    return refusals / max(1, arrivals)


_SUMS = frozenset({"over_limit", "refused_429", "rate_rises_in_storm"})
_TARGET: dict[str, Callable[[World, told.Target], float]] = {
    "over_limit": measures.over_limit,
    "refused_429": lambda world, target: measures.refused(world, target)[0],
    "refused_429_share": _share,
    "use_of_limit": measures.use,
    "use_of_compiled": measures.use_of_compiled,
    "rate_rises_in_storm": measures.rises_in_storm,
}
_WORLD: dict[str, Callable[[World, told.Check, Twin], float]] = {
    "violations": lambda world, _check, _twin: len(violations(world)),
    "lost_calls": lambda world, _check, _twin: world.swarm.open_jobs + world.swarm.double_ends,
    "bound_excess": lambda world, _check, _twin: world.umpire.over_bound,
    "speedup_over_one_key": lambda world, _check, twin: measures.speedup(world, twin),
    "sent_to_empty_key": lambda world, _check, _twin: world.sent_to_empty_key,
    "longest_stop_ms": lambda world, _check, _twin: measures.longest_stop_ms(world),
    "extra_wait_beyond_bound_ms": lambda world, check, twin: measures.extra_wait_ms(
        world, check.priority or "P0", twin
    ),
    "order_inversions": lambda world, _check, _twin: world.umpire.inversions,
    "start_after_earliest_ms": lambda world, check, _twin: measures.start_after_earliest_ms(world, check.load),
    "wait_behind_other_target_ms": lambda world, check, twin: measures.wait_behind_other_ms(world, check.target, twin),
    "makespan_of_bound": lambda world, _check, _twin: makespan(world).of_bound,
    "served_share": lambda world, check, _twin: measures.served_share(world, check.load),
    "wait_p99_ms": lambda world, check, _twin: measures.quantile(
        measures.waits(measures.jobs(world, check.load, check.priority)), 0.99
    ),
    "wall_s_per_virtual_minute": lambda world, _check, _twin: world.wall_s * 60 / world.scenario.duration_s,
}
