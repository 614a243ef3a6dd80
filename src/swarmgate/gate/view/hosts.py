"""
What a planned step to a URL would take: the budgets of its host as they are, or as they would begin.

A host that nobody has called yet gets its budgets in a register of its own, which is thrown away: planning makes no
host known, so a plan with a million names costs nothing afterwards.
"""

from swarmgate.core.errors import BadInput
from swarmgate.core.limits import Limits
from swarmgate.core.record import Rung
from swarmgate.core.scope import Scope
from swarmgate.core.target import parse_target
from swarmgate.core.target_errors import BadTarget
from swarmgate.core.target_policy import judge
from swarmgate.gate.egress.desk import USUAL_ANSWER_BYTES
from swarmgate.gate.egress.hosts import Hosts, joint
from swarmgate.gate.egress.plan import forbidden, forbidden_port
from swarmgate.gate.view.directory import taken
from swarmgate.gate.view.finder import found_at
from swarmgate.gate.view.plans import PlanStep, StepWays
from swarmgate.ports import Clock

REGISTER_MS = 1_000  # what a register was told of hosts is as good for so long


class UrlFinder:
    """Steps by their URL, at the hosts of one gate."""

    def __init__(self, hosts: Hosts, clock: Clock) -> None:
        self._hosts = hosts
        self._clock = clock
        self._made_ms = -1
        self._fresh: dict[str, Limits] = {}
        self._scratch: Hosts | None = None

    def find(self, asked: PlanStep, viewer: Scope) -> StepWays:
        """Errors: as `rung`."""
        rung = self.rung(asked, viewer)
        return found_at(rung, (0, asked.bytes or USUAL_ANSWER_BYTES), self._clock.now_ms(), self._fresh)

    def rung(self, asked: PlanStep, viewer: Scope) -> Rung:
        """What a request takes. Errors: `BadInput` for what is no URL of a target, or of none that the viewer, or anybody, may call."""
        try:
            url = parse_target(asked.url)
        except BadTarget as bad:
            raise BadInput("url", str(bad)) from None
        if not viewer.allows(url.target.host):
            raise BadInput("url", "is of no host that this agent key may call")
        target, now_ms, plan = url.target, self._clock.now_ms(), self._hosts.plan
        judged = judge(plan.policies, target.host, asked.method, url.path)
        why = forbidden(plan.settings, target) or forbidden_port(plan.settings, judged.policy, target)
        if why is not None:
            raise BadInput("url", f"may not be called ({why.reason.value}). {why.detail}")
        host = self._hosts.hosts.get(joint(target))
        rung = host.rungs.get(target._replace(path_class=judged.path_class)) if host is not None else None
        return rung or self._register(now_ms).place(target, asked.method, url.path).rung

    def budgets(self, url: str, method: str, viewer: Scope) -> list[str]:
        """What a request to a URL takes from, by name. Errors: as `rung`."""
        routes = self.rung(PlanStep(id="url", url=url, method=method), viewer).routes.values()
        return [name for made in routes for name in taken(made)]

    def _register(self, now_ms: int) -> Hosts:
        """One for all steps that are found at about one time; two steps to one new host share its budgets."""
        if self._scratch is None or now_ms - self._made_ms > REGISTER_MS:
            self._made_ms, self._fresh = now_ms, {}
            known = self._hosts.plan._replace(kept=self._hosts.learned())
            self._scratch = Hosts(known, self._clock, self._fresh.__setitem__, _never, {})
        return self._scratch


def _never(_budget: str) -> bool:
    return False
