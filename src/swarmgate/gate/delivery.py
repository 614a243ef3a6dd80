"""
When requests are no longer on their way, so that others may go (design 4: Compiler, U).

One timer looks every 10 ms at the sends that were there at its last look and still wait for their answer; it stands still
while there are none. An answer that is faster frees the place by itself, and costs no question.
"""

import asyncio
from typing import Final, Protocol

from swarmgate.core.events import DELIVERED
from swarmgate.core.record import Call
from swarmgate.ports import Fire

# so that nobody is asked about before that, and everybody within twice that (core/planning.py)
LOOK_AGAIN_S: Final = 0.01


class Sent(Protocol):
    """A send that may still be on its way."""

    call: Call
    end: object | None  # its connection; None once it is over

    def is_delivered(self) -> bool | None:
        """Whether the target has it; None if it is over."""
        ...


class Deliveries:
    """The sends of one gate whose arrival is not known yet."""

    __slots__ = ("_fire", "_is_armed", "_loop", "_new", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop, fire: Fire) -> None:
        self._loop = loop
        self._fire = fire
        self._new: list[Sent] = []  # since the last look
        self._waiting: list[Sent] = []
        self._is_armed = False

    def watch(self, sent: Sent) -> None:
        """Look whether it has arrived, until it has."""
        self._new.append(sent)
        if not self._is_armed:
            self._is_armed = True
            self._loop.call_at(self._loop.time() + LOOK_AGAIN_S, self._look)

    def _look(self) -> None:
        asked = [sent for sent in self._waiting if sent.end is not None]
        self._waiting, self._new = self._new, []
        for sent in asked:
            arrived = sent.is_delivered()
            if arrived is False:
                self._waiting.append(sent)
            elif arrived and sent.call.wire is sent:
                self._fire(sent.call, DELIVERED)
        self._is_armed = bool(self._waiting or self._new)
        if self._is_armed:
            self._loop.call_at(self._loop.time() + LOOK_AGAIN_S, self._look)
