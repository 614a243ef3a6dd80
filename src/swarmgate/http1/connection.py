"""
What both ends of the gate have in common: a transport, one limit in time, and reading that can be paused.

Here lives no HTTP. A limit is an integer that the sweep looks at; while nobody reads there is none, for our own slowness
is not the peer's silence.
"""

import asyncio
from collections.abc import Callable
from typing import Final, cast

from mypy_extensions import mypyc_attr

from swarmgate.http1.sweep import NEVER, Sweep

# What the kernel does not take pauses its source, which is read again when all of it has gone: so no more than one read waits
# here, 256 KiB at most (reliability SE-05). One byte may, because over TLS a limit of 0 is reached by an empty buffer.
MAY_WAIT_BYTES: Final = 1
FULL_READ_BYTES: Final = 64 * 1024  # libuv follows a read that filled its buffer by up to 31 more in the same turn


@mypyc_attr(allow_interpreted_subclasses=True)
class Connection(asyncio.Protocol):
    """One connection, watched by the sweep from its first moment to its last; `deadline_ms` is on the sweep's clock."""

    __slots__ = ("_paused", "_sweep", "_transport", "deadline_ms", "is_closing")

    _transport: asyncio.Transport
    is_closing: Callable[[], bool]  # whether its end has been seen or begun: the transport's own

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._paused = False
        self.deadline_ms = NEVER

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected, TLS included."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass
        self.is_closing = self._transport.is_closing
        self._transport.set_write_buffer_limits(high=MAY_WAIT_BYTES, low=0)
        self._sweep.watch(self)

    def connection_lost(self, _exc: Exception | None) -> None:
        """The connection is no more."""
        self._sweep.forget(self)

    @property
    def peer(self) -> str:
        """The other side's IP address, empty if unknown."""
        name = self._transport.get_extra_info("peername")
        return str(name[0]) if name else ""

    def pause(self) -> None:
        """Stop reading: what is read has nowhere to go."""
        self._paused = True
        self.deadline_ms = NEVER
        self._transport.pause_reading()

    def resume(self) -> None:
        """Go on reading."""
        if self._paused:
            self._paused = False
            self.deadline_ms = self._limit()
            self._transport.resume_reading()

    def _rest(self) -> None:
        """Read on in the next turn: what one peer sends at once must not keep all others waiting."""
        self._transport.pause_reading()
        self._sweep.cork.call_soon(self._read_on)

    def _read_on(self) -> None:
        if not self._paused and not self.is_closing():
            self._transport.resume_reading()

    def _limit(self) -> int:
        """The deadline of the present state, counted from now."""
        raise NotImplementedError

    def on_deadline(self) -> None:
        """The limit has passed."""
        raise NotImplementedError
