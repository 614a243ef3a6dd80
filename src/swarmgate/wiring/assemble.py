"""The whole of a configuration put together: what is served (`Plan`), and the gate that serves it."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType

from swarmgate.config import ANY_MODEL, Config, Deployment
from swarmgate.config.task_types import COMPRESS
from swarmgate.core.book import Book
from swarmgate.core.ladders import Ladders
from swarmgate.core.limits import BudgetKind
from swarmgate.core.record import Call, Rung
from swarmgate.core.routing import Budget, budget
from swarmgate.engine.memory_journal import MemoryJournal
from swarmgate.facts.prices import PriceBook, listed
from swarmgate.gate.compress import Ceiling
from swarmgate.gate.service import CONNECTIONS, Gate, Plan
from swarmgate.gate.structured import checker
from swarmgate.http1.tls import Contexts, client_context, server_context
from swarmgate.ports import Journal
from swarmgate.stores.memory.store import MemoryStore
from swarmgate.wiring import caps
from swarmgate.wiring.egress import budgets_of, egress_plan
from swarmgate.wiring.models import KeyedTarget, dialect_at


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
    return Gate(loop, served or plan(config), store_of, journal or MemoryJournal(), failed, _contexts(config))


def _contexts(config: Config) -> Contexts:
    told, callers = config.tls, None
    if told.certificate is not None and told.key is not None:
        callers = server_context(told.certificate, told.key, told.client_ca)
    return Contexts(client_context(told.target_ca), callers)


def plan(config: Config, kinds: Mapping[str, BudgetKind] = MappingProxyType({})) -> Plan:
    """
    What is served: ladders, targets, budgets, lines. `kinds` are those of budgets that are in use already.

    Errors: `BadLimit` if a limit needs a budget of another kind than the one in use.
    """
    targets = {name: KeyedTarget(name, target, kinds) for name, target in config.targets.items()}
    routes = config.routes
    if targets and not routes:
        routes = {ANY_MODEL: (Deployment(next(iter(targets)), ANY_MODEL),)}
    rungs = {rung: targets[rung.target].rung(rung.model) for ladder in routes.values() for rung in ladder}
    egress = egress_plan(config, kinds)
    budgets = [one for target in targets.values() for one in target.budgets()]
    budgets += caps.shared(config)
    prices = PriceBook({name: table.price for name, table in config.prices.items()})
    if caps.counts_money(config):
        prices.of(ANY_MODEL, "")  # loads the list now, and not while the first call waits
    budgets += budgets_of(egress.policies).values()
    limits = dict(pair for one in budgets for pair in one.limits())
    return Plan(
        Ladders({alias: _ladder([rungs[one] for one in ladder], targets) for alias, ladder in routes.items()}),
        {name: target.model_target() for name, target in targets.items()},
        limits,
        {name: one.line for name, one in limits.items() if one.line},
        {one.name: one.published for one in budgets},
        caps.caps(config),
        {
            name: Ceiling(table.context, table.over == COMPRESS)
            for name, table in config.task_types.items()
            if table.context is not None
        },
        egress,
        prices,
        config.connections or CONNECTIONS,
        _warm if any(len(ladder) > 1 for ladder in routes.values()) else None,
        config.access.identity,
    )


def _warm() -> None:
    """Read what a call may need that steps down a ladder: the public list, and what checks a structured answer."""
    listed("gpt-4o-mini")
    checker()


def limits(config: Config) -> Iterator[tuple[str, Budget]]:
    """Every limit of the configuration once, with whose it is: what `check` shows."""
    for name, target in config.targets.items():
        for quota in target.limits:
            yield name, budget(f"{name}: {quota}", target.published(quota))
        for quota in target.key_limits:
            whose = "each account" if target.accounts else "each key"
            yield f"{name}, {whose}", budget(f"{name}: keys {quota}", target.published(quota))
    yield from caps.limits(config)
    for name, table in config.policies.items():
        for _, costed in table.all_limits():
            yield f"policy {name}", budget(f"{name}: {costed.quota}", table.published(costed))


def unpriced_models(config: Config) -> list[str]:
    """Deployments whose price nobody knows, where a cap in money asks for it; those that serve any model are not told."""
    if not caps.counts_money(config):
        return []
    prices = PriceBook({name: table.price for name, table in config.prices.items()})
    rungs = {rung for ladder in config.routes.values() for rung in ladder if rung.model != ANY_MODEL}
    return sorted(
        f"{rung.target}/{rung.model}"
        for rung in rungs
        if prices.of(rung.model, dialect_at(config.targets[rung.target]).name, rung.target) is None
    )


def _ladder(rungs: list[Rung], targets: Mapping[str, KeyedTarget]) -> tuple[Rung, ...]:
    """
    The rungs of several know the window of their model, where it is told or listed: a call that is larger passes them over.

    The list is read when the first call asks, if `Plan.warm` has not read it by then.
    """
    if len(rungs) == 1:
        return tuple(rungs)
    return tuple(rung._replace(window=partial(targets[rung.target].window_tokens, rung.model)) for rung in rungs)
