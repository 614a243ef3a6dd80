"""
U: at most so many requests are on their way to a target, sent but not yet delivered (design 4: Compiler).

A network that stalls and then lets everything through at once would bunch what the budget had spaced; what is not yet
delivered is therefore bounded. A call takes its place before it asks for a token, so that no token gets old waiting for
one; better classes and earlier calls first.
"""

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarmgate.core.record import Call


class Undelivered:
    """The places of one target in one process; `holders` have one, the rest wait in order."""

    __slots__ = ("_turn", "_waiting", "holders", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self.holders: set[Call] = set()
        self._waiting: list[tuple[int, int, int, Call]] = []
        self._turn = 0

    def take(self, call: "Call") -> bool:
        """Take a place; without one the call waits until `free` names it."""
        if len(self.holders) < self.most or call in self.holders:
            self.holders.add(call)
            return True
        self._turn += 1
        heappush(self._waiting, (call.rank, call.arrived_ms, self._turn, call))
        return False

    def free(self, call: "Call") -> "list[Call]":
        """The call was parked, aborted or delivered; whoever gets its place may go on."""
        self.holders.discard(call)
        went_on = []
        while self._waiting and len(self.holders) < self.most:
            waiting = heappop(self._waiting)[3]
            if waiting.state.public == "queued" and waiting not in self.holders:
                self.holders.add(waiting)
                went_on.append(waiting)
        return went_on
