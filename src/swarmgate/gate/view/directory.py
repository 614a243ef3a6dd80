"""
Whose budgets they are, which of them stand between a call and its target, and how a target as a whole is.

A target can be called as well as the best of its keys can; a key as well as the worst of its budgets.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from swarmgate.core.callers import OF_CALLERS
from swarmgate.core.compiler import Published
from swarmgate.core.record import Route, Rung
from swarmgate.core.view import BudgetState, KeyView

_OWN = re.compile(r"#|: |:learned:")  # what follows the name of whose budget it is
_WORSE = {BudgetState.READY: 0, BudgetState.BACKOFF: 1, BudgetState.STALLED: 2, BudgetState.PAUSED: 3}


class Owner(NamedTuple):
    """The target that a budget belongs to, and its key if it counts one key's use only."""

    target: str
    key: str


class TargetView(NamedTuple):
    """One target and model: its state, its keys, its budgets."""

    target: str
    model: str
    state: BudgetState
    keys: dict[str, KeyView]
    budgets: list[str]


class Directory:
    """
    Budgets by name with their owner and their published limit; `published` grows and shrinks while the gate runs.

    `models` are the rungs of the models, as they are now; `also` adds what is met on the way. `file` has what the
    configuration says of the budgets whose limit an operator has changed since.
    """

    def __init__(self, models: Callable[[], Iterable[Rung]], published: dict[str, Published]) -> None:
        self._sources = [models]
        self.published = published
        self.file: dict[str, Published] = {}
        self.renew()

    def also(self, rungs: Callable[[], Iterable[Rung]]) -> None:
        """What else can be called now."""
        self._sources.append(rungs)

    @property
    def names(self) -> list[str]:
        """Every budget that keeps a published limit, but for those of policies for hosts that nobody has called."""
        for source in self._sources[1:]:
            for rung in source():
                for route in rung.routes.values():
                    self._dormant.difference_update(taken(route))
        return [name for name in self.published if name not in self._dormant]

    def owner(self, budget: str) -> Owner:
        """Whose it is; the budgets of hosts and of policies begin with the name of theirs."""
        return self._owners.get(budget) or Owner(owner_of(budget), "")

    def change(self, budget: str, published: Published) -> None:
        """The operator states another limit; it stands over the file's until they say the same."""
        said = self.file.setdefault(budget, self.published[budget])
        self.published[budget] = published
        if said == published:
            del self.file[budget]

    def of_target(self, target: str) -> list[str]:
        """Those of one target and of its keys, of one policy or one host; empty = no such name."""
        return [name for name in self.published if self.owner(name).target == target]

    def renew(self) -> None:
        """Look up anew what takes from which budget: the ladders changed."""
        self._owners = _owners(self._sources[0]())
        self._dormant = {
            name for name in self.published.keys() - self._owners.keys() if not name.startswith(OF_CALLERS)
        }

    def freshen(self, budget: str, fresh_ms: int) -> None:
        """A budget's tokens get old sooner from now on (core/compiler.py: X): in every route that takes from it."""
        for rung in self.rungs():
            for key, route in rung.routes.items():
                if budget in taken(route) and fresh_ms < route.fresh_ms:
                    rung.routes[key] = route._replace(fresh_ms=fresh_ms)

    def rungs(self) -> Iterator[Rung]:
        """Everything that can be called now."""
        for source in self._sources:
            yield from source()

    def targets(self, states: Mapping[str, BudgetState], now_ms: int) -> Iterator[TargetView]:
        """Every target and model that takes from one of these budgets, or from none at all."""
        for rung in self.rungs():
            budgets = [name for route in rung.routes.values() for name in taken(route) if name in self.published]
            if not budgets or any(name in states for name in budgets):
                yield _target(rung, states, now_ms)


def owner_of(budget: str) -> str:
    """The host, the group of hosts or the policy with whose name a budget begins."""
    return _OWN.split(budget, 1)[0]


def taken(route: Route) -> dict[str, None]:
    """Every budget that a call by this route takes from, in order."""
    fixed = [demand[0] for demand in route.fixed]
    sized = (*route.metered, *route.inputs, *route.outputs, *route.weighed)
    return dict.fromkeys((*fixed, *sized, *route.first_byte, *route.whole, *route.ways))


def _owners(rungs: Iterable[Rung]) -> dict[str, Owner]:
    found: dict[str, Owner] = {}
    for rung in rungs:
        for key, route in rung.routes.items():
            for name in taken(route):
                known = found.get(name)
                shared = known is not None and known.key != key
                found[name] = Owner(rung.target, "" if shared or len(rung.routes) == 1 else key)
    return found


def _target(rung: Rung, states: Mapping[str, BudgetState], now_ms: int) -> TargetView:
    keys = rung.ring.views(now_ms)
    budgets = {key: [name for name in taken(route) if name in states] for key, route in rung.routes.items()}
    by_key = [_worst([keys[key].state, *map(states.__getitem__, own)]) for key, own in budgets.items()]
    best = min(by_key, key=_WORSE.__getitem__, default=BudgetState.STALLED)
    return TargetView(rung.target, rung.model, best, keys, list(dict.fromkeys(chain(*budgets.values()))))


def _worst(states: list[BudgetState]) -> BudgetState:
    return max(states, key=_WORSE.__getitem__)
