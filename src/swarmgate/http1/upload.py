"""
A request that is too long to be written at once: it leaves in pieces, as fast as its target takes them.

Here lives how 32 MiB pass without keeping all others waiting: nothing is copied, and one turn of the loop writes so much and
no more (a TLS connection encrypts whatever it is given before it returns).
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

from swarmgate.http1.acknowledged import is_acknowledged
from swarmgate.http1.connection import Connection
from swarmgate.http1.sweep import Sweep

PIECE_BYTES: Final = 256 * 1024
MOST_A_TURN: Final = 8  # pieces


class Uploading(Connection):
    """A connection to which `_upload` writes what follows a request's first bytes."""

    __slots__ = ("_is_due", "_is_full", "_request_sent", "_unsent")

    def __init__(self, sweep: Sweep) -> None:
        super().__init__(sweep)
        self._unsent: deque[memoryview] = deque()  # is to be written
        self._is_due = False  # the next turn writes on
        self._is_full = False  # the target reads more slowly than we write
        self._request_sent = True

    def _upload(self, rest: Iterable[memoryview]) -> None:
        """Write all of it, after everything that was written before."""
        self._unsent.extend(
            piece[at : at + PIECE_BYTES] for piece in rest for at in range(0, piece.nbytes, PIECE_BYTES)
        )
        self._request_sent = not self._unsent
        self._sweep.cork.flush()
        self._write_on()

    def _write_on(self) -> None:
        """Write what the target takes now, or enough for this turn."""
        rest, transport, self._is_due = self._unsent, self._transport, False
        for _ in range(MOST_A_TURN):
            if self._is_full or transport.is_closing() or not rest:
                return
            piece = rest.popleft()
            self._request_sent = not rest
            transport.write(piece)
        if rest:
            self.deadline_ms, self._is_due = self._limit(), True
            self._sweep.cork.call_soon(self._write_on)

    def is_delivered(self) -> bool:
        """Whether the peer's kernel has every byte that was written; False where that cannot be known."""
        if self._unsent:
            return False
        cork = self._sweep.cork
        if cork.held:
            cork.flush()
        return self._transport.is_closing() or bool(is_acknowledged(self._transport))

    def pause_writing(self) -> None:
        """The request goes out faster than the target takes it."""
        self._is_full = True

    def resume_writing(self) -> None:
        """The target caught up."""
        self._is_full = False
        if self._unsent and not self._is_due:
            self.deadline_ms = self._limit()
            self._write_on()
