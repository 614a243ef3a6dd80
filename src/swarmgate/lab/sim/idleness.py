"""
Whether work waits that could run: who stands first in a process's lines, and the budgets as they are now (design 2: P5).

Looked at from outside, with the kernel's own tests but without taking anything.
"""

from heapq import nsmallest
from itertools import chain

from swarmgate.core.book import Book, BudgetCell, Take
from swarmgate.core.line import holds_back
from swarmgate.core.passage import touch
from swarmgate.core.record import Call
from swarmgate.core.view import BudgetState
from swarmgate.core.waiting import Room

LOOK_AT_MOST = 3  # of each line: who stands behind may pass a head that waits for something else


def leaders(room: Room) -> list[Call]:
    """Of each line that calls of this process stand in, the first few that sleep, unless they wait for a key."""
    lines: dict[str, list[Call]] = {}
    for call in room.sleeping:
        for line in () if call in room.keyless else call.standing:
            lines.setdefault(line, []).append(call)
    first = (nsmallest(LOOK_AT_MOST, calls, key=lambda call: (call.score, call.id)) for calls in lines.values())
    return list(dict.fromkeys(chain.from_iterable(first)))


def could_run(book: Book, call: Call, now_ms: int) -> bool:
    """Whether one of the ways that the call was offered last would admit it, and its key is not out, at its gate's now."""
    keys = call.rungs[call.rung].ring.views(now_ms)
    request = Take(call.ticket, "", call.rank, call.score, (), 0)
    return any(
        all(
            name in book.cells and _fits(book.cells[name], request, (cost, reserve), book.now_ms)
            for name, cost, reserve in route.demands(call.prompt, call.reserve)
        )
        for route in call.offered
        if route.key not in keys or keys[route.key].state is BudgetState.READY
    )


def _fits(cell: BudgetCell, request: Take, need: tuple[int, int], now_ms: int) -> bool:
    touch(cell, now_ms)
    if cell.level + (cell.pending + sum(need)) * cell.scale > cell.caps[request.rank]:
        return False
    return holds_back(cell, request, need, now_ms) is None
