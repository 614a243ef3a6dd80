"""
What is written in one turn of the loop leaves together, at its end.

A write on loopback or a fast network wakes its reader at once; on a busy gate that reader has gone back to sleep before the
next write, and waking a CPU costs more than the write (a quarter of a call's time was, on a virtual machine). Writes
that follow each other find their readers awake. With one call in a turn nothing changes but the order of two steps.
"""

import asyncio
from collections.abc import Callable
from typing import Final

MOST_HELD: Final = 64  # writes
LONG_BYTES: Final = 16 * 1024  # so much leaves at once: whoever feeds a full reader must hear so before its next read


def _at_once(act: Callable[[], None]) -> None:
    act()


class Cork:
    """Holds writes until the end of the turn, where `call_soon` runs `flush`; without a loop nothing is held."""

    __slots__ = ("call_soon", "held")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object] = _at_once) -> None:
        self.call_soon = call_soon
        self.held: list[tuple[asyncio.Transport, bytes]] = []

    def write(self, transport: asyncio.Transport, data: bytes) -> None:
        """Write later, after everything that was written before."""
        held = self.held
        held.append((transport, data))
        if len(data) >= LONG_BYTES or len(held) >= MOST_HELD:
            self.flush()
        elif len(held) == 1:
            self.call_soon(self.flush)

    def flush(self) -> None:
        """Let everything leave; a connection that has begun to close takes nothing more."""
        held, self.held = self.held, []
        for transport, data in held:
            if not transport.is_closing():
                transport.write(data)
