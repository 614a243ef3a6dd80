"""
Where time comes from in a running gate: the event loop's own clock, and the wall clock for what others date.

The loop reads its clock once per turn, so everything that happens in one turn happens at one instant, and alarms set
by it never ring before it says so.
"""

import asyncio
import time


class LoopClock:
    """ports.Clock of one event loop."""

    __slots__ = ("_time",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._time = loop.time

    def now_ms(self) -> int:
        """Monotonic milliseconds."""
        return int(self._time() * 1000)


def unix_s() -> int:
    """Seconds of the wall clock: only for dates that others wrote, never for waiting."""
    return int(time.time())  # noqa: TID251  this is the edge
