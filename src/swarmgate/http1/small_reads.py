"""
Reads of 64 KiB at most, for a connection to a target where TLS stands on either side of the gate.

In clear text both loops read 256 KiB at once, and that is all that waits for a slow reader (connection.py). TLS holds more: of a
read, what the target's side has not decrypted yet; and of what is written, what the caller's side has encrypted before it
says that it is full. In small steps the two come to what one read brings, or little more (reliability SE-05).
"""

import asyncio
from typing import Final

from swarmgate.http1.upstream_end import UpstreamEnd

SMALL_READ_BYTES: Final = 64 * 1024
_ROOM: Final = memoryview(
    bytearray(SMALL_READ_BYTES)
)  # of all: a loop fills and empties it for one connection at a time


class SmallReads(asyncio.BufferedProtocol):
    """Stands between a transport and its `end`, which hears everything as if it were the transport's own protocol."""

    __slots__ = ("end",)

    def __init__(self, end: UpstreamEnd) -> None:
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

    def eof_received(self) -> None:
        """The target said its last byte."""
        self.end.eof_received()

    def pause_writing(self) -> None:
        """The target reads too slowly."""
        self.end.pause_writing()

    def resume_writing(self) -> None:
        """It caught up."""
        self.end.resume_writing()
