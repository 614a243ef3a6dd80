"""
What the operator of a simulated gate wrote: each target's limits compiled to budgets, its keys to routes and a ring.

The gate is told the published limit, or the assumed one where the true limit is hidden; never more.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from swarmgate.config.targets import with_room
from swarmgate.core.compiler import Compiled, Published, Unit
from swarmgate.core.hidden_value import MICRO
from swarmgate.core.keys import KeyRing, QuotaScope
from swarmgate.core.learning import Ceilings, Learned, LearnedLimit
from swarmgate.core.lesson import Lesson
from swarmgate.core.limits import Limits
from swarmgate.core.record import Route, Rung
from swarmgate.core.retry import RetryBudget
from swarmgate.core.routing import Budget, budget, route
from swarmgate.lab import scenario as told

NO_CALL = (1, 1, 1)
MINUTE_MS = 60_000
ANY_RATE = 1_000_000  # what is not the question is left wide
ANY_BURST = 1_000
ANY_CAP = 1_000


def largest_calls(scenario: told.Scenario, target: str) -> tuple[int, int, int]:
    """Tokens of the largest call of each class that a scenario has for a target."""
    largest = list(NO_CALL)
    for load in scenario.loads:
        if load.target == target:
            demand = load.demand()
            rank = int(demand.priority[1])
            tokens = demand.prompt.at(2**32 - 1) * demand.prompt_percent // 100 + demand.output.at(2**32 - 1)
            largest[rank] = max(largest[rank], tokens)
    return largest[0], largest[1], largest[2]


class ScopeBudget(NamedTuple):
    """The budget of limit number `limit` in one quota scope of a target."""

    scope: int
    limit: int
    budget: Budget


class TargetPolicy:
    """Everything a gate needs to know of one target."""

    __slots__ = ("_largest", "_revised", "budgets", "hidden", "settings", "shared")

    def __init__(self, settings: told.Target, largest: tuple[int, int, int]) -> None:
        self.settings = settings
        self._largest = largest
        self._revised: dict[str, Limits] = {}
        self.hidden = any(limit.hidden for limit in settings.limits)
        self.budgets = [
            ScopeBudget(scope, index, budget(f"{settings.name}:{scope + 1}:{index}", self._published(index, limit)))
            for scope in range(settings.scopes)
            for index, limit in enumerate(settings.limits)
        ]
        self.shared = [
            budget(f"group {settings.group}:{index}", self._published(index, limit))
            for index, limit in enumerate(settings.group_limits)
        ]

    @property
    def largest_call(self) -> int:
        """Tokens of the largest call of any class."""
        return max(self._largest)

    def _published(self, index: int, limit: told.RateLimit | told.ConcurrencyLimit) -> Published:
        unit = Unit.CONCURRENT if isinstance(limit, told.ConcurrencyLimit) else Unit(limit.unit)
        published = Published(
            limit.assumed or limit.limit,
            0 if isinstance(limit, told.ConcurrencyLimit) else limit.window_ms,
            unit,
            headroom_percent=100 if limit.hidden else self.settings.headroom_percent,
            largest=self._largest if unit is Unit.TOKENS else NO_CALL,
            line=f"{self.settings.name}:{index}" if self.settings.scopes > 1 else "",
            sharing=self.settings.scopes,
        )
        return published if limit.hidden else with_room(published)

    def limits(self) -> Iterable[tuple[str, Limits]]:
        """Every budget and its limits."""
        if self.hidden:
            lesson = self.lesson()
            return ((lesson.rate_budget, lesson.rate_limits()), (lesson.cap_budget, lesson.cap_limits()))
        found = [pair for one in (*(own.budget for own in self.budgets), *self.shared) for pair in one.limits()]
        return [(name, self._revised.get(name, limits)) for name, limits in found]

    def revise(self, percent: int) -> Iterable[tuple[str, Limits]]:
        """
        The operator sets every published limit to so much of the compiled one; yields what is in force from now on.

        The largest call still fits, and kept parts shrink with the whole.
        """
        for one in () if self.hidden else self.budgets:
            compiled = one.budget.compiled.limits
            largest = self.largest_call if one.budget.unit is Unit.TOKENS else 1
            _, annotations, idle = compiled.floors
            limits = replace(
                compiled,
                burst=max(largest, compiled.burst * percent // 100),
                quota=max(min(1, compiled.quota), compiled.quota * percent // 100),
                floors=(0, annotations * percent // 100, idle * percent // 100),
                revision=self._revised.get(one.budget.name, compiled).revision + 1,
            )
            self._revised[one.budget.name] = limits
            yield one.budget.name, limits

    def lesson(self) -> Lesson:
        """What is to be learned of a hidden limit; the operator's guess is the beginning, not the truth."""
        limit = self.settings.limits[0]
        guess = limit.assumed or limit.limit
        if isinstance(limit, told.ConcurrencyLimit):
            start, window_ms, most = Learned(ANY_RATE * MICRO, guess * MICRO, ANY_BURST * MICRO), MINUTE_MS, guess * 10
            ceilings = Ceilings(ANY_RATE, most, ANY_BURST)
        else:
            start, window_ms = Learned(guess * MICRO, ANY_CAP * MICRO, 2 * MICRO), limit.window_ms
            ceilings = Ceilings(guess * 10, ANY_CAP, guess)
        return Lesson(self.settings.name, LearnedLimit(start, window_ms, ceilings, 0))

    def rung(self) -> Rung:
        """Routes and key ring of one gate."""
        routes = {}
        members: dict[int, list[str]] = {}
        for number in range(self.settings.keys):
            scope = self.settings.scope_of(number)
            key = f"key-{number + 1}"
            routes[key] = self._route(key, scope)
            members.setdefault(scope, []).append(key)
        ring = KeyRing(QuotaScope(f"scope-{scope + 1}", tuple(keys)) for scope, keys in members.items())
        return Rung(self.settings.name, self.settings.name, routes, ring, RetryBudget())

    def _route(self, key: str, scope: int) -> Route:
        if self.hidden:
            lesson = self.lesson()
            demands = ((lesson.rate_budget, 1, 0), (lesson.cap_budget, 0, 1))
            return Route(key, demands, whole=(lesson.cap_budget,))
        return route(key, [*(one.budget for one in self.budgets if one.scope == scope), *self.shared])

    def metered(self) -> tuple[str, ...]:
        """The budgets that count tokens."""
        return tuple(one.budget.name for one in self.budgets if one.budget.unit is Unit.TOKENS)

    def compiled(self, index: int) -> Compiled:
        """Limit number `index` as each quota scope has it."""
        return next(one.budget.compiled for one in self.budgets if one.limit == index)
