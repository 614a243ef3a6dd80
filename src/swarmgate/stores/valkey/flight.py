"""
What waits for the server: operations in the order they came, packed into batches while another is in flight.

No I/O. Everything is bounded: batches that wait, operations in one, operations kept for the next connection.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from swarmgate.core.answers import Revised
from swarmgate.core.operations import Operation
from swarmgate.core.record import Call
from swarmgate.stores.valkey.wire import Batch

MOST_BATCHES = 64
MOST_KEPT = 4_096


class Query(NamedTuple):
    """An operation, since when it waits (s of the loop), and who is told; `again` = its budgets were just defined."""

    operation: Operation
    since_s: float
    call: Call | None = None
    done: Callable[[Revised], None] | None = None
    again: bool = False


class Flight:
    """One batch and who asked; `since_s` = when the one that waits longest came, `sent_s` = when it left."""

    __slots__ = ("asked", "batch", "sent_s", "since_s")

    def __init__(self, batch: Batch, since_s: float) -> None:
        self.batch = batch
        self.asked: list[Query] = []
        self.since_s = since_s
        self.sent_s = 0.0

    def add(self, asked: Query) -> None:
        """Errors: `BadOperation`, and nothing is added."""
        self.batch.add(asked.operation)
        self.asked.append(asked)
        if asked.since_s < self.since_s:
            self.since_s = asked.since_s


class Queue:
    """
    Batches in order, and what is kept while there is no server.

    `waiting` counts the operations in batches; `line_of` tells the line of every known budget.
    """

    __slots__ = ("_flights", "_kept", "dropped", "line_of", "waiting")

    def __init__(self) -> None:
        self._flights: deque[Flight] = deque()
        self._kept: deque[Operation] = deque()
        self.dropped = self.waiting = 0
        self.line_of: dict[str, str] = {}

    def add(self, asked: Query) -> bool:
        """Take it into the last batch; False if too many wait. Errors: `BadOperation`, and nothing is added."""
        flights = self._flights
        if flights and not flights[-1].batch.full:
            flights[-1].add(asked)
            self.waiting += 1
            return True
        if len(flights) >= MOST_BATCHES:
            return False
        flight = Flight(Batch(self.line_of), asked.since_s)
        flight.add(asked)
        flights.append(flight)
        self.waiting += 1
        return True

    def pop(self, now_s: float) -> Flight | None:
        """The oldest batch; when there is none, what was kept."""
        if self._kept and not self._flights:
            self._recall(now_s)
        if not self._flights:
            return None
        flight = self._flights.popleft()
        self.waiting -= len(flight.asked)
        return flight

    def drain(self) -> Iterator[Query]:
        """Everybody who waits, in order; nobody does afterwards."""
        self.waiting = 0
        while self._flights:
            yield from self._flights.popleft().asked

    def keep(self, operation: Operation) -> None:
        """Keep what nobody waits for until there is time; the oldest is dropped, and counted. Errors: `BadOperation`."""
        Batch(self.line_of).add(operation)
        if len(self._kept) >= MOST_KEPT:
            self._kept.popleft()
            self.dropped += 1
        self._kept.append(operation)

    def _recall(self, since_s: float) -> None:
        while self._kept and self.add(Query(self._kept[0], since_s)):
            self._kept.popleft()
