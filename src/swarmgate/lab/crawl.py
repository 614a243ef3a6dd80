"""
Agents that fetch pages of many hosts, as deep research does: who asks what of whom, and the hosts that there must be.

A session of a trace is one task; with more agents than sessions a task is done by several, who know nothing of each other.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

from swarmgate.core.groups import registrable_domain
from swarmgate.facts.suffixes import load_suffix_rules
from swarmgate.lab.scenario import Crawl, Scenario, Target
from swarmgate.lab.traces.shipped import trace_of
from swarmgate.lab.workload import KINDS, LoadKind, Player, Wanted, agents

FETCH: LoadKind = "fetch"
BEGIN_WITHIN_MS = 1_000


class Crawler:
    """One agent: asks for its pages at an even pace, whatever becomes of them."""

    closed = False

    def __init__(self, name: str, crawl: Crawl, hosts: tuple[str, ...], begin_ms: int) -> None:
        self.name = name
        self._crawl = crawl
        self._hosts = hosts
        self._begin_ms = begin_ms
        self._op = 0

    def next(self, _free_ms: int = 0) -> Wanted | None:
        """The next page; None after the last."""
        if self._op == len(self._hosts):
            return None
        t_ms = self._begin_ms + round(self._op * 60_000 / self._crawl.per_minute)
        self._op += 1
        return Wanted(
            t_ms=t_ms,
            agent=self.name,
            op=self._op,
            task_type=FETCH,
            priority=self._crawl.priority,
            effect=KINDS[FETCH].effect,
            target=self._hosts[self._op - 1],
            prompt_tokens=0,
            output_tokens=0,
            output_cap_tokens=0,
            deadline_ms=t_ms + self._crawl.deadline_s * 1_000,
        )


def tasks(crawl: Crawl) -> list[tuple[str, ...]]:
    """The hosts of each session, one per page, for as many sessions as there are agents."""
    found: dict[str, list[str]] = {}
    for call in trace_of(crawl.trace).calls:
        found.setdefault(call.session, []).extend(call.hosts)
    return [tuple(hosts) for hosts in found.values() if hosts][: crawl.agents]


def crawlers(crawl: Crawl, rng: Random) -> Iterator[Crawler]:
    """The agents of a crawl, `name-1` first; they begin within a second."""
    told = tasks(crawl)
    for number in range(crawl.agents):
        yield Crawler(f"{crawl.name}-{number + 1}", crawl, told[number % len(told)], rng.randrange(BEGIN_WITHIN_MS))


def players(scenario: Scenario, seed: int) -> list[Player]:
    """Every agent of a scenario; the same seed gives the same agents."""
    found: list[Player] = []
    for load in scenario.loads:
        found += agents(load.demand(), Random(f"{seed}/{load.name}"))
    for crawl in scenario.crawls:
        found += crawlers(crawl, Random(f"{seed}/{crawl.name}"))
    return found


def with_hosts(scenario: Scenario) -> Scenario:
    """The scenario with a target for each host that its crawls visit and no table describes."""
    targets = {target.name: target for target in scenario.targets}
    for crawl in scenario.crawls:
        for host in dict.fromkeys(host for hosts in tasks(crawl) for host in hosts):
            if host not in targets:
                targets[host] = Target(name=host, limits=crawl.limits, **_of_group(crawl, host))
    return scenario.model_copy(update={"targets": tuple(targets.values())})


def _of_group(crawl: Crawl, host: str) -> dict[str, Any]:
    if not crawl.group_limits:
        return {}
    return {"group": registrable_domain(host, load_suffix_rules()), "group_limits": crawl.group_limits}
