"""
Who waits in this process, and whom to wake: by the clock, and when a turn may have come.

A waiting call sleeps until its ticket is due. It is woken earlier when it becomes the first of this process in a
line, or when a reservation ended for which the first of the line waits. So nothing idles and nobody spins
(design 4: Line, "Pull"). One agent has at most four tickets in one line: a runaway agent must not sink the rest.
"""

from bisect import bisect_left, insort
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from swarmgate.core.answers import BlockKind

if TYPE_CHECKING:
    from swarmgate.core.record import Call

TICKETS_PER_AGENT = 4


class Room:
    """
    The waiting calls of one process.

    `ready` collects calls whose turn may have come; the pump wakes them. `line_of` names the shared line of
    interchangeable budgets; every other budget has a line of its own name.
    """

    __slots__ = ("_alarms", "_due", "_lines", "_places", "_tickets", "_turn", "agent_tickets", "line_of", "ready")

    def __init__(self, agent_tickets: int = TICKETS_PER_AGENT) -> None:
        self.agent_tickets = agent_tickets
        self.line_of: dict[str, str] = {}
        self.ready: list[Call] = []
        self._places: dict[Call, tuple[str, ...]] = {}
        self._lines: dict[str, list[tuple[int, str, Call]]] = {}
        self._tickets: dict[tuple[str, str], int] = {}
        self._due: dict[Call, int] = {}
        self._alarms: list[tuple[int, int, Call]] = []
        self._turn = 0

    def __len__(self) -> int:
        return len(self._places)

    def depth(self, line: str) -> int:
        """How many calls of this process stand in a line."""
        return len(self._lines.get(line, ()))

    def crowded(self, call: "Call", lines: tuple[str, ...]) -> bool:
        """Whether this agent already has as many other tickets in one of the lines as it may."""
        agent = call.step.agent
        own = self._places.get(call, ())
        return bool(agent) and any(
            self._tickets.get((agent, line), 0) - (line in own) >= self.agent_tickets for line in lines
        )

    def wait(self, call: "Call", due_ms: int) -> None:
        """Sleep until `due_ms`, standing in `call.standing`."""
        self._turn += 1
        self._due[call] = due_ms
        heappush(self._alarms, (due_ms, self._turn, call))
        own = self._places.get(call, ())
        for line in call.standing:
            if line not in own:
                insort(self._lines.setdefault(line, []), (call.score, call.id, call))
                key = (call.step.agent, line)
                self._tickets[key] = self._tickets.get(key, 0) + 1
        self._places[call] = call.standing

    def wake(self, call: "Call") -> None:
        """The call is awake; it keeps its places."""
        self._due.pop(call, None)
        if not self._places.get(call, True):
            del self._places[call]

    def leave(self, call: "Call") -> None:
        """Give up every place; whoever becomes first of a line is ready to ask."""
        self._due.pop(call, None)
        for line in self._places.pop(call, ()):
            order = self._lines[line]
            place = bisect_left(order, (call.score, call.id))
            del order[place]
            key = (call.step.agent, line)
            if self._tickets[key] > 1:
                self._tickets[key] -= 1
            else:
                del self._tickets[key]
            if not order:
                del self._lines[line]
            elif place == 0 and order[0][2] in self._due:
                self.ready.append(order[0][2])

    def freed(self, budgets: tuple[str, ...]) -> None:
        """A reservation ended in these budgets: the first of each line asks again if that is what it waits for."""
        for budget in budgets:
            order = self._lines.get(self.line_of.get(budget, budget))
            if order:
                first = order[0][2]
                if first in self._due and first.denied is not None and first.denied.kind is not BlockKind.TIME:
                    self.ready.append(first)

    def next_ms(self) -> int | None:
        """The first instant at which somebody is due."""
        alarms = self._alarms
        while alarms and self._due.get(alarms[0][2]) != alarms[0][0]:
            heappop(alarms)
        return alarms[0][0] if alarms else None

    def due(self, now_ms: int) -> "list[Call]":
        """Everybody who is due, in the order of their instants."""
        found = []
        while (next_ms := self.next_ms()) is not None and next_ms <= now_ms:
            call = heappop(self._alarms)[2]
            del self._due[call]
            found.append(call)
        return found
