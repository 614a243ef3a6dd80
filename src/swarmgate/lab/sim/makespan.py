"""
A crawl as a result: when its last page came, against the host that binds, and what each host was sent, with and without a gate.

The host that binds is the one whose requests take longest at its compiled rate; no gate that keeps the limit is faster,
however many agents there are. What the headroom costs is the difference to the rate that compiles without any.
"""

from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from swarmgate.lab import scenario as told
from swarmgate.lab.sim import measures
from swarmgate.lab.sim.arms import ArmResult
from swarmgate.lab.sim.policies import NO_CALL, TargetPolicy
from swarmgate.lab.sim.world import World

MOST_SHOWN = 12  # hosts with a line of their own
HOUR_MS = 3_600_000


class Makespan(NamedTuple):
    """
    When the last call was answered, and the host that binds: its requests, the window of its limit, and how long its
    requests take at its compiled rate, at the one that compiles without headroom, and at the published one.
    """

    ms: int
    target: str
    requests: int
    window_ms: int
    compiled_ms: int
    no_headroom_ms: int
    published_ms: int

    @property
    def of_bound(self) -> float:
        """Less one window, in times of what the binding host takes at its compiled rate."""
        return (self.ms - self.window_ms) / max(1, self.compiled_ms)

    @property
    def headroom_ms(self) -> int:
        """The price of headroom."""
        return self.compiled_ms - self.no_headroom_ms


def makespan(world: World) -> Makespan:
    """The makespan of a run that has published limits on requests."""
    ended_ms = max((job.ended_ms for job in world.swarm.jobs if job.end == "answered"), default=0)
    bounds = [bound._replace(ms=ended_ms) for target in world.scenario.targets for bound in _bounds(world, target)]
    return max(bounds, key=lambda bound: bound.compiled_ms)


def _bounds(world: World, target: told.Target) -> list[Makespan]:
    """What each limit on requests makes of the requests that its target has met."""
    requests = sum(one.sent for one in world.targets[target.name].witnesses)
    policy = world.policies[target.name]
    without = TargetPolicy(target.model_copy(update={"headroom_percent": 100}), NO_CALL)
    found = []
    for index, limit in measures.rate_limits(target):
        if limit.unit == "requests" and not policy.hidden:
            published_ms = requests * limit.window_ms // (limit.limit * target.scopes)
            with_ms, without_ms = (
                published_ms * 1_000 // one.compiled(index).yield_permille for one in (policy, without)
            )
            found.append(Makespan(0, target.name, requests, limit.window_ms, with_ms, without_ms, published_ms))
    return found


def as_json(world: World, arms: list[ArmResult]) -> dict[str, Any]:
    """The makespan and its bound in ms, and of each host its requests, what was over its limit, and ms that calls waited."""
    found = makespan(world)
    return {
        **found._asdict(),
        "of_bound": round(found.of_bound, 4),
        "headroom_ms": found.headroom_ms,
        "hosts": _hosts(world, arms),
    }


def as_text(world: World, arms: list[ArmResult]) -> RenderableType:
    """The hosts that were asked most, the rest as one, and what binds."""
    hosts = _hosts(world, arms)
    table = Table(title="hosts, by their witnesses", title_justify="left")
    names = ["swarmgate", *(arm.name for arm in arms)]
    for column in ("host", "requests", "waited for it", *(f"over limit, {name}" for name in names)):
        table.add_column(column, justify="left" if column == "host" else "right")
    rows = sorted(hosts.items(), key=lambda row: -row[1]["requests"])
    shown = [(name, [host]) for name, host in rows[:MOST_SHOWN]]
    for name, group in [*shown, (f"{len(rows[MOST_SHOWN:]):,} others", [host for _, host in rows[MOST_SHOWN:]])]:
        over = [sum(host["over_limit"][one] for host in group) for one in names]
        waited = f"{sum(host['waited_ms'] for host in group) / HOUR_MS:,.1f} h"
        table.add_row(name, f"{sum(host['requests'] for host in group):,}", waited, *[f"{count:,}" for count in over])
    return Group(table, Text(_sentence(makespan(world))))


def _hosts(world: World, arms: list[ArmResult]) -> dict[str, dict[str, Any]]:
    waited_ms: dict[str, int] = {}
    for job in world.swarm.jobs:
        if job.first_ms >= 0:
            name = job.wanted.target
            waited_ms[name] = waited_ms.get(name, 0) + job.first_ms - job.wanted.t_ms
    return {
        target.name: {
            "requests": sum(one.sent for one in world.targets[target.name].witnesses),
            "waited_ms": waited_ms.get(target.name, 0),
            "over_limit": {
                "swarmgate": measures.over_limit(world, target),
                **{arm.name: arm.over_by_target.get(target.name, 0) for arm in arms},
            },
        }
        for target in world.scenario.targets
    }


def _sentence(found: Makespan) -> str:
    return (
        f"the last page came after {found.ms / 1_000:,.0f} s. {found.target} binds: its {found.requests:,} requests take "
        f"{found.compiled_ms / 1_000:,.0f} s at the rate compiled for it, and this is {found.of_bound:.3f} of that, less one "
        f"window. Headroom costs {found.headroom_ms / 1_000:,.0f} s of it; the published rate itself would take "
        f"{found.published_ms / 1_000:,.0f} s"
    )
