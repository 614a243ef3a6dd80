"""
From configuration to a gate: the only module that imports everything.

A quota becomes a budget, a key a route through the budgets that it takes from, a deployment a rung. Budgets of
interchangeable keys share one line: a call waits for whichever of them admits it first (design 4: Line).
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType

from swarmgate import wiring_caps
from swarmgate.config import ANY_MODEL, BaseUrl, Config, Deployment, Quota, Target
from swarmgate.config.task_types import COMPRESS
from swarmgate.core.book import Book
from swarmgate.core.estimate import Charge
from swarmgate.core.keys import KeyRing, QuotaScope
from swarmgate.core.ladders import Ladders
from swarmgate.core.limits import BudgetKind
from swarmgate.core.record import Call, Rung
from swarmgate.core.retry import RetryBudget
from swarmgate.core.routing import Budget, budget, route
from swarmgate.engine.memory_journal import MemoryJournal
from swarmgate.gate.compress import Ceiling
from swarmgate.gate.model_route import PATHS
from swarmgate.gate.service import CONNECTIONS, Gate, Plan
from swarmgate.gate.target import ModelTarget
from swarmgate.http1.head import Header
from swarmgate.http1.tls import client_context
from swarmgate.http1.upstreams import Origin
from swarmgate.ports import Journal
from swarmgate.prices import PriceBook, listed
from swarmgate.providers.dialect import Dialect
from swarmgate.providers.tables import GENERIC, dialect_named, dialect_of
from swarmgate.stores.memory.store import MemoryStore
from swarmgate.wiring_egress import budgets_of, egress_plan


def gate(
    loop: asyncio.AbstractEventLoop,
    config: Config,
    failed: Callable[[Call, Exception], None],
    book: Book | None = None,
    *,
    journal: Journal | None = None,
    served: Plan | None = None,
) -> Gate:
    """
    The gate that a configuration describes, not yet listening; `failed` hears of bugs in single calls.

    `book` holds what its budgets remember; without one they start cold. `journal` keeps the evidence, without one in
    memory; `served` is its plan, if it was made already.
    """
    store_of = partial(MemoryStore, book=book)
    return Gate(loop, served or plan(config), store_of, journal or MemoryJournal(), failed, client_context())


def plan(config: Config, kinds: Mapping[str, BudgetKind] = MappingProxyType({})) -> Plan:
    """
    What is served: ladders, targets, budgets, lines. `kinds` are those of budgets that are in use already.

    Errors: `BadLimit` if a limit needs a budget of another kind than the one in use.
    """
    shops = {name: _Shop(name, target, kinds) for name, target in config.targets.items()}
    routes = config.routes
    if shops and not routes:
        routes = {ANY_MODEL: (Deployment(next(iter(shops)), ANY_MODEL),)}
    rungs = {rung: shops[rung.target].rung(rung.model) for ladder in routes.values() for rung in ladder}
    egress = egress_plan(config)
    budgets = [one for shop in shops.values() for one in shop.budgets()]
    budgets += wiring_caps.shared(config)
    prices = PriceBook({name: table.price for name, table in config.prices.items()})
    if wiring_caps.counts_money(config):
        prices.of(ANY_MODEL, "")  # loads the list now, and not while the first call waits
    budgets += budgets_of(egress.policies).values()
    limits = dict(pair for one in budgets for pair in one.limits())
    return Plan(
        Ladders({alias: _ladder([rungs[one] for one in ladder], shops) for alias, ladder in routes.items()}),
        {name: shop.model_target() for name, shop in shops.items()},
        limits,
        {name: one.line for name, one in limits.items() if one.line},
        {one.name: one.published for one in budgets},
        wiring_caps.caps(config),
        {
            name: Ceiling(table.context, table.over == COMPRESS)
            for name, table in config.task_types.items()
            if table.context is not None
        },
        egress,
        prices,
        config.connections or CONNECTIONS,
    )


def limits(config: Config) -> Iterator[tuple[str, Budget]]:
    """Every limit of the configuration once, with whose it is: what `check` shows."""
    for name, target in config.targets.items():
        for quota in target.limits:
            yield name, budget(f"{name}: {quota}", target.published(quota))
        for quota in target.key_limits:
            yield f"{name}, each key", budget(f"{name}: keys {quota}", target.published(quota))
    yield from wiring_caps.limits(config)
    for name, table in config.policies.items():
        for _, costed in table.all_limits():
            yield f"policy {name}", budget(f"{name}: {costed.quota}", table.published(costed))


def unpriced_models(config: Config) -> list[str]:
    """Deployments whose price nobody knows, where a cap in money asks for it; those that serve any model are not told."""
    if not wiring_caps.counts_money(config):
        return []
    prices = PriceBook({name: table.price for name, table in config.prices.items()})
    rungs = {rung for ladder in config.routes.values() for rung in ladder if rung.model != ANY_MODEL}
    return sorted(
        f"{rung.target}/{rung.model}"
        for rung in rungs
        if prices.of(rung.model, _dialect(config.targets[rung.target]).name, rung.target) is None
    )


def _ladder(rungs: list[Rung], shops: Mapping[str, "_Shop"]) -> tuple[Rung, ...]:
    """
    Rungs below the first know the window of their model, where it is listed: a call that is larger passes them over.

    The first is what the caller asked for, and sizes are estimates: it is tried whatever they say.
    """
    return (
        *rungs[:1],
        *(rung._replace(window_tokens=shops[rung.target].window_tokens(rung.model)) for rung in rungs[1:]),
    )


def _dialect(target: Target) -> Dialect:
    return dialect_named(target.provider) if target.provider else dialect_of(target.base_url.host)


class _Shop:
    """One target with its keys: what every rung at it shares."""

    def __init__(self, name: str, target: Target, kinds: Mapping[str, BudgetKind]) -> None:
        self._name = name
        self._target = target
        self._retries = RetryBudget()
        self._dialect = _dialect(target)
        self._shared = [self._budget(name, quota, "", kinds) for quota in target.limits]
        self._own = {
            key: [
                self._budget(f"{name}/{key}", quota, f"{name}: keys {quota.counts}", kinds)
                for quota in target.key_limits
            ]
            for key in target.keys
        }

    def _budget(self, owner: str, quota: Quota, line: str, kinds: Mapping[str, BudgetKind]) -> Budget:
        name = f"{owner}: {quota.counts}"
        return budget(name, self._target.published(quota, line), kinds.get(name))

    def budgets(self) -> Iterator[Budget]:
        yield from self._shared
        for own in self._own.values():
            yield from own

    def window_tokens(self, model: str) -> int:
        """The largest call that a model takes by the public list; 0 = not known."""
        found = listed(model, self._dialect.name) if model and self._dialect is not GENERIC else None
        return (found.context_tokens or 0) if found is not None else 0

    def rung(self, model: str) -> Rung:
        """A deployment: an ejection by one model leaves the others alone, so each has its own ring."""
        ring = KeyRing([QuotaScope(key, (key,)) for key in self._own])
        routes = {key: route(key, [*self._shared, *own]) for key, own in self._own.items()}
        reserves = self._dialect.charge.reserves_output
        charge = Charge.PROMPT_AND_LARGEST_OUTPUT if reserves else Charge.PROMPT_THEN_OUTPUT
        named = "" if model == ANY_MODEL else model
        serves = None if self._dialect is GENERIC else frozenset(self._dialect.paths)
        return Rung(self._name, named, routes, ring, self._retries, charge=charge, serves=serves)

    def model_target(self) -> ModelTarget:
        url = self._target.base_url
        dialect = self._dialect
        auth = self._target.auth or dialect.auth
        credentials = {key: _auth(auth, secret.get_secret_value()) for key, secret in self._target.keys.items()}
        origin = Origin(url.scheme, url.host, url.port)
        base = url.path or ("" if dialect is GENERIC else dialect.base_path)
        return ModelTarget(origin, _host(url), base.encode(), credentials, PATHS, dialect=dialect)


def _auth(kind: str, key: str) -> Header:
    return (b"authorization", f"Bearer {key}".encode()) if kind == "bearer" else (kind.encode(), key.encode())


def _host(url: BaseUrl) -> bytes:
    host = f"[{url.host}]" if ":" in url.host else url.host
    usual = 443 if url.scheme == "https" else 80
    return (host if url.port == usual else f"{host}:{url.port}").encode()
