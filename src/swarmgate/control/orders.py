"""
What the control process may ask of the data process: one table, name by name.

Each order gets what was said with it and returns what JSON can carry; `BadInput` refuses it. A change of a limit is a
compare-and-set in the store, then a revision with its author and reason in the journal (design 2: P12).
"""

import asyncio
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from swarmgate.config import ANY_MODEL
from swarmgate.control.link import Order, Said
from swarmgate.core.callers import AGENT, KEY
from swarmgate.core.compiler import WAY
from swarmgate.core.errors import BadInput
from swarmgate.core.ladders import Ladders
from swarmgate.core.limits import EXACT, Limits
from swarmgate.core.record import Call
from swarmgate.core.scope import Scope
from swarmgate.core.view import view
from swarmgate.engine.clock import unix_ms
from swarmgate.gate.compress import Ceiling
from swarmgate.gate.keeper import Keeper
from swarmgate.gate.operate import Change
from swarmgate.gate.service import Gate, Plan
from swarmgate.ports import NearStore
from swarmgate.stores.journal import rows
from swarmgate.stores.journal.audit import Audit
from swarmgate.stores.journal.in_force import CONFIGURATION, InForce, Limit, Why
from swarmgate.stores.journal.in_force import FILE as IN_FORCE
from swarmgate.stores.journal.journal import FileJournal

MOST_CALLS: Final = 1_000
MOST_A_TURN: Final = 16  # budgets that are looked at between two turns of the loop: 25 us each
_LONGEST_REASON: Final = 500
_MONEY: Final = " USD "


class DataOrders:
    """The orders of one running gate; `table` may be added to before the link listens."""

    def __init__(
        self, gate: Gate, journal: FileJournal, in_force: InForce, limits: dict[str, Limit], audit: Audit
    ) -> None:
        assert gate.operator is not None
        assert isinstance(gate.store, NearStore)
        self._operator = gate.operator
        self._gate = gate
        self._store = gate.store
        self._audit = audit
        self._journal = journal
        self._in_force = in_force
        self._limits = limits
        self._ceilings: dict[str, Ceiling] = {}
        self.file_trouble = ""  # why the configuration could not be read again
        self.table: dict[str, Order] = {
            "state": self.state,
            "snapshot": self.snapshot,
            "standing": self.standing,
            "calls": self.calls,
            "pause": self.pause,
            "resume": self.resume,
            "limit": self.limit,
        }

    def admit_keys(self, keeper: Keeper) -> None:
        """Let the table of agents' keys be replaced over the link (control/agent_keys.py: table)."""

        def replace(said: Said) -> Said:
            scopes = {name: _scope(told) for name, told in said["scopes"].items()}
            keeper.replace(b64decode(said["pepper"]), scopes)
            self._gate.desk.end_lost()
            self._gate.cap_callers()
            if any(_MONEY in limit for scope in scopes.values() for limit in scope.limits):
                self._gate.plan.prices.of(ANY_MODEL, "")  # loads the list now, and not while the first call waits
            changed = said.get("changed")
            if changed is not None:
                key, what, author = (str(changed[name])[:_LONGEST_REASON] for name in ("key", "what", "author"))
                self._journal.add(rows.KeyEvent(*self._journal.next(), "", key, what, author))
            return {"keys": len(scopes)}

        self.table["agent_keys"] = replace

    def state(self, _said: Said) -> Said:
        """Whether the gate takes calls, how many are open, and whether its journal is written."""
        writer = self._journal.writer
        return {
            "run": self._journal.run,
            "now_ms": self._gate.clock.now_ms(),
            "is_stopping": self._gate.is_stopping,
            "address": self._gate.address,
            "tls": self._gate.tls.callers is not None,
            "open": len(self._gate.pump.open),
            "connections": len(self._gate.doors),
            "turned_away": self._turned_away(),
            "unnamed": self._gate.desk.caps.in_use.unnamed if self._gate.desk.caps is not None else 0,
            "policy": self._journal.policy,
            "journal": {"trouble": writer.trouble, "durable": writer.durable, "sequence": writer.sequence},
        }

    async def snapshot(self, _said: Said) -> Said:
        """The state, every budget as it stands, and what came of the store."""
        return {"state": self.state({}), "budgets": await self._budgets(()), "debt_units": self._store.debt_units}

    async def _budgets(self, without: str | tuple[str, ...]) -> list[Said]:
        """Budgets as they stand, but for those whose names begin so; calls go on while they are looked at."""
        cells, told = self._store.book.cells, []
        names = iter([name for name in cells if not name.endswith(WAY) and not name.startswith(without)])
        while some := list(islice(names, MOST_A_TURN)):
            now_ms = self._gate.clock.now_ms()
            told += [self._budget(name, now_ms) for name in some if name in cells]
            await asyncio.sleep(0)
        return told

    async def standing(self, _said: Said) -> Said:
        """
        What metrics and alerts look at: budgets, keys that are out, open calls by state, the oldest that waits per target and class,
        pools, silent agents, and why the configuration could not be read again.

        Not the caps of single agents and keys: thousands of them would hold up the loop, and an agent is no label.
        """
        now_ms = self._gate.clock.now_ms()
        calls = self._gate.pump.open
        oldest: dict[tuple[str, str], int] = {}
        for call in calls:
            if call.state.public == "queued":
                place = call.rungs[call.rung].target, f"P{call.rank}"
                oldest.setdefault(place, now_ms - call.arrived_ms)  # they stand in order of arrival
        heard = self._gate.window.heartbeats.silent() if self._gate.window is not None else []
        return {
            "now_ms": now_ms,
            "budgets": await self._budgets((AGENT, KEY)),
            "open": Counter(call.state.public for call in calls),
            "oldest_ms": [(*place, age_ms) for place, age_ms in oldest.items()],
            "pools": self._pools(),
            "retries_left": [(rung.target, rung.model, rung.retries.left(now_ms)) for rung in self._gate.ladders.rungs],
            "keys_out": keys_out(self._gate.ladders, now_ms),
            "watched": [one[:3] for one in self._gate.egress.desk.shadow.seen()] if self._gate.egress else [],
            "turned_away": self._turned_away(),
            "debt_units": self._store.debt_units,
            "configuration": self.file_trouble,
            "agents": [{"agent": agent, "state": "running", "silent_ms": silent_ms} for agent, silent_ms in heard],
        }

    def _turned_away(self) -> dict[str, int]:
        """How many requests came in and were no call of anybody, by what they lacked."""
        keeper = self._gate.desk.keeper
        return {"identity": self._gate.desk.unattributed, "key": keeper.refused if keeper is not None else 0}

    def _pools(self) -> dict[str, dict[str, int]]:
        """By target, its pool's figures; of pools that were used."""
        hosts = self._gate.upstreams.hosts
        pools = {name: hosts[one.origin] for name, one in self._gate.targets.items() if one.origin in hosts}
        return {
            name: {
                "reused_permille": max(0, 1_000 - one.pool.dials * 1_000 // one.pool.uses),
                "size": one.demand.size,
                "mean_permille": one.demand.mean_permille,
            }
            for name, one in pools.items()
            if one.pool.uses
        }

    def calls(self, said: Said) -> list[Said]:
        """Open calls, oldest first; `state` = only those that are queued, running or in backoff."""
        wanted = said.get("state")
        found = (call for call in self._gate.pump.open if wanted in {None, call.state.public})
        return [_shown(call) for _, call in zip(range(MOST_CALLS), found, strict=False)]

    def pause(self, said: Said) -> list[Said]:
        """Admit nothing to a budget, or to any budget of a target."""
        why = _why(said)
        return self._recorded(("paused", _name(said)), self._operator.pause(_name(said)), why)

    def resume(self, said: Said) -> list[Said]:
        """Go on."""
        why = _why(said)
        return self._recorded(("resumed", _name(said)), self._operator.resume(_name(said)), why)

    def limit(self, said: Said) -> list[Said]:
        """
        Another amount, and window if one is said, for a budget or for those of a target that are alike.

        A number is one of units, millionths where it is money; a text is what people write: dollars then.
        """
        amount, window_ms = said.get("amount"), said.get("window_ms")
        if isinstance(amount, str):
            amount = self._operator.units(_name(said), amount)
        if not isinstance(amount, int) or not isinstance(window_ms, int | None):
            raise BadInput(
                "amount", "must be an integer or a text that is one, and window_ms an integer where it is said"
            )
        if window_ms is not None and window_ms < 1:
            raise BadInput("window_ms", "must be at least 1; where none is said the window stays")
        why = _why(said)
        return self._recorded(
            ("limit set", _name(said)), self._operator.limit(_name(said), amount, window_ms or 0), why
        )

    def ceilings(self, told: Mapping[str, Ceiling], why: Why) -> None:
        """Note which ceilings hold from now on, where that is another one than before."""
        for task_type in [*told, *(self._ceilings.keys() - told.keys())]:
            now = told.get(task_type)
            if now != self._ceilings.get(task_type):
                tokens, over = (0, "") if now is None else (now.tokens, "compress" if now.compress else "refuse")
                self._journal.add(rows.CeilingSet(*self._journal.next(), task_type, tokens, over, *why))
        self._ceilings = dict(told)

    def reloaded(self, served: Plan, changed: Mapping[str, Limits]) -> None:
        """The configuration was read again: its limits are the ones in force, and the changes are revisions."""
        why = Why(CONFIGURATION, "read again")
        self.ceilings(served.ceilings, why)
        found = limits_of(served)
        told = {name: limit._replace(limits=changed[name]) for name, limit in found.items() if name in changed}
        self._limits |= found
        self._note(told, ("configuration read again", ""), why)

    def _recorded(self, what: tuple[str, str], changes: list[Change], why: Why) -> list[Said]:
        """What was changed, kept over restarts and told to journal and audit."""
        known = {one.budget: self._limits[one.budget].key for one in changes if one.budget in self._limits}
        changed = {
            one.budget: Limit(one.limits, one.published, one.target, known.get(one.budget, "")) for one in changes
        }
        self._limits |= changed
        self._note(changed, what, why)
        return [
            {"budget": one.budget, "revision": one.limits.revision, "policy": self._in_force.policy} for one in changes
        ]

    def _note(self, changed: Mapping[str, Limit], what: tuple[str, str], why: Why) -> None:
        """
        What is in force already becomes a revision in the journal, which waits for room on a full disk; then it is kept and audited.

        Errors: `BadInput` where it cannot be kept.
        """
        self._in_force.adopt(changed, why, self._gate.clock.now_ms())
        self._journal.policy = self._in_force.policy
        for row in self._in_force.rows(changed, *self._journal.next()):
            self._journal.add(row)
        try:
            self._in_force.save()
        except OSError as error:
            reason = f"what was done holds, and cannot be kept: {error.strerror}; tell it again once the disk has room"
            raise BadInput(IN_FORCE, reason) from None
        finally:
            self.audit_limits(*what, why)

    def audit_limits(self, what: str, subject: str, why: Why) -> None:
        """What was done to what, in one line: what each budget was and is. Errors: `BadInput`."""
        old = {name: was for name, (was, _) in self._in_force.replaced.items()}
        new = {name: now for name, (_, now) in self._in_force.replaced.items()}
        self._audit.add(unix_ms(), why.author, what, subject, old=old, new=new, reason=why.reason)

    def _budget(self, name: str, now_ms: int) -> Said:
        seen, limit = view(self._store.book, name, now_ms), self._limits.get(name)
        published = limit.published if limit is not None else self._gate.published.get(name)  # of agents, keys, hosts
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


def keys_out(ladders: Ladders, now_ms: int) -> list[tuple[str, str, int]]:
    """Target, key, and for how many ms it is out, for the model for which that is longest; -1 = until a person acts."""
    back: dict[tuple[str, str], int] = {}
    for rung in (*ladders.rungs, *ladders.met):
        for key, seen in rung.ring.views(now_ms).items():
            place = rung.target, key
            back[place] = max(seen.back_at_ms, back.get(place, now_ms))
    out = [(*place, at_ms) for place, at_ms in back.items() if at_ms > now_ms]
    return [(target, key, -1 if at_ms >= EXACT else at_ms - now_ms) for target, key, at_ms in out]


def limits_of(plan: Plan) -> dict[str, Limit]:
    """Every budget of a plan that keeps a published limit, with the target that it is for."""
    owners = dict(_owners(plan.ladders))
    found = {}
    for name, published in plan.published.items():
        target, key = owners.get(name, ("", ""))
        limits = plan.budgets[name]
        found[name] = Limit(limits, published, target, key if limits.line else "")  # a line is what keys share
    return found


def _owners(ladders: Ladders) -> Iterator[tuple[str, tuple[str, str]]]:
    """Each budget with its target, and a key that takes from it."""
    for rung in ladders.rungs:
        for route in rung.routes.values():
            for name in (*(demand[0] for demand in route.fixed), *route.metered, *route.inputs, *route.outputs):
                yield name, (rung.target, route.key)


def _name(said: Said) -> str:
    return str(said.get("budget") or said.get("target") or "")


def _scope(told: list[Any]) -> Scope:
    identity, team, targets, models, expires_ms, limits, capped_as = told
    return Scope(identity, team, tuple(targets), tuple(models), expires_ms, tuple(limits), capped_as)


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
