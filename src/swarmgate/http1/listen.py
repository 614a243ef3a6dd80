"""
A port that accepts as fast as callers come.

uvloop accepts one connection per turn of the loop and listening socket (200 took 1.1 s of turns of 5 ms, with 8 sockets
0.16 s), and a turn is long when there is much to do: a swarm that comes all at once then waits for seconds. So several
sockets listen on the same port.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Final

BACKLOG: Final = 4_096
SOCKETS: Final = 16
ACCEPTS_A_TURN: Final = 1  # of asyncio's own loop, which goes on for as long as it was told while no file can be opened
HANDSHAKE_S: Final = 10.0  # that a caller's TLS may take; until then it is no connection of anybody's


class Listening:
    """Servers that share one port."""

    __slots__ = ("_servers", "port")

    def __init__(self, servers: list[asyncio.Server]) -> None:
        self._servers = servers
        self.port = int(servers[0].sockets[0].getsockname()[1])

    def close(self) -> None:
        """Accept nobody any more; connections that are open stay."""
        for server in self._servers:
            server.close()


async def listen(
    loop: asyncio.AbstractEventLoop,
    make: Callable[[], asyncio.BaseProtocol],
    host: str,
    port: int,
    tls: ssl.SSLContext | None = None,
) -> Listening:
    """Listen on the first address of `host`; port 0 takes a free one. Errors: OSError."""
    within_s = None if tls is None else HANDSHAKE_S
    create = partial(loop.create_server, make, backlog=ACCEPTS_A_TURN, ssl=tls, ssl_handshake_timeout=within_s)
    first = await create(host, port)
    twin = partial(socket.fromfd, first.sockets[0].fileno(), first.sockets[0].family, first.sockets[0].type)
    servers = [first, *[await create(sock=twin()) for _ in range(1, SOCKETS)]]
    with twin() as again:
        again.listen(BACKLOG)  # of the port, whichever of them accepts
    return Listening(servers)
