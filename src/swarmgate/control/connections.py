"""
Connections to the operator port: whoever opens many, or never finishes a head, holds up neither operators nor this process.

Every process of the machine may connect, and only the head of a request tells who is an operator. uvicorn waits for a head without end,
of any length, on any number of connections; each of them takes a descriptor from the ledger.
"""

import asyncio
from typing import Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_CONNECTIONS: Final = 256
MOST_HEAD_BYTES: Final = 64 * 1024
HEAD_S: Final = 10.0  # from the first wait for a head to its end


class OperatorConnection(HttpToolsProtocol):
    """One connection. A head has so much time and so many bytes; beyond so many connections the one that idles longest goes."""

    _head_bytes = 0
    _late: asyncio.TimerHandle | None = None
    since_s = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether no request of it is being answered."""
        return self.cycle is None or self.cycle.response_complete  # type: ignore[redundant-expr]  # None before the first

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Somebody came."""
        super().connection_made(transport)
        self.since_s = self.loop.time()
        self._await_head()
        if len(self.connections) > MOST_CONNECTIONS:
            others = cast("set[OperatorConnection]", self.connections) - {self}
            idle = [one for one in others if one.is_idle]
            longest = min(idle or [self], key=lambda one: one.since_s)
            self.connections.discard(longest)  # now: thousands may come before the loop tells it that it is closed
            longest.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """A piece of a head, or of a body."""
        if self.is_idle:
            self._await_head()
            self._head_bytes += len(data)
        if self._head_bytes > MOST_HEAD_BYTES:
            self.transport.close()
        else:
            super().data_received(data)

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._stop_waiting()
        self._head_bytes = 0
        super().on_headers_complete()

    def _await_head(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(HEAD_S, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
