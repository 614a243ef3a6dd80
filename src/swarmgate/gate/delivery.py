"""
When requests are no longer on their way, so that others may go (design 4: Compiler, U).

One timer looks every 20 ms at the sends that still wait for their answer; it stands still while there are none. An
answer that is faster than a look frees the place by itself.
"""

import asyncio
from typing import Protocol

from swarmgate.core.events import DELIVERED
from swarmgate.core.record import Call
from swarmgate.ports import Fire

LOOK_AGAIN_S = 0.02


class Sent(Protocol):
    """A send that may still be on its way."""

    call: Call

    def is_delivered(self) -> bool | None:
        """Whether the target has it; None if it is over."""
        ...


class Deliveries:
    """The sends of one gate whose arrival is not known yet."""

    __slots__ = ("_fire", "_is_armed", "_loop", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop, fire: Fire) -> None:
        self._loop = loop
        self._fire = fire
        self._waiting: dict[Sent, None] = {}
        self._is_armed = False

    def watch(self, sent: Sent) -> None:
        """Look whether it has arrived, until it has."""
        self._waiting[sent] = None
        if not self._is_armed:
            self._is_armed = True
            self._loop.call_at(self._loop.time() + LOOK_AGAIN_S, self._look)

    def _look(self) -> None:
        for sent, arrived in [(sent, sent.is_delivered()) for sent in self._waiting]:
            if arrived is not False:
                del self._waiting[sent]
            if arrived and sent.call.wire is sent:
                self._fire(sent.call, DELIVERED)
        self._is_armed = bool(self._waiting)
        if self._is_armed:
            self._loop.call_at(self._loop.time() + LOOK_AGAIN_S, self._look)
