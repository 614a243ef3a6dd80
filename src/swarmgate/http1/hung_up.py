"""
Whether a peer has said its last byte, although nobody reads its bytes.

Bytes that have nowhere to go are not read, and the peer's end stands behind them. The system tells of an end that has come
in (POLLRDHUP). One that has not, because neither kernel takes any more, is known to the peer's kernel alone. On Linux that
can be asked if it is ours (sock_diag: 13 us, whatever the number of sockets); of a peer elsewhere nothing is known until
its bytes are read, or until it resets.
"""

import select
import socket
import struct
import sys
from typing import Any, Final

_LAST_BYTE: Final = getattr(select, "POLLRDHUP", 0)  # macOS tells a reset only, which needs no asking for
_SOCK_DIAG, _BY_FAMILY, _REQUEST = 4, 20, 1  # linux/netlink.h, linux/sock_diag.h
_FIN_WAIT1: Final = 4  # tcp_states.h: it has closed or half-closed, and we have not acknowledged that
_HEAD: Final = struct.Struct("=IHHII")  # nlmsghdr
_QUESTION: Final = struct.Struct("=4BI")  # inet_diag_req_v2 before its inet_diag_sockid: family, protocol, 0, 0, states
_PORTS, _REST = struct.Struct("!HH"), struct.pack("=IQ", 0, 2**64 - 1)  # any interface, any cookie
_STATE_AT: Final = _HEAD.size + 1  # of inet_diag_msg, behind the family


def has_hung_up(link: socket.socket) -> bool:
    """Whether the peer has said its last byte, read or not, arrived or not, or its connection broke."""
    if link.fileno() < 0:
        return False  # closed already, which is told on its own
    ask = select.poll()
    ask.register(link, _LAST_BYTE)
    return bool(ask.poll(0)) or _has_closed_here(link)


def _has_closed_here(link: socket.socket) -> bool:
    """Whether the other end of this connection is a socket of our kernel's, and was closed or half-closed."""
    if sys.platform != "linux" or link.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    try:
        ours, theirs = link.getsockname(), link.getpeername()
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
            kernel.send(_question(link.family, theirs, ours))
            told = kernel.recv(4_096, socket.MSG_DONTWAIT)
    except OSError:  # it broke meanwhile, or the kernel cannot be asked
        return False
    return len(told) > _STATE_AT and _HEAD.unpack_from(told)[1] == _BY_FAMILY and told[_STATE_AT] == _FIN_WAIT1


def _question(family: int, source: tuple[Any, ...], target: tuple[Any, ...]) -> bytes:
    """What asks for the socket that is bound to `source` and connected to `target`."""
    addresses = [socket.inet_pton(family, host).ljust(16, b"\0") for host, *_ in (source, target)]
    body = _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0, 2**32 - 1)
    body += _PORTS.pack(source[1], target[1]) + b"".join(addresses) + _REST
    return _HEAD.pack(_HEAD.size + len(body), _BY_FAMILY, _REQUEST, 0, 0) + body
