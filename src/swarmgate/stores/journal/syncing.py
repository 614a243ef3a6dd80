"""
Has the disk take what the journal says, in a thread: a slow one must not hold the loop (reliability LG-05).

Asked for by counters before they need it, and by writes that may happen once, which do not wait for it. That one was let go is on the disk of the control process
before it goes (control/writes.py); so the journal may lag behind, by `GAP_S` and one sync.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from swarmgate.stores.journal.writer import Writer

GAP_S: Final = 0.1  # from the end of a sync to the next: a thousand writes a second are ten syncs


class Syncing:
    """Calling it has everything that is written by now on the disk soon; one sync at a time, `gap_s` after the last."""

    __slots__ = ("_gap_s", "_heard", "_is_asked", "_is_busy", "_loop", "_waiting", "_writer")

    def __init__(self, loop: asyncio.AbstractEventLoop, writer: Writer, gap_s: float = GAP_S) -> None:
        self._gap_s = gap_s
        self._loop = loop
        self._writer = writer
        self._is_asked = self._is_busy = False
        self._waiting: list[Callable[[], None]] = []  # for the next sync
        self._heard: list[Callable[[], None]] = []  # for the present one

    def __call__(self, then: Callable[[], None] | None = None) -> None:
        """At once, or when the present one is over; `then` hears that what is written by now is on the disk."""
        if then is not None:
            self._waiting.append(then)
        if self._is_busy:
            self._is_asked = True
            return
        work = self._writer.apart()
        self._heard, self._waiting = self._waiting, []
        if work is not None:
            self._is_busy = True
            self._loop.run_in_executor(None, work).add_done_callback(self._done)

    def _done(self, work: "asyncio.Future[None]") -> None:
        error = work.exception()
        if isinstance(error, OSError):
            self._writer.mistrust(error)
        elif error is not None:
            raise error
        else:
            for then in self._heard:
                then()
        self._loop.call_later(self._gap_s, self._go_on)

    def _go_on(self) -> None:
        self._is_busy = False
        if self._is_asked:
            self._is_asked = False
            self()
