"""From configuration to caps: the budgets of agents, teams, environments and task types."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from swarmgate.config import Config, Target
from swarmgate.config.callers import Team, caps_of_key
from swarmgate.config.quota import Quota
from swarmgate.core.callers import AGENT
from swarmgate.core.caps import Caps, Group
from swarmgate.core.compiler import Compiled, Unit, compile_limit
from swarmgate.core.limits import EXACT
from swarmgate.core.routing import Budget
from swarmgate.core.shares import portion


def caps(config: Config) -> Caps:
    """Every cap that is configured, and the way to those of agents' keys."""
    teams, environments = groups(config)
    task_types = _task_types(config)
    return Caps(
        lambda agent: tuple(config.agents.budgets(f"{AGENT}{agent}")),
        teams,
        environments,
        task_types,
        caps_of_key,
        counts=bool(config.agents.limits or teams or environments or task_types),
    )


def counts_money(config: Config) -> bool:
    """Whether any cap is one in money."""
    tables = (config.agents, *config.teams.values(), *config.environments.values(), *config.task_types.values())
    return any(quota.unit is Unit.MICRO for table in tables for quota in table.limits)


def groups(config: Config) -> tuple[list[Group], list[Group]]:
    """The teams and the environments with their budgets."""
    return _groups("team", config.teams, config.targets), _groups("environment", config.environments, config.targets)


def shared(config: Config) -> Iterator[Budget]:
    """Every budget that a whole team, environment or task type shares."""
    for budgets in _task_types(config).values():
        yield from budgets
    teams, environments = groups(config)
    for group in (*teams, *environments):
        yield from group.budgets
        for shares in group.shares.values():
            yield from shares


def limits(config: Config) -> Iterator[tuple[str, Budget]]:
    """Every cap once, with whose it is: what `check` shows."""
    for one in config.agents.budgets("agent"):
        yield "each agent", one
    for name, budgets in _task_types(config).items():
        for one in budgets:
            yield f"task type {name}", one
    for kind, found in zip(("team", "environment"), groups(config), strict=True):
        for group in found:
            for one in group.budgets:
                yield f"{kind} {group.name}", one
            for at, shares in group.shares.items():
                for one in shares:
                    yield f"{kind} {group.name} at {at}", one


def _task_types(config: Config) -> dict[str, tuple[Budget, ...]]:
    capped = {name: table for name, table in config.task_types.items() if table.limits}
    return {name: tuple(table.budgets(f"task type {name}")) for name, table in capped.items()}


def _groups(kind: str, tables: Mapping[str, Team], targets: Mapping[str, Target]) -> list[Group]:
    """The tables of one kind; they have shares of targets where there are several."""
    shared_targets = targets if len(tables) > 1 else {}
    return [
        Group(
            name,
            table.agents,
            tuple(table.budgets(f"{kind} {name}")),
            {at: tuple(_shares(f"{kind} {name}", table.share, at, target)) for at, target in shared_targets.items()},
        )
        for name, table in tables.items()
    ]


def _shares(owner: str, percent: int, at: str, target: Target) -> Iterable[Budget]:
    """Its part of every limit of a target; of a limit per key, a part of all keys together."""
    for quota in target.limits:
        yield _share(f"{owner} at {at}: share of {quota.counts}", target, quota, percent, 1)
    for quota in target.key_limits:
        count = len(target.scopes)
        yield _share(f"{owner} at {at}: share of all keys, {quota.counts}", target, quota, percent, count)


def _share(name: str, target: Target, quota: Quota, percent: int, count: int) -> Budget:
    whole = target.published(quota)
    compiled = compile_limit(whole)
    limits = portion(compiled.limits, percent, count, max(whole.largest))
    part = replace(whole, amount=max(1, whole.amount * count * percent // 100), sharing=1, line="")
    return Budget(name, part, Compiled(limits, 0, EXACT - 1, compiled.yield_permille))
