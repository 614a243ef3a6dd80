"""
Whether everything that was written to a connection has arrived at the peer's kernel.

A request that is written is not yet at its target: it may stand in our buffer or in the kernel's, unacknowledged. Linux
and macOS tell how many bytes do; where neither can be asked, the answer's first byte is the first sign (None).
"""

import asyncio
import socket
import sys
from collections.abc import Callable
from fcntl import ioctl
from typing import Final

SIOCOUTQ: Final = 0x5411  # linux/sockios.h: bytes in the send queue that are not acknowledged
SO_NWRITE: Final = 0x1024  # macOS sys/socket.h: the same


def _linux(link: socket.socket) -> int:
    return int.from_bytes(ioctl(link.fileno(), SIOCOUTQ, b"\0\0\0\0"), sys.byteorder)


def _macos(link: socket.socket) -> int:
    return link.getsockopt(socket.SOL_SOCKET, SO_NWRITE)


_UNACKNOWLEDGED: dict[str, Callable[[socket.socket], int]] = {"linux": _linux, "darwin": _macos}


def is_acknowledged(transport: asyncio.Transport) -> bool | None:
    """Whether no written byte is unacknowledged; None if the system cannot be asked."""
    if transport.get_write_buffer_size():
        return False
    waiting = _in_kernel(transport)
    return None if waiting is None else not waiting


def waiting_bytes(transport: asyncio.Transport) -> int:
    """Bytes that were written and have not arrived, in our buffer and in the kernel's, if that can be asked."""
    return transport.get_write_buffer_size() + (_in_kernel(transport) or 0)


def _in_kernel(transport: asyncio.Transport) -> int | None:
    link: socket.socket | None = transport.get_extra_info("socket")
    bytes_of = _UNACKNOWLEDGED.get(sys.platform)
    if link is None or bytes_of is None or link.fileno() < 0:
        return None
    try:
        return bytes_of(link)
    except OSError:
        return None
