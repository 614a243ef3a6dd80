"""
Whether a client still reads what is written to it.

Both kernels may hold megabytes, and go on moving them for a moment after a client has stopped: so while something waits here,
it is looked at each second, and its time runs from the last look at which it had taken enough.
"""

from typing import Final

from mypy_extensions import mypyc_attr

from swarmgate.http1.acknowledged import waiting_bytes
from swarmgate.http1.connection import Connection
from swarmgate.http1.sweep import Sweep

STALLED_WRITE_MS: Final = 30_000
LEAST_READ_BYTES: Final = 4 * 1024  # a reader takes so much in that time, and an eighth of what waits here
LOOK_AT_READER_MS: Final = 1_000


@mypyc_attr(allow_interpreted_subclasses=True)
class Paced(Connection):
    """A connection whose peer may read slowly, but not stop."""

    __slots__ = ("_is_full", "_may_wait", "_took_ms")

    def __init__(self, sweep: Sweep) -> None:
        super().__init__(sweep)
        self._is_full = False  # it reads too slowly: something waits in our own buffer
        self._may_wait, self._took_ms = 0, 0  # what may wait once it has taken enough; when it last had

    def _begin_pace(self) -> None:
        """It is full: its time begins."""
        self._is_full = True
        self._mark()
        self.deadline_ms = self._next_look_ms()

    def _next_look_ms(self) -> int:
        now_ms = self._sweep.now_ms
        return min(now_ms + LOOK_AT_READER_MS, max(now_ms, self._took_ms + STALLED_WRITE_MS))

    def _has_stalled(self) -> bool:
        """Look at a full reader: whether its time is over. What the kernel holds counts as waiting."""
        if waiting_bytes(self._transport) <= self._may_wait:
            self._mark()
        return self._sweep.now_ms - self._took_ms >= STALLED_WRITE_MS

    def _mark(self) -> None:
        ours = self._transport.get_write_buffer_size()
        self._may_wait = waiting_bytes(self._transport) - max(LEAST_READ_BYTES, ours >> 3)
        self._took_ms = self._sweep.now_ms
