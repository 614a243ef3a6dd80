"""
How one client connection ends from our side: with a last answer, or at once.

Here lives what is done so that the last bytes arrive: a client that is still sending would lose them to a reset.
"""

from typing import Final

from mypy_extensions import mypyc_attr

from swarmgate.http1.handler import Told
from swarmgate.http1.reader_pace import Paced
from swarmgate.http1.refusal_id import FIELD, refusal_id
from swarmgate.http1.refusals import BadHead
from swarmgate.http1.render import error_body, response_head
from swarmgate.http1.sweep import Sweep

GOODBYE_MS: Final = 10_000


@mypyc_attr(allow_interpreted_subclasses=True)
class Leaving(Paced):
    """A connection that can be refused, and closed with or without waiting for what its client still sends."""

    __slots__ = ("_open",)

    def __init__(self, sweep: Sweep) -> None:
        super().__init__(sweep)
        self._open = True  # further requests are read

    def _send_refusal(self, bad: BadHead, told: Told | None) -> None:
        status, headers, body = _usual(bad) if told is None else told
        self._sweep.cork.write(self._transport, response_head(status, headers, length=len(body), close=True) + body)
        self._linger()

    def _linger(self) -> None:
        """Say the last byte and read on: closing over unread bytes would reset the answer away (RFC 9112 9.6)."""
        self._open = False
        self.resume()
        self.deadline_ms = self._limit_to_leave()
        self._sweep.cork.flush()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._transport.close()

    def _close(self) -> None:
        self._open = False
        self.deadline_ms = self._limit_to_leave()
        self._sweep.cork.flush()
        self._transport.close()

    def _limit_to_leave(self) -> int:
        """Who still reads its last answer has the limit of a reader first."""
        return self._next_look_ms() if self._is_full else self._sweep.now_ms + GOODBYE_MS


def _usual(bad: BadHead) -> Told:
    headers, body = error_body(bad.status, f"caller_{bad.reason}", str(bad))
    return bad.status, [*headers, (FIELD, refusal_id().encode())], body
