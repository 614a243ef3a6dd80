"""
The one timer of everybody who waits: a single `call_at` on the loop, moved when the earliest instant moves.

A timer per call would cost more than its admission.
"""

import asyncio
from collections.abc import Callable

from swarmgate.engine.clock import LoopClock


class LoopTimer:
    """ports.Timer: rings `ring` at the instant last armed; bind `ring` before arming. `clock` is the loop's."""

    __slots__ = ("_handle", "_loop", "_offset_ms", "ring")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: LoopClock, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._offset_ms = clock.offset_ms
        self._handle: asyncio.TimerHandle | None = None
        self.ring = ring

    def arm(self, at_ms: int | None) -> None:
        """Ring at `at_ms`, never if None."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if at_ms is not None:
            self._handle = self._loop.call_at((at_ms - self._offset_ms) / 1000, self._rang)

    def _rang(self) -> None:
        self._handle = None
        self.ring()
