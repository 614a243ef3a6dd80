"""The egress doors of one gate, put together: hosts, resolver, connections of their own, and where each door stands."""

import asyncio
import ssl
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from typing import Final, NamedTuple

from swarmgate.core.compiler import Published
from swarmgate.core.groups import registrable_domain
from swarmgate.core.host import normal_host
from swarmgate.core.target import parse_target
from swarmgate.core.target_errors import BadTarget
from swarmgate.engine.teacher import Teacher
from swarmgate.gate.desk import Desk
from swarmgate.gate.egress.desk import EgressDesk, Reach
from swarmgate.gate.egress.doors import ConnectDoor, PathDoor, ProxyDoor
from swarmgate.gate.egress.hosts import CONNECTIONS, GROUP, Hosts
from swarmgate.gate.egress.plan import EgressPlan
from swarmgate.gate.egress.rewrite import TO
from swarmgate.gate.front import Front
from swarmgate.gate.resolve import TargetResolver
from swarmgate.http1.sweep import Sweep
from swarmgate.http1.upstreams import Dials, PoolLimits, Upstreams
from swarmgate.ports import BudgetStore, Clock, NearStore

LIMITS: Final = PoolLimits(most=CONNECTIONS, idle_ms=15_000, max_waiting=1_024)


class Surroundings(NamedTuple):
    """What egress needs of the gate that it is part of; `published` is told of budgets that come and go."""

    loop: asyncio.AbstractEventLoop
    sweep: Sweep
    dialler: Dials
    clock: Clock
    store: BudgetStore
    tls: ssl.SSLContext | None
    published: MutableMapping[str, Published]


class EgressDoors:
    """The doors and what stands behind them; `tidy` is called now and then, `close` once."""

    def __init__(self, plan: EgressPlan, around: Surroundings, desk: Desk, teacher: Teacher) -> None:
        loop, sweep, dialler, clock, store, tls, published = around
        settings = plan.settings
        self.resolver = TargetResolver(loop, sweep, tls, plan.suffixes, settings.pins)
        self.upstreams = Upstreams(loop, sweep, self.resolver.locate, LIMITS, dialler)
        self.hosts = Hosts(plan, clock, store.define, _forgetter(store), published)
        self.desk = EgressDesk(desk, Reach(self.upstreams, self.resolver), self.hosts, teacher)
        self._teacher = teacher
        teacher.moved = self.hosts.show

    def tidy(self) -> None:
        """Forget hosts that idle; end the tunnels of keys that are no longer good."""
        self.hosts.tidy()
        for tunnel in list(self.desk.tunnels):
            tunnel.recheck()

    def open(self, front: Front) -> None:
        """Let requests in."""
        front.serve_below(TO, PathDoor(self.desk))
        front.absolute = ProxyDoor(self.desk)
        front.tunnels = ConnectDoor(self.desk)

    def meet(self, name: str) -> str:
        """
        Make known what an operator names before anybody calls it: a host, by its name or a URL, or a group of hosts.

        The name by which it is known from then on; what is neither keeps its own.
        """
        settings, suffixes = self.hosts.plan.settings, self.hosts.plan.suffixes
        with suppress(BadTarget):  # what is no host stays unknown
            if name.startswith(GROUP):
                group = name[len(GROUP) :]
                if group in settings.groups.values() or registrable_domain(normal_host(group), suffixes) == group:
                    self.hosts.open_group(group)
            elif "." in name:
                url = parse_target(name if "://" in name else f"https://{name}/")
                return self.hosts.place(url.target, "GET", url.path).host.placed.authority
        return name

    def restate(self, budget: str, published: Published) -> None:
        """The operator changed a limit: whoever learns beside it begins from there."""
        found = self.hosts.restated(budget, published)
        if found is not None:
            self._teacher.told(*found)

    def replace(self, plan: EgressPlan) -> tuple[str, ...]:
        """Serve other policies and another pace from now on; the learned budgets that move by it."""
        self.desk.shadow.replace(plan.policies)
        moved = self.hosts.replace(plan)
        for lesson, revision in moved:
            self._teacher.told(lesson, revision)
        return tuple(name for lesson, _ in moved for name in (lesson.rate_budget, lesson.cap_budget))

    def close(self) -> None:
        """No new connections; exchanges in progress run to their end."""
        self.upstreams.close()
        self.resolver.close()


def _forgetter(store: BudgetStore) -> Callable[[str], bool]:
    """How an idle budget is let go; a shared store lets go by itself."""
    return store.forget if isinstance(store, NearStore) else lambda _budget: True
