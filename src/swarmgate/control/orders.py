"""
What the control process may ask of the data process: one table, name by name.

Each order gets what was said with it and returns what JSON can carry; `BadInput` refuses it. A change of a limit is a
compare-and-set in the store, then a revision with its author and reason in the journal (design 2: P12).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from swarmgate.control.link import Order, Said
from swarmgate.core.answers import Revised
from swarmgate.core.compiler import WAY, compile_limit
from swarmgate.core.errors import BadInput
from swarmgate.core.ladders import Ladders
from swarmgate.core.limits import BadLimit, Limits
from swarmgate.core.record import Call
from swarmgate.core.view import view
from swarmgate.gate.service import Gate, Plan
from swarmgate.stores.journal.in_force import InForce, Limit, Why
from swarmgate.stores.journal.journal import FileJournal
from swarmgate.stores.memory.store import MemoryStore

MOST_CALLS: Final = 1_000
_LONGEST_REASON: Final = 500


class DataOrders:
    """The orders of one running gate; `table` may be added to before the link listens."""

    def __init__(
        self, gate: Gate, store: MemoryStore, journal: FileJournal, in_force: InForce, limits: dict[str, Limit]
    ) -> None:
        self._gate = gate
        self._store = store
        self._journal = journal
        self._in_force = in_force
        self._limits = limits
        self.table: dict[str, Order] = {
            "state": self.state,
            "snapshot": self.snapshot,
            "calls": self.calls,
            "pause": lambda said: self._pause(said, paused=True),
            "resume": lambda said: self._pause(said, paused=False),
            "limit": self.limit,
        }

    def state(self, _said: Said) -> Said:
        """Whether the gate takes calls, how many are open, and whether its journal is written."""
        writer = self._journal.writer
        return {
            "run": self._journal.run,
            "now_ms": self._gate.clock.now_ms(),
            "is_stopping": self._gate.is_stopping,
            "open": len(self._gate.pump.open),
            "connections": len(self._gate.doors),
            "policy": self._journal.policy,
            "journal": {"trouble": writer.trouble, "durable": writer.durable, "sequence": writer.sequence},
        }

    def snapshot(self, _said: Said) -> Said:
        """The state, every budget as it stands, and what came of the store."""
        book, now_ms = self._store.book, self._gate.clock.now_ms()
        budgets = [self._budget(name, now_ms) for name in book.cells if not name.endswith(WAY)]
        return {"state": self.state({}), "budgets": budgets, "debt_units": self._store.debt_units}

    def calls(self, said: Said) -> list[Said]:
        """Open calls, oldest first; `state` = only those that are queued, running or in backoff."""
        wanted = said.get("state")
        found = (call for call in self._gate.pump.open if wanted in {None, call.state.public})
        return [_shown(call) for _, call in zip(range(MOST_CALLS), found, strict=False)]

    def limit(self, said: Said) -> list[Said]:
        """Another amount, and window if one is said, for a budget or for each budget of a target that has one."""
        amount, window_ms = said.get("amount"), said.get("window_ms")
        if not isinstance(amount, int) or not isinstance(window_ms, int | None):
            raise BadInput("amount", "must be an integer, and so must window_ms where it is said")
        why, done = _why(said), []
        for name, old in list(self._named(said)):
            if old.published is None:
                raise BadInput("budget", f"{name} has no published limit that could be changed")
            published = replace(old.published, amount=amount, window_ms=window_ms or old.published.window_ms)
            try:
                compiled = compile_limit(published)
            except BadLimit as bad:
                raise BadInput("amount", f"{name}: {bad.reason}") from None
            way = compiled.way()
            if way is not None and name + WAY in self._store.book.cells:
                self._replace(name + WAY, way)
            done.append(self._revise(name, Limit(compiled.limits, published, old.target), why))
        return done

    def _pause(self, said: Said, *, paused: bool) -> list[Said]:
        why = _why(said)
        named = list(self._named(said))
        changed = [(name, old) for name, old in named if self._store.book.cells[name].limits.paused != paused]
        return [
            self._revise(name, old._replace(limits=replace(self._store.book.cells[name].limits, paused=paused)), why)
            for name, old in changed
        ]

    def _named(self, said: Said) -> Iterator[tuple[str, Limit]]:
        """The budget of that name, or the budgets of the target of that name."""
        name = said.get("budget") or said.get("target")
        found = [(key, limit) for key, limit in self._limits.items() if name in {key, limit.target}]
        if not found:
            raise BadInput("budget", f"{str(name)[:80]!r} is neither a budget nor a target that has one")
        yield from found

    def _revise(self, name: str, limit: Limit, why: Why) -> Said:
        revision = self._replace(name, limit.limits)
        now_ms = self._gate.clock.now_ms()
        self._limits[name] = limit
        self._in_force.adopt({name: limit}, why, now_ms)
        self._in_force.save()
        self._journal.policy = self._in_force.policy
        for row in self._in_force.rows({name: limit}, *self._journal.next()):
            self._journal.add(row)
        return {"budget": name, "revision": revision, "policy": self._in_force.policy}

    def _replace(self, name: str, limits: Limits) -> int:
        expected = self._store.book.cells[name].limits.revision
        answers: list[Revised] = []
        self._store.revise(name, expected, replace(limits, revision=expected + 1), answers.append)
        if not answers[0].done:
            raise BadInput(
                "amount", f"{name} would become a budget of another kind: change the configuration and restart"
            )
        return answers[0].revision

    def _budget(self, name: str, now_ms: int) -> Said:
        seen, limit = view(self._store.book, name, now_ms), self._limits.get(name)
        published = limit.published if limit is not None else None
        return {
            "budget": name,
            "target": limit.target if limit is not None else "",
            "unit": published.unit.value if published else "",
            "amount": published.amount if published else 0,
            "window_ms": published.window_ms if published else 0,
            "burst": self._store.book.cells[name].limits.burst,
            "state": seen.state.value,
            "revision": seen.revision,
            "remaining": seen.remaining,
            "free_at_ms": seen.room.free_at_ms,
            "backlog": seen.backlog,
        }


def limits_of(plan: Plan) -> dict[str, Limit]:
    """Every budget of a plan that keeps a published limit, with the target that it is for."""
    owners = dict(_owners(plan.ladders))
    return {
        name: Limit(plan.budgets[name], published, owners.get(name, "")) for name, published in plan.published.items()
    }


def _owners(ladders: Ladders) -> Iterator[tuple[str, str]]:
    for rung in ladders.rungs:
        for route in rung.routes.values():
            for name in (*(demand[0] for demand in route.fixed), *route.metered):
                yield name, rung.target


def _why(said: Said) -> Why:
    author, reason = said.get("author"), said.get("reason")
    if not author or not reason:
        raise BadInput("reason", "who changes a limit says who and why: author and reason")
    return Why(str(author)[:128], str(reason)[:_LONGEST_REASON])


def _shown(call: Call) -> dict[str, Any]:
    return {
        "id": call.id,
        "state": call.state.public,
        "reason": call.reason.value if call.reason else "",
        "target": call.rungs[call.rung].target,
        "model": call.rungs[call.rung].model,
        "key": call.route.key if call.route else "",
        "attempt": call.attempt,
        "priority": f"P{call.rank}",
        "arrived_ms": call.arrived_ms,
        "agent": call.step.agent,
        "goal": call.step.goal,
        "step": call.step.step,
    }
