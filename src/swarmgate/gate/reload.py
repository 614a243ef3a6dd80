"""
Another configuration for a running gate: looked at whole before anything changes, in force at the next call.

Budgets that stay are revised, so what was used stays used and calls in flight settle where they took (core/kernel.py:
revise). Keys that are out stay out unless they were renewed. What cannot be changed while the gate runs changes nothing.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import chain

from swarmgate.core.answers import Revised
from swarmgate.core.book import Book
from swarmgate.core.caps import AGENT
from swarmgate.core.errors import BadInput
from swarmgate.core.kernel import shape
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.record import Rung
from swarmgate.core.routing import Budget
from swarmgate.gate.cap_desk import CapDesk
from swarmgate.gate.service import Gate, Plan


def kinds(book: Book) -> dict[str, BudgetKind]:
    """The kinds of the budgets in use: a plan for this gate is made with them."""
    return {name: cell.limits.kind for name, cell in book.cells.items()}


def reload(gate: Gate, book: Book, plan: Plan, renewed: Collection[str] = ()) -> dict[str, Limits]:
    """
    Serve `plan` from now on; the budgets that were changed or are new, with the limits that they have now.

    `renewed` are targets whose keys were replaced. Errors: `BadInput` names the budget that cannot be changed.
    """
    wanted = dict(plan.budgets)
    extra = list(_of_agents(book, plan))
    wanted |= dict(chain.from_iterable(budget.limits() for budget in extra))
    for name, limits in wanted.items():
        cell = book.cells.get(name)
        if cell is not None and shape(cell.limits) != shape(limits):
            raise BadInput(name, "what it counts by cannot change while the gate runs; restart with the new limit")
    changed = {name: limits for name, limits in wanted.items() if _set(gate, book, name, limits)}
    _serve(gate, plan, extra, renewed)
    gate.pump.room.revised(tuple(changed))
    gate.pump.wake_ready()
    return {name: book.cells[name].limits for name in changed}


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


def _serve(gate: Gate, plan: Plan, extra: list[Budget], renewed: Collection[str]) -> None:
    """Swap what calls are begun with; calls in flight keep what they began with."""
    known = {(rung.target, rung.model): rung for rung in gate.ladders.rungs if rung.target not in renewed}
    ladders = {name: tuple(_kept(rung, known) for rung in rungs) for name, rungs in plan.ladders.ladders.items()}
    gate.ladders.replace(ladders)
    gate.targets.update(plan.targets)  # a target that is gone may still be asked for by a call that retries
    gate.pump.room.line_of.update(plan.lines)
    gate.published.update(plan.published)
    gate.published.update({budget.name: budget.published for budget in extra})
    gate.desk.caps = CapDesk(plan.caps, gate.store, gate.published) if plan.caps is not None else None
    gate.models.ceilings = plan.ceilings
    gate.desk.served.forget()
    if gate.window is not None:
        gate.window.directory.renew()


def _kept(rung: Rung, known: Mapping[tuple[str, str], Rung]) -> Rung:
    """The rung with what was learned of its keys, if they are the same."""
    old = known.get((rung.target, rung.model))
    if old is None or old.routes.keys() != rung.routes.keys():
        return rung
    return rung._replace(ring=old.ring, retries=old.retries)
