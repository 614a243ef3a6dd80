"""
The one timer of everybody who waits: a single `call_at` on the loop, moved when the earliest instant moves.

A timer per call would cost more than its admission.
"""

import asyncio
from collections.abc import Callable


class LoopTimer:
    """ports.Timer: rings `ring` at the instant last armed; bind `ring` before arming."""

    __slots__ = ("_handle", "_loop", "ring")

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None
        self.ring = ring

    def arm(self, at_ms: int | None) -> None:
        """Ring at `at_ms` on the loop's clock, never if None."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if at_ms is not None:
            self._handle = self._loop.call_at(at_ms / 1000, self._rang)

    def _rang(self) -> None:
        self._handle = None
        self.ring()
