"""
Where time comes from in a running gate: the event loop's own clock, and the wall clock for what others date.

The loop reads its clock once per turn, and anew where a timer is set (stdlib's loop: whenever it is asked), so it may go on
inside of a turn: whoever reckons with two instants asks for the later one later. Alarms set by it never ring before it says
so. It counts from the epoch as it stood at the start, so that saved budgets and calendar windows mean the same after a
restart; steps of the wall clock afterwards change nothing.
"""

import asyncio
import time


class LoopClock:
    """
    ports.Clock of one event loop; all who ask at one instant get the same integer, which is made once.

    `read_ms` is the instant that was read last: the pump reads one per event.
    """

    __slots__ = ("_at_s", "_time", "offset_ms", "read_ms")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._time = loop.time
        self._at_s = loop.time()
        self.read_ms = int(time.time() * 1000)  # noqa: TID251  this is the edge
        self.offset_ms = self.read_ms - int(self._at_s * 1000)

    def now_ms(self) -> int:
        """Monotonic milliseconds since the epoch."""
        at_s = self._time()
        if at_s != self._at_s:
            self._at_s = at_s
            self.read_ms = int(at_s * 1000) + self.offset_ms
        return self.read_ms


def unix_ms() -> int:
    """Milliseconds of the wall clock: only to see it step."""
    return int(time.time() * 1000)  # noqa: TID251  this is the edge


def unix_s() -> int:
    """Seconds of the wall clock: only for dates that others wrote, never for waiting."""
    return int(time.time())  # noqa: TID251  this is the edge
