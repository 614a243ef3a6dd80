"""
How long a client connection may stay as it is.

Here lives one limit per state: silence between requests, a head, a body, an answer that nobody reads. Bytes that have
nowhere to go are not read, and then no limit runs; but a client's end stands behind them, so the system is asked for it.
"""

from typing import Final

from mypy_extensions import mypyc_attr

from swarmgate.http1.answer import Answering
from swarmgate.http1.handler import Handler
from swarmgate.http1.head_memo import RequestHeads
from swarmgate.http1.hung_up import has_hung_up
from swarmgate.http1.refusals import BadHead
from swarmgate.http1.sweep import NEVER, Sweep

HEAD_MS: Final = 10_000
KEEP_ALIVE_MS: Final = 75_000
BODY_MS, LEAST_BODY_BYTES = 30_000, 4 * 1024  # a body brings so much in that time, or its end
LOOK_MS: Final = 500  # for a client that left, where its bytes are not read


@mypyc_attr(allow_interpreted_subclasses=True)
class Limited(Answering):
    """A client connection with a limit in every state; what follows from one stands in client_end.py."""

    __slots__ = ("_body_ms", "_came_bytes", "_heads", "_least_bytes")

    def __init__(self, handler: Handler, sweep: Sweep) -> None:
        super().__init__(handler, sweep)
        self._heads = RequestHeads()
        self._body_ms, self._least_bytes = BODY_MS, LEAST_BODY_BYTES
        self._came_bytes = 0  # of the present body, since its limit began

    @property
    def is_full(self) -> bool:
        """Whether it reads too slowly; who has left catches up no more, and nothing waits for it."""
        return self._is_full and self._open

    def pause(self) -> None:
        """Stop reading; who does not read its own answer, or leaves, is noticed all the same."""
        super().pause()
        self.deadline_ms = self._limit()

    def _limit(self) -> int:
        head, now_ms = self.head, self._sweep.now_ms
        if self._is_full:
            return self._next_look_ms()
        if head is None:
            return now_ms + KEEP_ALIVE_MS
        if self._paused:  # what a tunnel's client sent before its end is its host's
            return NEVER if head.method == b"CONNECT" else now_ms + LOOK_MS
        return NEVER if self._body.done else now_ms + self._body_ms

    def _hear_body(self, size: int) -> None:
        """So much of the body, or of a tunnel, came: its limit begins anew once it is enough."""
        self._came_bytes += size
        if self._came_bytes >= self._least_bytes and not self._is_full:  # else it has the limit of a reader
            self._came_bytes = 0
            self.deadline_ms = self._sweep.now_ms + self._body_ms

    def on_deadline(self) -> None:
        """The limit of the present state has passed: silence, a slow head or body, a stalled reader, a slow goodbye."""
        if not self._open or self._is_full:
            self._give_up()
        elif self._paused:
            self._look_for_its_end()
        elif self.head is not None:
            self._break(BadHead(408, "body_timeout", "too little of it came in time", "body"))
        elif len(self._heads):
            self._refuse(BadHead(408, "head_timeout", "was not complete in time"))
        else:
            self._close()

    def _look_for_its_end(self) -> None:
        if has_hung_up(self._transport.get_extra_info("socket")):
            self._abort()
            self._leave()
        else:
            self.deadline_ms = self._limit()

    def _break(self, bad: BadHead) -> None:
        raise NotImplementedError

    def _refuse(self, bad: BadHead) -> None:
        raise NotImplementedError

    def _leave(self) -> None:
        raise NotImplementedError
