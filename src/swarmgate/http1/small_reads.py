"""
Reads of 32 KiB at most, for a connection to a target where TLS stands on either side of the gate.

In clear text both loops read 256 KiB at once, and that is all that waits for a slow reader (connection.py). TLS layers hold as
much again: of a target's read what is not decrypted yet, and of what is written to a caller what they take before they say
that they are full. In small steps all of it together is no more than that one read (reliability SE-05).
"""

import asyncio
from typing import Any, Final

SMALL_READ_BYTES: Final = 32 * 1024
_ROOM: Final = memoryview(
    bytearray(SMALL_READ_BYTES)
)  # of all: a loop fills and empties it for one connection at a time


class SmallReads(asyncio.BufferedProtocol):
    """Stands between a transport and its `end`, a protocol that hears everything as if it were the transport's own."""

    __slots__ = ("end",)

    def __init__(self, end: Any) -> None:
        self.end = end

    def get_buffer(self, _sizehint: int) -> memoryview:
        """Where the next read goes."""
        return _ROOM

    def buffer_updated(self, nbytes: int) -> None:
        """So much has been read."""
        self.end.data_received(_ROOM[:nbytes].tobytes())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """As to any protocol, and what follows too."""
        self.end.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is no more."""
        self.end.connection_lost(exc)

    def eof_received(self) -> bool | None:
        """The target said its last byte."""
        heard: bool | None = self.end.eof_received()
        return heard

    def pause_writing(self) -> None:
        """The target reads too slowly."""
        self.end.pause_writing()

    def resume_writing(self) -> None:
        """It caught up."""
        self.end.resume_writing()


class SmallRecords(SmallReads):
    """
    The same between a socket and a TLS layer, which has room of its own.

    An end without TLS's own word for it may be anybody's doing: nothing ends properly by it (RFC 9112 9.8). All that was
    read has been decrypted by then, so a layer that has had that word has begun to close.
    """

    __slots__ = ("_torn", "tls")

    def __init__(self, end: Any, tls: asyncio.Transport) -> None:
        super().__init__(end)
        self.tls = tls
        self._torn: ConnectionResetError | None = None

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next read goes."""
        room: memoryview = self.end.get_buffer(sizehint)
        return room[:SMALL_READ_BYTES]

    def buffer_updated(self, nbytes: int) -> None:
        """So much has been read."""
        self.end.buffer_updated(nbytes)

    def eof_received(self) -> bool | None:
        """The socket's last byte."""
        if self.tls.is_closing():
            return super().eof_received()
        self._torn = ConnectionResetError("the target ended the connection, but not its TLS")
        self.tls.abort()
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is no more."""
        self.end.connection_lost(exc or self._torn)


def read_tls_in_small_steps(clear: asyncio.Transport, tls: asyncio.Transport) -> None:
    """Put SmallRecords below the TLS layer of `clear`, and have it read nothing while some of its last read is still encrypted."""
    clear.pause_reading()
    clear.set_protocol(SmallRecords(clear.get_protocol(), tls))
    clear.resume_reading()
    tls.set_read_buffer_limits(high=1, low=0)  # type: ignore[attr-defined]  # both loops' TLS has them
