"""
A connection that stops reading together with its TLS layer.

By itself that layer reads on for a reader that has paused, until it holds 256 KiB and what one read more brings: so a slow
agent would cost a stream of a target with TLS three times what it costs in clear text (reliability SE-05).
"""

import asyncio
from collections.abc import Callable

from swarmgate.http1.connection import Connection
from swarmgate.http1.sweep import Sweep


class TlsPausing(Connection):
    """A Connection; in clear text `pause` and `resume` are its own."""

    __slots__ = ("_tls_limits",)

    def __init__(self, sweep: Sweep) -> None:
        super().__init__(sweep)
        self._tls_limits: Callable[[int, int], None] | None = None  # high, low: of what is read and still encrypted

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected, TLS included: nothing is read while some of the last read is still encrypted."""
        super().connection_made(transport)
        self._tls_limits = getattr(transport, "set_read_buffer_limits", None)
        if self._tls_limits is not None:
            self._tls_limits(1, 0)

    def pause(self) -> None:
        """Stop reading; the TLS layer in a moment, for at the end of a read it takes up reading whatever it was told."""
        super().pause()
        if self._tls_limits is not None:
            self._sweep.cork.call_soon(self._pause_tls)

    def resume(self) -> None:
        """Go on reading, both."""
        super().resume()
        if self._tls_limits is not None and not self.is_closing():
            self._tls_limits(1, 0)

    def _pause_tls(self) -> None:
        if self._paused and self._tls_limits is not None and not self.is_closing():
            self._tls_limits(0, 0)
