"""
The same agents and targets without a gate: direct agents, or one budget for everything (lab/baselines.py).

Shown beside every result, since what a gate is worth is only seen against what happens without one.
"""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from swarmgate.lab import scenario as told
from swarmgate.lab.baselines import Baseline, Direct, OneBudget
from swarmgate.lab.crawl import players, with_hosts
from swarmgate.lab.sim.target import Reply, Request, SimTarget
from swarmgate.lab.sim.virtual_time import VirtualTime
from swarmgate.lab.workload import Player, Wanted


def _nobody(_share: float) -> None:
    """Nobody listens."""


class ArmResult(NamedTuple):
    """What came of one arm; `over_by_target` has the targets that were sent more than they take."""

    name: str
    wanted: int
    answered: int
    refused_429: int
    over_limit: int
    wait_p99_ms: int
    over_by_target: dict[str, int]


class Arm:
    """One world without a gate."""

    def __init__(self, name: str, scenario: told.Scenario, seed: int, baseline: Callable[[Random], Baseline]) -> None:
        self.name = name
        self.scenario = scenario = with_hosts(scenario)
        self.time = VirtualTime()
        self._rng = Random(seed)
        self.targets = {
            one.name: SimTarget(one, self.time, Random(self._rng.getrandbits(64))) for one in scenario.targets
        }
        self._baseline = baseline(self._rng)
        self._agents = players(scenario, seed)
        self._wanted = self._answered = 0
        self._waits: list[int] = []

    def run(self, progress: Callable[[float], None]) -> ArmResult:
        """Let it happen; `progress` hears which share is over."""
        for agent in self._agents:
            self._next(agent, 0)
        for part in range(1, 101):
            self.time.run(self.scenario.duration_s * 10 * part)
            progress(part / 100)
        over = {one.name: excess for one in self.scenario.targets if (excess := self._over_limit(one))}
        self._waits.sort()
        p99 = self._waits[int(len(self._waits) * 0.99)] if self._waits else 0
        refused = sum(witness.refused for target in self.targets.values() for witness in target.witnesses)
        return ArmResult(self.name, self._wanted, self._answered, refused, sum(over.values()), p99, over)

    def _over_limit(self, target: told.Target) -> int:
        return sum(
            witness.over_limit(limit.limit, limit.window_ms, limit.unit)
            for witness in self.targets[target.name].witnesses
            for limit in target.limits
            if not isinstance(limit, told.ConcurrencyLimit)
        )

    def _next(self, agent: Player, free_ms: int) -> None:
        wanted = agent.next(free_ms)
        if wanted is not None:
            self.time.at(wanted.t_ms, self._want, agent, wanted)

    def _want(self, agent: Player, wanted: Wanted) -> None:
        self._wanted += 1
        self._try(agent, wanted, 0, None)
        if not agent.closed:
            self._next(agent, 0)

    def _try(self, agent: Player, wanted: Wanted, sends: int, hint_ms: int | None) -> None:
        now_ms = self.time.now_ms()
        at_ms = self._baseline.next_send(now_ms, sends, hint_ms)
        if at_ms is None or at_ms >= wanted.deadline_ms:
            self._over(agent)
        else:
            self.time.at(at_ms + self.targets[wanted.target].path.sample(self._rng), self._arrive, agent, wanted, sends)

    def _arrive(self, agent: Player, wanted: Wanted, sends: int) -> None:
        target = self.targets[wanted.target]
        key = self._rng.randrange(target.settings.keys)
        request = Request(
            wanted.call_id, sends + 1, key, wanted.prompt_tokens, wanted.output_tokens, wanted.output_cap_tokens
        )
        reply = target.arrive(request)
        back_ms = target.path.sample(self._rng)
        self.time.at(self.time.now_ms() + reply.last_ms + back_ms, self._back, agent, wanted, sends + 1, reply)
        if reply.status == 200:
            self._waits.append(self.time.now_ms() - wanted.t_ms)

    def _back(self, agent: Player, wanted: Wanted, sends: int, reply: Reply) -> None:
        if reply.status == 200:
            self._answered += 1
            self._over(agent)
        else:
            self._try(agent, wanted, sends, reply.wait_ms)

    def _over(self, agent: Player) -> None:
        if agent.closed:
            self._next(agent, self.time.now_ms())


def direct(scenario: told.Scenario, seed: int, progress: Callable[[float], None] = _nobody) -> ArmResult:
    """Agents that call by themselves and back off locally."""
    return Arm("direct agents", scenario, seed, Direct).run(progress)


def one_budget(scenario: told.Scenario, seed: int, progress: Callable[[float], None] = _nobody) -> ArmResult:
    """One rate for everything, set so that the weakest target holds."""
    weakest = min(_requests_per_minute(one, scenario) for one in with_hosts(scenario).targets)
    allowed = max(1, int(weakest * 0.8))
    return Arm("one global budget", scenario, seed, lambda rng: OneBudget(allowed, 60_000, rng)).run(progress)


def _requests_per_minute(target: told.Target, scenario: told.Scenario) -> float:
    """What the target takes of this scenario's mean call, all keys together."""
    demands = [load.demand() for load in scenario.loads if load.target == target.name]
    tokens = sum(d.prompt.mean() * d.prompt_percent / 100 + d.output.mean() for d in demands) / max(1, len(demands))
    found = [float("inf")]
    for limit in target.limits:
        if isinstance(limit, told.ConcurrencyLimit):
            found.append(limit.limit * 60.0)
        else:
            cost = max(1.0, tokens) if limit.unit == "tokens" else 1.0
            found.append(limit.limit * target.scopes * 60_000 / limit.window_ms / cost)
    return min(found)
