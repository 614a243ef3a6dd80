"""
One timer for every limit in time that a connection has.

A timer per call costs more than the call's parse. Here a connection writes one integer, `deadline_ms`; every 250 ms one
pass looks at all of them. A limit is so met up to 250 ms late, never early; `now_ms` is the pass's own coarse clock,
read as a plain attribute.
"""

import asyncio
from typing import Final, Protocol

from swarmgate.http1.cork import Cork

PERIOD_S: Final = 0.25
NEVER: Final = 1 << 62


class Watched(Protocol):
    """A connection with one limit at a time: `deadline_ms` on the sweep's clock, NEVER when there is none."""

    deadline_ms: int

    def on_deadline(self) -> None:
        """The limit has passed."""


class Sweep:
    """
    Watches connections: `watch` and `forget` them, `start` and `stop` the timer; `now_ms` for their arithmetic.

    `cork` is the one through which all of them write; without one they write at once.
    """

    __slots__ = ("_loop", "_timer", "_watched", "cork", "now_ms")

    def __init__(self, loop: asyncio.AbstractEventLoop, cork: Cork | None = None) -> None:
        self.cork = cork or Cork()
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._watched: set[Watched] = set()
        self.now_ms = int(loop.time() * 1000)

    def __len__(self) -> int:
        return len(self._watched)

    def watch(self, end: Watched) -> None:
        """Look at this connection in every pass."""
        self._watched.add(end)

    def forget(self, end: Watched) -> None:
        """Look at it no more."""
        self._watched.discard(end)

    def start(self) -> None:
        """Begin the passes."""
        self._timer = self._loop.call_later(PERIOD_S, self._tick)

    def stop(self) -> None:
        """End them."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def look(self, now_ms: int) -> None:
        """One pass at `now_ms`: all that is due hears it, once each."""
        self.now_ms = now_ms
        for end in [end for end in self._watched if end.deadline_ms <= now_ms]:
            end.deadline_ms = NEVER
            end.on_deadline()

    def _tick(self) -> None:
        self._timer = self._loop.call_later(PERIOD_S, self._tick)
        self.look(int(self._loop.time() * 1000))
