"""
Another configuration for a running gate: looked at whole before anything changes, in force at the next call.

Budgets that stay are revised, so what was used stays used and calls in flight settle where they took (core/kernel.py:
revise). Keys that are out stay out unless they were renewed. What cannot be changed while the gate runs changes nothing.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from swarmgate.core.answers import Revised
from swarmgate.core.book import Book
from swarmgate.core.callers import AGENT
from swarmgate.core.compiler import WAY, Published
from swarmgate.core.errors import BadInput
from swarmgate.core.kernel import shape
from swarmgate.core.keys import KeyRing
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.record import Rung
from swarmgate.core.routing import Budget
from swarmgate.gate.service import Gate, Plan


def kinds(book: Book) -> dict[str, BudgetKind]:
    """The kinds of the budgets in use: a plan for this gate is made with them."""
    return {name: cell.limits.kind for name, cell in book.cells.items()}


class Reloaded(NamedTuple):
    """
    What is served now: the plan, with an operator's limits where they stand over it, and the limits that changed or are new.

    `standing` are the budgets whose limit is the operator's, and not the file's.
    """

    plan: Plan
    changed: dict[str, Limits]
    standing: tuple[str, ...]


def reload(gate: Gate, book: Book, plan: Plan, renewed: Collection[str] = ()) -> Reloaded:
    """
    Serve `plan` from now on, but for limits that an operator has changed since the last file: those stay.

    `renewed` are targets whose keys were replaced. Errors: `BadInput` names the budget that cannot be changed.
    """
    extra = list(_of_agents(book, plan))
    file = {**plan.published, **{budget.name: budget.published for budget in extra}}
    wanted = {**plan.budgets, **dict(chain.from_iterable(budget.limits() for budget in extra))}
    standing = tuple(name for name in _changed_live(gate) if name in file and file[name] != gate.published[name])
    for name in chain.from_iterable((name, name + WAY) for name in standing):
        if name in book.cells:
            wanted[name] = book.cells[name].limits
    for name, limits in wanted.items():
        cell = book.cells.get(name)
        if cell is not None and shape(cell.limits) != shape(limits):
            raise BadInput(name, "what it counts by cannot change while the gate runs; restart with the new limit")
    changed = {name: limits for name, limits in wanted.items() if _set(gate, book, name, limits)}
    published = {**file, **{name: gate.published[name] for name in standing}}
    plan = plan._replace(
        budgets={name: wanted[name] for name in plan.budgets},
        published={name: published[name] for name in plan.published},
    )
    _publish(gate, plan, published, {name: file[name] for name in standing})
    moved = _serve(gate, plan, renewed)
    gate.pump.room.revised((*changed, *moved))
    gate.pump.wake_ready()
    return Reloaded(plan, {name: book.cells[name].limits for name in changed}, standing)


def _changed_live(gate: Gate) -> Collection[str]:
    """Budgets whose limit an operator has changed."""
    return () if gate.window is None else gate.window.directory.file


def _publish(gate: Gate, plan: Plan, published: Mapping[str, Published], file: Mapping[str, Published]) -> None:
    """What is shown of limits from now on; budgets that the file names no more are shown no more."""
    for name in gate.plan.published.keys() - plan.published.keys():
        gate.published.pop(name, None)
    gate.published.update(published)
    if gate.window is not None:
        gate.window.directory.file = dict(file)


def _of_agents(book: Book, plan: Plan) -> Iterator[Budget]:
    """The budgets, as they are to be, of agents that have some already, in this run or from the last."""
    if plan.caps is not None:
        for owner in {name.partition(": ")[0] for name in book.cells if name.startswith(AGENT)}:
            yield from plan.caps.of_agent(owner.removeprefix(AGENT))


def _set(gate: Gate, book: Book, name: str, limits: Limits) -> bool:
    """Give a budget its limits; False if it has them."""
    cell = book.cells.get(name)
    if cell is None:
        gate.store.define(name, limits)
        return True
    now = cell.limits
    wanted = replace(limits, revision=now.revision, paused=now.paused)
    if wanted == now:
        return False
    told: list[Revised] = []
    gate.store.revise(name, now.revision, replace(wanted, revision=now.revision + 1), told.append)
    return bool(told) and told[0].done


def _serve(gate: Gate, plan: Plan, renewed: Collection[str]) -> tuple[str, ...]:
    """Swap what calls are begun with; calls in flight keep what they began with. Learned budgets that moved by it."""
    known = {(rung.target, rung.model): rung for rung in gate.ladders.rungs if rung.target not in renewed}
    kin = {rung.target: rung for rung in known.values()}
    ladders = {name: tuple(_kept(rung, known, kin) for rung in rungs) for name, rungs in plan.ladders.ladders.items()}
    gate.ladders.replace(ladders)
    gate.targets.update(plan.targets)  # a target that is gone may still be asked for by a call that retries
    gate.pump.room.line_of.update(plan.lines)
    gate.models.ceilings = plan.ceilings
    gate.plan.prices.replace(plan.prices)
    gate.plan = plan._replace(prices=gate.plan.prices)
    gate.cap_callers()
    gate.desk.served.forget()
    moved = gate.egress.replace(plan.egress) if gate.egress is not None and plan.egress is not None else ()
    if gate.window is not None:
        gate.window.directory.renew()
    return moved


def _kept(rung: Rung, known: dict[tuple[str, str], Rung], kin: Mapping[str, Rung]) -> Rung:
    """The rung with what was learned of its keys, if they are the same; a model that is new there knows what is the keys'."""
    old = known.get((rung.target, rung.model)) or kin.get(rung.target)
    if old is None or not (isinstance(old.ring, KeyRing) and isinstance(rung.ring, KeyRing)):
        return rung
    if old.ring.counts != rung.ring.counts:
        return rung
    ring, apart, breaker = old.ring, old.apart, old.breaker
    if old.model != rung.model:
        ring, breaker = old.ring.apart(), rung.breaker
        apart = None if rung.apart is None else ring.apart
    kept = rung._replace(ring=ring, retries=old.retries, apart=apart, breaker=breaker)
    known[rung.target, rung.model] = kept  # it may stand in several ladders
    return kept
