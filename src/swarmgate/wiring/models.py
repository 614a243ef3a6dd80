"""
From configured targets to what ladders are made of: budgets, routes, rings of keys, rungs.

A quota becomes a budget, a key a route through the budgets that it takes from, a deployment a rung. Budgets of
interchangeable keys share one line: a call waits for whichever of them admits it first (design 4: Line).
"""

from collections.abc import Iterator, Mapping

from swarmgate.config import ANY_MODEL, BaseUrl, Quota, Target
from swarmgate.core.compiler import Unit
from swarmgate.core.estimate import Charge
from swarmgate.core.keys import KeyRing, QuotaScope
from swarmgate.core.limits import BudgetKind
from swarmgate.core.record import Rung
from swarmgate.core.retry import RetryBudget
from swarmgate.core.routing import Budget, budget, route
from swarmgate.core.rung_breaker import RungBreaker
from swarmgate.facts.prices import listed
from swarmgate.gate.model_route import PATHS
from swarmgate.gate.target import ModelTarget
from swarmgate.http1.head import Header
from swarmgate.http1.upstreams import Origin
from swarmgate.providers.dialect import Dialect
from swarmgate.providers.tables import GENERIC, dialect_named, dialect_of


def dialect_at(target: Target) -> Dialect:
    """How a target speaks: as its operator says, else as its host does."""
    return dialect_named(target.provider) if target.provider else dialect_of(target.base_url.host)


class KeyedTarget:
    """
    One target with its keys: what every rung at it shares.

    A key that is dead is so for all its models; a 429 is one model's own, unless the provider counts all of them together.
    """

    def __init__(self, name: str, target: Target, kinds: Mapping[str, BudgetKind]) -> None:
        self._name = name
        self._target = target
        self._retries = RetryBudget()
        self._dialect = dialect_at(target)
        together = not self._dialect.counts_models
        self._ring = KeyRing([QuotaScope(*scope) for scope in target.scopes.items()], together=together)
        self._shared = [self._budget(name, quota, "", kinds) for quota in target.limits]
        self._own = {
            scope: [
                self._budget(f"{name}/{scope}", quota, f"{name}: keys {quota.counts}", kinds)
                for quota in target.key_limits
            ]
            for scope in target.scopes
        }

    def _budget(self, owner: str, quota: Quota, line: str, kinds: Mapping[str, BudgetKind]) -> Budget:
        name = f"{owner}: {quota.counts}"
        return budget(name, self._target.published(quota, line), kinds.get(name))

    def budgets(self) -> Iterator[Budget]:
        """Those of the target, then those of each key or account."""
        yield from self._shared
        for own in self._own.values():
            yield from own

    def window_tokens(self, model: str, asked: str) -> int:
        """
        The largest call that a rung's model takes, or the one that was asked for if it names none; 0 = not known.

        The operator's word comes first. The public list is asked of models in the file only: callers make names up.
        """
        if told := self._target.window(model or asked):
            return told
        found = listed(model, self._dialect.name) if model and self._dialect is not GENERIC else None
        return (found.context_tokens or 0) if found is not None else 0

    def rung(self, model: str) -> Rung:
        """
        A deployment: an ejection by one model leaves the others alone, so each has its own ring.

        A deployment of any model makes one for each that is called, unless the provider counts all of them together.
        """
        scopes = self._target.scopes
        ring = self._ring.apart()
        own_of = {key: self._own[scope] for scope, keys in scopes.items() for key in keys}
        routes = {key: route(key, [*self._shared, *own_of[key]]) for key in self._target.keys}
        named = "" if model == ANY_MODEL else model
        serves = None if self._dialect is GENERIC else frozenset(self._dialect.paths)
        taken = [frozenset(name for name, _, _ in one.demands(0, 0)) for one in routes.values()]
        own = frozenset.union(*taken) - frozenset.intersection(*taken)
        apart = None if named or not self._dialect.counts_models else ring.apart
        return Rung(
            self._name,
            named,
            routes,
            ring,
            self._retries,
            charge=self._charge(),
            serves=serves,
            own=own,
            apart=apart,
            breaker=RungBreaker(),
        )

    def _charge(self) -> Charge:
        """What its provider counts; where it counts output apart, it does so as the output is made."""
        told, quotas = self._dialect.charge, (*self._target.limits, *self._target.key_limits)
        if not told.counts_cached:
            return Charge.UNCACHED_THEN_OUTPUT
        apart = any(quota.unit in {Unit.INPUT_TOKENS, Unit.OUTPUT_TOKENS} for quota in quotas)
        return Charge.PROMPT_AND_LARGEST_OUTPUT if told.reserves_output and not apart else Charge.PROMPT_THEN_OUTPUT

    def model_target(self) -> ModelTarget:
        """Where its requests go, and with which credentials."""
        url = self._target.base_url
        dialect = self._dialect
        auth = self._target.auth or dialect.auth
        credentials = {key: _auth(auth, secret.get_secret_value()) for key, secret in self._target.keys.items()}
        origin = Origin(url.scheme, url.host, url.port)
        base = url.path or ("" if dialect is GENERIC else dialect.base_path)
        made = ModelTarget(origin, _host(url), base.encode(), credentials, PATHS, dialect=dialect)
        made.windows = self._target.windows
        return made


def _auth(kind: str, key: str) -> Header:
    return (b"authorization", f"Bearer {key}".encode()) if kind == "bearer" else (kind.encode(), key.encode())


def _host(url: BaseUrl) -> bytes:
    host = f"[{url.host}]" if ":" in url.host else url.host
    usual = 443 if url.scheme == "https" else 80
    return (host if url.port == usual else f"{host}:{url.port}").encode()
