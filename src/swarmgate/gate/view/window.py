"""
The views of one gate, put together: what looks at its budgets, its calls and its agents.

Doors that serve more than models add what they can call: `directory.also` and `finder.by_url`.
"""

import asyncio

from swarmgate.core.book import Book
from swarmgate.core.compiler import Published
from swarmgate.core.ladders import Ladders
from swarmgate.facts.prices import PriceBook
from swarmgate.gate.desk import Desk
from swarmgate.gate.exchange import Ended
from swarmgate.gate.view.budgets import Budgets
from swarmgate.gate.view.calls import Calls, Costs, Heartbeats
from swarmgate.gate.view.directory import Directory
from swarmgate.gate.view.events import Events
from swarmgate.gate.view.finder import ModelFinder
from swarmgate.gate.view.plans import Plans
from swarmgate.gate.view.surface import Views
from swarmgate.ports import Clock


class Window:
    """Everything that may be read of a gate; `look` is called a few times a second."""

    def __init__(self, book: Book, clock: Clock, ladders: Ladders, published: dict[str, Published]) -> None:
        now_ms = clock.now_ms
        self._book = book
        self._now_ms = now_ms
        self.directory = Directory(lambda: ladders.rungs, published)
        self.budgets = Budgets(book, now_ms, self.directory)
        self.events = Events(self.budgets)
        self.finder = ModelFinder(ladders, now_ms)
        self.look = self.events.look

    def surface(
        self,
        loop: asyncio.AbstractEventLoop,
        desk: Desk,
        ended: Ended,
        prices: PriceBook,
    ) -> Views:
        """What serves the paths below /swarmgate/v1/."""

        def provider_of(target: str) -> str:
            known = desk.targets.get(target)
            return known.dialect.name if known is not None else ""

        costs = Costs(prices, provider_of, lambda read: loop.run_in_executor(None, read))
        calls = Calls(desk.pump.open, ended, self._now_ms, costs)
        self.heartbeats = heartbeats = Heartbeats(desk.pump.open, self._now_ms, lambda: desk.is_stopping)
        plans = Plans(loop, self._book, self._now_ms, self.finder)
        return Views(
            desk.scope,
            {"budgets": self.budgets.read, "calls": calls.read, "alive": heartbeats.read},
            {"calls": calls.one},
            {(b"GET", "budgets/events"): self.events, (b"POST", "plan"): plans},
        )
