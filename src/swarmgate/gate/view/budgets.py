"""
`/budgets`: what is left of every published limit, when the next unit is free, who waits, how each target is, and what
policies that only watch would have held back.

Places on the way (core/compiler.py) have no published limit and are not told: they free themselves in milliseconds.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from swarmgate.core.book import Book
from swarmgate.core.compiler import Published
from swarmgate.core.errors import BadInput
from swarmgate.core.limits import Limits
from swarmgate.core.nearest import near
from swarmgate.core.scope import ANY, NOBODY, Scope
from swarmgate.core.view import BudgetState, BudgetView, PerClass, at_rest, view
from swarmgate.gate.egress.shadow import Watching
from swarmgate.gate.view.directory import Directory, Owner, TargetView
from swarmgate.gate.view.surface import Query, number, relative, words
from swarmgate.gate.view.viewer import Knows, may_call, met_as, sees

CLASSES = ("P0", "P1", "P2")
MOST_UNITS = 10**12
MOST_ROWS = 150  # some 5 ms of the loop, as long as twenty calls; ask for one target where there are more


class Budgets:
    """
    The budgets of one book, as JSON values; `watching` tells what policies that only watch have seen.

    `knows` tells whether a team may know of a host that somebody has met, `has_met` whether it calls it itself; `of_url` finds
    what a request to a URL takes from.
    """

    def __init__(self, book: Book, now_ms: Callable[[], int], directory: Directory) -> None:
        self.book = book
        self._now_ms = now_ms
        self.directory = directory
        self.watching: Callable[[], Iterable[Watching]] = lambda: ()
        self.knows: Knows = lambda _team, _name: True
        self.has_met: Knows = lambda _team, _host: True
        self.of_url: Callable[[str, str, Scope], Iterable[str]] | None = None

    def read(self, query: Query, viewer: Scope = NOBODY) -> object:
        """
        Everything that the viewer may see, or one target's, or all that a request to a URL takes from; with `units`, when so many
        will be free.

        Errors: `BadInput`.
        """
        target, url, method, asked = words(query, "target", "url", "method", "units")
        units = number("units", asked, 1, MOST_UNITS, 1)
        if url and self.of_url is not None:
            all_names = [name for name in self.of_url(url, method or "GET", viewer) if name in self.directory.published]
        else:
            all_names = self.directory.of_target(target) if target else self.directory.names
        names = list(filter(self.seen_by(viewer), all_names))
        if target and not names:
            known = filter(self.seen_by(viewer), self.directory.names)
            like = near(target, dict.fromkeys(self.directory.owner(one).target for one in known))
            raise BadInput("target", f"{target[:80]!r} has no budget here{like}")
        now_ms = self.now_ms()
        seen = {name: view(self.book, name, now_ms, units) for name in names[:MOST_ROWS] if name in self.book.cells}
        return {**self.rows(seen, viewer, target), "left_off": max(0, len(names) - MOST_ROWS)}

    def seen_by(self, viewer: Scope) -> Callable[[str], bool]:
        """Which budgets a viewer may see."""
        return sees(viewer, self.directory.rungs, self.knows)

    def now_ms(self) -> int:
        """Now, on the clock of the book."""
        return self._now_ms() + self.book.offset_ms

    def again(self, names: Iterable[str], seen: Mapping[str, BudgetView]) -> dict[str, BudgetView]:
        """These budgets; those that rest since they were `seen` are not looked at."""
        now_ms, found = self.now_ms(), {}
        for name in names:
            old = seen.get(name)
            if name in self.book.cells:
                found[name] = old if old is not None and at_rest(self.book, old) else view(self.book, name, now_ms)
        return found

    def rows(self, seen: Mapping[str, BudgetView], viewer: Scope = NOBODY, target: str = "") -> dict[str, object]:
        """Budgets and their targets (those without budgets: all, or `target`) as a client reads them; instants are ms from now, null = an event, or nobody knows."""
        published, owner = self.directory.published, self.directory.owner
        states = {name: one.state for name, one in seen.items()}
        now_ms = self._now_ms()  # keys are on the gate's clock
        found = (one for one in self.directory.targets(states, now_ms) if self._is_shown(viewer, one.target))
        targets = islice((one for one in found if one.budgets or target in {"", one.target}), MOST_ROWS)
        return {
            "budgets": [
                _row(one, owner(name), published[name])
                | {"file": _said(self.directory.file.get(name)), "in_force": _in_force(self.book.cells[name].limits)}
                for name, one in seen.items()
                if name in published and name in self.book.cells
            ],
            "targets": [_target_row(one, now_ms) for one in targets],
            "watching": [_watching_row(one) for one in self._watched(viewer) if target in {"", one.policy}],
        }

    def _is_shown(self, viewer: Scope, target: str) -> bool:
        return may_call(viewer, target) and self.has_met(viewer.team, met_as(target))

    def _watched(self, viewer: Scope) -> Iterable[Watching]:
        """The policies that only watch, of hosts that the viewer may call."""
        if viewer.targets == ANY:
            return self.watching()
        rungs = (rung for rung in self.directory.rungs() if rung.watched and may_call(viewer, rung.target))
        names = {name for rung in rungs for name, _ in rung.watched}
        return [one for one in self.watching() if one.policy in names]


def _row(one: BudgetView, owner: Owner, published: Published) -> dict[str, object]:
    p0, p1, p2 = (relative(at_ms, one.now_ms) for at_ms in one.room.free_at_ms)
    certain = [relative(at_ms, one.now_ms) for at_ms in one.room.certain_ms]
    return {
        "budget": one.budget,
        "target": owner.target,
        "key": owner.key or None,
        "unit": published.unit.value,
        "limit": published.amount,
        "window_ms": published.window_ms or None,
        "revision": one.revision,
        "state": one.state.value,
        "remaining": per_class(one.remaining),
        "units": one.room.units,
        "units_free_in_ms": {"P0": p0, "P1": p1, "P2": p2},
        "certain_in_ms": dict(zip(CLASSES, certain, strict=True)),
        "backlog": per_class(one.backlog),
    }


def _said(published: Published | None) -> dict[str, object] | None:
    """What the configuration says where an operator has said another limit since; null = nothing else."""
    return None if published is None else {"limit": published.amount, "window_ms": published.window_ms or None}


def _in_force(limits: Limits) -> dict[str, object]:
    """What the kernel is told: the compiled or learned form of the published limit."""
    return {
        "kind": limits.kind.name.lower(),
        "burst": limits.burst,
        "quota": limits.quota or None,
        "window_ms": limits.window_ms if limits.quota else None,
        "hold_ms": limits.hold_ms or None,
    }


def per_class(amounts: PerClass) -> dict[str, int]:
    """Amounts by the names of the classes."""
    return dict(zip(CLASSES, amounts, strict=True))


def _target_row(one: TargetView, now_ms: int) -> dict[str, object]:
    out = {key: seen.back_at_ms for key, seen in one.keys.items() if seen.state is not BudgetState.READY}
    return {
        "target": one.target,
        "model": one.model or None,
        "state": one.state.value,
        "keys": len(one.keys),
        "keys_out_for_ms": {key or "all": relative(back_ms, now_ms) for key, back_ms in out.items()},
        "budgets": one.budgets,
    }


def _watching_row(one: Watching) -> dict[str, object]:
    return {
        "policy": one.policy,
        "passed": one.passed,
        "held_back": one.held_back,
        "budgets": [
            {
                "budget": budget.name,
                "unit": budget.unit.value,
                "limit": budget.published.amount,
                "window_ms": budget.published.window_ms or None,
                "held_back": count,
            }
            for budget, count in one.budgets
        ],
    }
