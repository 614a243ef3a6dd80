"""Whoever asks for all budgets, a scrape or a person, does not keep calls waiting: so many are looked at in one turn."""

import asyncio
from itertools import pairwise
from types import SimpleNamespace

from swarmgate.control.orders import MOST_A_TURN, DataOrders

NAMES = [f"host {number}" for number in range(5 * MOST_A_TURN + 1)]


def test_calls_go_on_while_budgets_are_looked_at():
    cells = dict.fromkeys(["agent 7: requests", *NAMES])
    orders = object.__new__(DataOrders)
    orders._store = SimpleNamespace(book=SimpleNamespace(cells=cells))
    orders._gate = SimpleNamespace(clock=SimpleNamespace(now_ms=lambda: 5))
    looked, turns = [], []
    orders._budget = lambda name, _now_ms: looked.append(name) or name

    async def play():
        asked = asyncio.ensure_future(orders._budgets(("agent ",)))
        while not asked.done():
            turns.append(len(looked))
            if len(turns) == 3:
                del cells[NAMES[-1]]  # a host that nobody calls any more is forgotten meanwhile
            await asyncio.sleep(0)
        return await asked

    assert asyncio.run(play()) == looked == NAMES[:-1]
    assert max(after - before for before, after in pairwise(turns)) <= MOST_A_TURN
