"""
What the operator of a simulated gate wrote: each target's limits compiled to budgets, its keys to routes and a ring.

The gate is told the published limit, or the assumed one where the true limit is hidden; never more.
"""

from collections.abc import Iterable
from typing import NamedTuple

from swarmgate.core.book import Demand
from swarmgate.core.compiler import Compiled, Published, Unit, compile_limit
from swarmgate.core.keys import KeyRing, QuotaScope
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.pool_size import pool_size
from swarmgate.core.record import Route, Rung
from swarmgate.core.retry import RetryBudget
from swarmgate.lab import scenario as told

NO_CALL = (1, 1, 1)


class Budget(NamedTuple):
    """One compiled budget of one quota scope of a target."""

    name: str
    scope: int
    limit: int
    compiled: Compiled
    hidden: bool


class TargetPolicy:
    """Everything a gate needs to know of one target."""

    __slots__ = ("_largest", "budgets", "settings")

    def __init__(self, settings: told.Target, largest: tuple[int, int, int]) -> None:
        self.settings = settings
        self._largest = largest
        self.budgets = [
            Budget(
                f"{settings.name}:{scope + 1}:{index}",
                scope,
                index,
                self._compile(index, limit),
                limit.hidden,
            )
            for scope in range(settings.scopes)
            for index, limit in enumerate(settings.limits)
        ]

    def _compile(self, index: int, limit: told.RateLimit | told.ConcurrencyLimit) -> Compiled:
        unit = Unit.CONCURRENT if isinstance(limit, told.ConcurrencyLimit) else Unit(limit.unit)
        return compile_limit(
            Published(
                limit.assumed or limit.limit,
                0 if isinstance(limit, told.ConcurrencyLimit) else limit.window_ms,
                unit,
                headroom_percent=100 if limit.hidden else self.settings.headroom_percent,
                largest=self._largest if unit is Unit.TOKENS else NO_CALL,
                line=f"{self.settings.name}:{index}" if self.settings.scopes > 1 else "",
            )
        )

    def limits(self) -> Iterable[tuple[str, Limits]]:
        """Every budget and its limits."""
        return ((budget.name, budget.compiled.limits) for budget in self.budgets)

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
        fixed: list[Demand] = []
        metered: list[str] = []
        first_byte: list[str] = []
        whole: list[str] = []
        fresh_ms = min(budget.compiled.fresh_ms for budget in self.budgets)
        for budget in self.budgets:
            if budget.scope != scope:
                continue
            limits = budget.compiled.limits
            if getattr(self.settings.limits[budget.limit], "unit", "requests") == "tokens":
                metered.append(budget.name)
            elif limits.kind is BudgetKind.LEASES:
                fixed.append((budget.name, 0, 1))
                (first_byte if limits.hold_ms else whole).append(budget.name)
            else:
                fixed.append((budget.name, 1, 0))
        return Route(key, tuple(fixed), tuple(metered), tuple(first_byte), tuple(whole), fresh_ms)

    def undelivered(self, gates: int) -> int:
        """How many requests one gate may have on their way."""
        most = min(budget.compiled.undelivered // self._cost(budget.limit) for budget in self.budgets)
        return max(1, most // gates)

    def _cost(self, index: int) -> int:
        return max(self._largest) if getattr(self.settings.limits[index], "unit", "requests") == "tokens" else 1

    def capacity(self, index: int) -> tuple[int, int]:
        """(units, ms) that all scopes together allow of limit `index` at the compiled rate; slots by their hold alone."""
        one = next(budget.compiled.limits for budget in self.budgets if budget.limit == index)
        if one.kind is BudgetKind.LEASES:
            return one.burst * self.settings.scopes, max(1, one.hold_ms)
        return one.quota * self.settings.scopes, one.window_ms

    def connections(self, peak_per_minute: int, answer_ms: int) -> int:
        """The size of the shared pool (design 1: pool)."""
        return pool_size(peak_per_minute, answer_ms)
