"""
From configuration to egress: policies and presets compiled to budgets, patterns to tables, defaults to a beginning.

The operator's policy for a pattern outranks every preset for it. Which limits hold for one request is looked up by
path class, so a class has the limits of the whole policy among its own, at the cost that its requests have.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from swarmgate.config import Config, Egress, HostPolicy
from swarmgate.config.policies import Costed, preset_policies
from swarmgate.core.compiler import HEADROOM_PERCENT, Compiled, Published, Unit, fresh_ms
from swarmgate.core.groups import group_table, registrable_group
from swarmgate.core.hidden_value import MICRO
from swarmgate.core.host import normal_host
from swarmgate.core.lesson import CAP, RATE
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.path_class import NO_CLASS
from swarmgate.core.routing import Budget, budget
from swarmgate.core.target_policy import Policy, PolicyTable
from swarmgate.facts.presets import Preset, in_force
from swarmgate.facts.suffixes import load_suffix_rules
from swarmgate.gate.egress.hosts import places
from swarmgate.gate.egress.plan import WINDOW_MS, EgressPlan, Pace, Settings

Kinds = Mapping[str, BudgetKind]
NO_KINDS: Final[Kinds] = MappingProxyType({})


def egress_plan(config: Config, kinds: Kinds = NO_KINDS) -> EgressPlan:
    """What the doors to other hosts need to know. Errors: `BadLimit` where a budget in use would need another of `kinds`."""
    told = config.egress
    settings = Settings(
        _pace(told),
        group_table(dict.fromkeys(told.allow, "allow")),
        group_table(dict.fromkeys(told.deny, "deny")),
        group_table(told.groups),
        frozenset(told.ports),
        config.resolve,
        told.wait,
        told.user_agent.encode(),
        told.connect == "tunnel",
        told.trace,
        told.most_targets,
        told.most_per_group,
    )
    return EgressPlan(policy_table(config, kinds), settings, load_suffix_rules())


def policy_table(config: Config, kinds: Kinds = NO_KINDS) -> PolicyTable:
    """Every policy in force, the operator's and the presets', with their budgets."""
    told = dict(config.policies)
    hosts: dict[str, str] = {}
    domains: dict[str, str] = {}
    for name, table in config.policies.items():
        hosts |= table.patterns("hosts", name)
        domains |= table.patterns("domains", name)
    for name, table in _of_presets(in_force(config.egress.presets, config.egress.without)).items():
        free = {pattern: name for pattern in table.patterns("hosts") if pattern not in hosts}
        if free:
            told[name] = table
            hosts |= free
    by_name = {name: _policy(name, table, kinds) for name, table in told.items()}
    return PolicyTable(by_name, group_table(hosts), group_table(domains))


def _of_presets(presets: Iterable[Preset]) -> dict[str, HostPolicy]:
    """The presets' policies by name; presets for other paths of the same hosts are one policy, under the first host's name."""
    by_hosts: dict[tuple[str, ...], list[Preset]] = {}
    for one in presets:
        by_hosts.setdefault(tuple(one.policy["hosts"]), []).append(one)
    made = {}
    for hosts, told in by_hosts.items():
        if len(told) == 1:
            made[told[0].id] = preset_policies(told[0].policy)
            continue
        classes = {f"{one.name}-{kind}": held for one in told for kind, held in one.policy["classes"].items()}
        made[hosts[0]] = preset_policies({"hosts": hosts, "classes": classes})
    return made


def budgets_of(table: PolicyTable) -> dict[str, Budget]:
    """Every budget of these policies that is enforced, by name; the others only watch."""
    enforced = [one for one in table.by_name.values() if not one.shadow]
    return {one.name: one for policy in enforced for budgets in policy.budgets.values() for one in budgets}


def outage_modes(config: Config) -> dict[str, str]:
    """
    What each budget of a policy, and what is learned beside it, does while a shared store is lost (engine/guard.py: `modes`).

    Places of groups hold nobody back, so they are open.
    """
    modes: dict[str, str] = {}
    suffixes, groups = load_suffix_rules(), group_table(config.egress.groups)
    for policy, table in config.policies.items():
        made = {one.name: one for budgets in _policy(policy, table, NO_KINDS).budgets.values() for one in budgets}
        for name, one in made.items():
            modes |= dict.fromkeys((*(own for own, _ in one.limits()), name + RATE, name + CAP), table.outage)
        hosts = [pattern.removeprefix("*.") for pattern in (*table.hosts, *table.domains)]
        modes |= {places(registrable_group(normal_host(host), suffixes, groups)): "open" for host in hosts}
    return modes


def _pace(told: Egress) -> Pace:
    begin, most = told.unknown, told.ceiling
    start_micro = begin.amount * MICRO * HEADROOM_PERCENT // 100 * WINDOW_MS // begin.window_ms
    return Pace(start_micro, max(1, most.amount * WINDOW_MS // most.window_ms), told.in_flight, told.most_in_flight)


def _policy(name: str, table: HostPolicy, kinds: Kinds) -> Policy:
    whole = [table.costed(quota, 1) for quota in table.limits]
    gaps = [] if table.gap is None else [_gap(f"{name}: gap", table.gap)]
    budgets = {NO_CLASS: (*_budgets(name, table, whole, kinds), *gaps)}
    for kind, one in table.classes.items():
        dear = [table.costed(quota, one.points) for quota in table.limits]
        own = [table.costed(quota, one.points) for quota in one.limits]
        whole_host, of_class = _budgets(name, table, dear, kinds), _budgets(f"{name}#{kind}", table, own, kinds)
        budgets[kind] = (*whole_host, *gaps, *of_class)
    return Policy(
        name,
        budgets,
        table.path_classes(),
        {kind: one.effect for kind, one in table.classes.items() if one.effect is not None},
        may_relax=table.callers_may_say_read,
        wait_ms=table.wait,
        user_agent=table.user_agent.encode(),
        tunnels=table.connect == "tunnel",
        ports=frozenset(table.ports),
        refusals=frozenset(table.refusals),
        traces=table.trace,
        honours_keys=table.honours_keys,
        shadow=table.mode == "shadow",
    )


def _budgets(name: str, table: HostPolicy, costed: Iterable[Costed], kinds: Kinds) -> Iterable[Budget]:
    """The budgets of some limits; a limit has one budget whatever a request costs there, and however much it is."""
    dearest = {quota: cost for _, (quota, cost) in table.all_limits()}
    for quota, cost in costed:
        published = table.published(Costed(quota, dearest[quota]))
        called = f"{name}: {quota.counts}"
        yield budget(called, published, kinds.get(called))._replace(cost=cost)


def _gap(name: str, gap_ms: int) -> Budget:
    """The least time between two requests: a bucket that holds one."""
    limits = Limits(BudgetKind.LEVEL, burst=1, quota=1, window_ms=gap_ms)
    published = Published(1, gap_ms, Unit.REQUESTS, headroom_percent=100)
    return Budget(name, published, Compiled(limits, 1, fresh_ms(gap_ms), 1_000))
