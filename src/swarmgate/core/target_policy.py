"""
Which limits and manners hold for a request to a host: the operator's policies, matched by host, domain, path and method.

Several policies may hold for one request: that of its host (the most exact pattern wins) and those of its domains, which
all hosts below share: naming a host, or a domain within, is no way out of them. A host without a policy of its own has
its domain's, manners included. Budgets of a policy are one for everything that it matches: three hosts in one policy are
one budget (SEC's three hosts are). What no policy counts by requests gets the cautious default, elsewhere.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from swarmgate.core.compiler import Unit
from swarmgate.core.effect import Effect
from swarmgate.core.groups import NO_GROUPS, GroupTable, all_matches, longest_match
from swarmgate.core.path_class import NO_CLASS, PathClass, class_of
from swarmgate.core.routing import Budget


@dataclass(frozen=True, slots=True)
class Policy:
    """
    One policy: `budgets` by path class (`""` = no class matched), a class has those of the whole host too.

    `refusals` are statuses that mean "too fast" here besides 429. `honours_keys`: a repeat with the same Idempotency-Key has
    no second effect here, so a write that carries one may be sent again (design 2: P7). `shadow`: its budgets only watch. None and empty =
    what holds without a policy.
    """

    name: str
    budgets: Mapping[str, tuple[Budget, ...]]
    classes: tuple[PathClass, ...] = ()
    effects: Mapping[str, Effect] = field(default_factory=dict)
    may_relax: bool = False
    wait_ms: int | None = None
    user_agent: bytes = b""
    tunnels: bool = False
    ports: frozenset[int] = frozenset()
    refusals: frozenset[int] = frozenset()
    traces: bool = False
    honours_keys: bool = False
    shadow: bool = False


NO_POLICY: Final = Policy("", {})


class PolicyTable(NamedTuple):
    """Policies by name, and the patterns over hosts that lead to them; `domains` are charged besides `hosts`."""

    by_name: Mapping[str, Policy]
    hosts: GroupTable = NO_GROUPS
    domains: GroupTable = NO_GROUPS


class Judged(NamedTuple):
    """What holds for one request: its host's policy, the class of its path there, its domains' policies from the inner out."""

    policy: Policy
    path_class: str
    domains: tuple[Policy, ...] = ()

    def classed(self) -> tuple[tuple[Policy, str], ...]:
        """Each policy with the class by which its budgets are found: paths have classes in their host's policy only."""
        return (self.policy, self.path_class), *((one, NO_CLASS) for one in self.domains)


def judge(table: PolicyTable, host: str, method: str, path: str) -> Judged:
    """The policies for a normal host and a judged path (`url_path.path_to_judge`)."""
    policy, domains = _of_host(table, host)
    found = class_of(policy.classes, method, path) if policy.classes else NO_CLASS
    return Judged(policy, found, domains)


def judge_class(table: PolicyTable, host: str, path_class: str) -> Judged | None:
    """The same for a request of which the class is known; None if its host's policy has no such class."""
    policy, domains = _of_host(table, host)
    known = path_class == NO_CLASS or path_class in policy.budgets
    return Judged(policy, path_class, domains) if known else None


def _of_host(table: PolicyTable, host: str) -> tuple[Policy, tuple[Policy, ...]]:
    policy = table.by_name.get(longest_match(host, table.hosts), NO_POLICY)
    names = all_matches(host, table.domains) if table.domains else ()
    domains = tuple([table.by_name[name] for name in names if name != policy.name])
    return (policy, domains) if policy.name or not domains else (domains[0], domains[1:])


def counts_requests(budgets: Iterable[Budget]) -> bool:
    """Whether some of these budgets bound the number of requests in time; concurrency and bytes do not."""
    return any(one.unit in {Unit.REQUESTS, Unit.POINTS} for one in budgets)


def leading(policy: Policy, path_class: str) -> Budget | None:
    """The limit on requests that a refusal there is blamed on: the class's own, else the whole policy's first."""
    whole = policy.budgets.get(NO_CLASS, ())
    told = [one for one in policy.budgets.get(path_class, ()) if one.unit is Unit.REQUESTS]
    own = [one for one in told if one not in whole]
    return next(iter(own or told), None)
