"""A run as a result: the figures that `swarmgate sim --json` prints, and the table that people look at."""

from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from swarmgate.lab.sim import makespan, measures
from swarmgate.lab.sim.arms import ArmResult
from swarmgate.lab.sim.verdicts import CheckVerdict, violations
from swarmgate.lab.sim.world import World

SHARES = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True)
class Result:
    """Everything that is said of one run."""

    world: World
    verdicts: list[CheckVerdict]
    arms: list[ArmResult]
    broken: list[str]

    @property
    def good(self) -> bool:
        """Whether every promise and every check holds."""
        return not self.broken and all(verdict.holds for verdict in self.verdicts)

    def as_json(self) -> dict[str, Any]:
        """The result as plain values; times in ms, shares between 0 and 1."""
        world = self.world
        return {
            "scenario": world.scenario.name,
            "seed": world.seed,
            "agents": world.scenario.agents,
            "virtual_s": world.scenario.duration_s,
            "wall_s": round(world.wall_s, 3),
            "goodput_ratio": round(measures.goodput_ratio(world), 4),
            "violations": self.broken,
            "trace_hash": world.time.trace_hash,
            "targets": {target.name: _target(world, target.name) for target in world.scenario.targets},
            "crawl": makespan.as_json(world, self.arms) if world.scenario.crawls else None,
            "waits": {rank: _waits(world, rank) for rank in ("P0", "P1", "P2") if measures.jobs(world, None, rank)},
            "ends": _ends(world),
            "checks": [
                {
                    **verdict.check.model_dump(exclude_none=True),
                    "value": round(verdict.value, 4),
                    "holds": verdict.holds,
                }
                for verdict in self.verdicts
            ],
            "faults_met": dict(sorted(world.weather.met.items())),
            "baselines": [arm._asdict() for arm in self.arms],
        }

    def as_text(self) -> RenderableType:
        """Tables for people."""
        crawls = self.world.scenario.crawls
        hosts = makespan.as_text(self.world, self.arms) if crawls else _target_table(self.world)
        parts: list[RenderableType] = [hosts, _wait_table(self.world)]
        if self.arms:
            parts.append(_arm_table(self.world, self.arms))
        if self.verdicts:
            parts.append(_check_table(self.verdicts))
        parts += [Text(f"violated {sentence}", style="bold red") for sentence in self.broken]
        closing = "every promise kept" if not self.broken else f"{len(self.broken)} promises broken"
        failing = sum(not verdict.holds for verdict in self.verdicts)
        if failing:
            parts.append(Text(f"{failing} of {len(self.verdicts)} checks fail", style="bold red"))
        parts.append(
            Text(
                f"{closing}; goodput {measures.goodput_ratio(self.world):.1%} of what was possible; {_pace(self.world)}"
            )
        )
        return Group(*parts)


def _target(world: World, name: str) -> dict[str, Any]:
    target = world.scenario.target(name)
    witnesses = world.targets[name].witnesses
    return {
        "sent": sum(one.sent for one in witnesses),
        "over_limit": measures.over_limit(world, target),
        "refused_429": sum(one.refused for one in witnesses),
        "utilisation": round(measures.use(world, target), 4),
        "use_of_compiled": None if world.policies[name].hidden else round(measures.use_of_compiled(world, target), 4),
    }


def _waits(world: World, rank: str) -> dict[str, int]:
    ordered = measures.waits(measures.jobs(world, None, rank))
    figures = {f"p{share * 100:g}_ms": measures.quantile(ordered, share) for share in SHARES}
    return {"calls": len(ordered), **figures, "max_ms": ordered[-1] if ordered else 0}


def _ends(world: World) -> dict[str, int]:
    counts: dict[str, int] = {}
    for job in world.swarm.jobs:
        counts[job.end or "open"] = counts.get(job.end or "open", 0) + 1
    counts["deferrals"] = sum(job.deferrals for job in world.swarm.jobs)
    return counts


def _target_table(world: World) -> Table:
    table = Table(
        title=f"{world.scenario.name}, seed {world.seed}: targets, by their witnesses",
        title_justify="left",
        caption=f"* after the warm-up of {world.scenario.warmup_s} s, as the waits and the checks",
        caption_justify="left",
    )
    for column in ("target", "sent in all", "429s in all", "over limit", "of true limit*", "of compiled limit*"):
        table.add_column(column, justify="left" if column == "target" else "right")
    for target in world.scenario.targets:
        row = _target(world, target.name)
        compiled = "learned" if row["use_of_compiled"] is None else f"{row['use_of_compiled']:.1%}"
        table.add_row(
            target.name,
            f"{row['sent']:,}",
            f"{row['refused_429']:,}",
            f"{row['over_limit']:,}",
            f"{row['utilisation']:.1%}",
            compiled,
        )
    return table


def _wait_table(world: World) -> Table:
    table = Table(title="queue wait by class, after the warm-up", title_justify="left")
    for column in ("class", "sent then", "p50", "p90", "p99", "max"):
        table.add_column(column, justify="left" if column == "class" else "right")
    for rank in ("P0", "P1", "P2"):
        if measures.jobs(world, None, rank):
            row = _waits(world, rank)
            times = [f"{row[key] / 1000:.2f} s" for key in ("p50_ms", "p90_ms", "p99_ms", "max_ms")]
            table.add_row(rank, f"{row['calls']:,}", *times)
    return table


def _arm_table(world: World, arms: list[ArmResult]) -> Table:
    table = Table(title="the same agents without a gate, from the start", title_justify="left")
    for column in ("arm", "wanted", "answered", "429s", "over limit"):
        table.add_column(column, justify="left" if column == "arm" else "right")
    answered = sum(job.end == "answered" for job in world.swarm.jobs)
    sums = [
        sum(_target(world, one.name)[key] for one in world.scenario.targets) for key in ("refused_429", "over_limit")
    ]
    table.add_row("swarmgate", f"{len(world.swarm.jobs):,}", f"{answered:,}", *[f"{value:,}" for value in sums])
    for arm in arms:
        table.add_row(arm.name, f"{arm.wanted:,}", f"{arm.answered:,}", f"{arm.refused_429:,}", f"{arm.over_limit:,}")
    return table


def _check_table(verdicts: list[CheckVerdict]) -> Table:
    table = Table(title="what this scenario must show", title_justify="left")
    for column in ("metric", "of", "bound", "measured", ""):
        table.add_column(column, justify="right" if column in ("bound", "measured") else "left")
    for check, value, holds in verdicts:
        of = check.target or check.load or check.priority or ""
        bound = f">= {check.at_least:g}" if check.at_least is not None else f"<= {check.at_most:g}"
        mark = Text("holds", style="green") if holds else Text("FAILS", style="bold red")
        table.add_row(check.metric, of, bound, f"{value:.4g}", mark)
    return table


def _pace(world: World) -> str:
    return f"{world.scenario.duration_s} virtual s in {world.wall_s:.1f} s (trace {world.time.trace_hash[:12]})"


def make(world: World, verdicts: list[CheckVerdict], arms: list[ArmResult]) -> Result:
    """The result of a run."""
    return Result(world, verdicts, arms, violations(world))
