"""
Opening a connection to an address that somebody else has checked.

Here lives the only task of this layer: one per dial, none per call. Names are resolved and judged before (design 4:
target identity); what is dialled is exactly what was judged.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Final, NamedTuple

from swarmgate.http1.faults import Fault
from swarmgate.http1.small_reads import SmallReads, read_tls_in_small_steps
from swarmgate.http1.tls import Handshakes
from swarmgate.http1.upstream_end import UpstreamEnd

CONNECT_S: Final = 5.0
GOODBYE_S: Final = 1.0  # that a target may take to answer the end of TLS; its connection counts until then
MAX_ADDRESSES: Final = 3


class Endpoint(NamedTuple):
    """Where to dial: IP addresses in order of preference, one port; `tls` and the name to verify, or plain TCP."""

    addresses: tuple[str, ...]
    port: int
    tls: ssl.SSLContext | None = None
    server_name: str | None = None


class Early(asyncio.Protocol):
    """Of what comes before a connection has its end, only that it came: no target speaks before it is asked."""

    heard = False

    def data_received(self, _data: bytes) -> None:
        """Bytes."""
        self.heard = True

    def eof_received(self) -> None:
        """Its end."""
        self.heard = True

    def connection_lost(self, _exc: Exception | None) -> None:
        """The connection's."""
        self.heard = True


class Dialler:
    """
    Dials; `outcome` hears the open connection or the fault, once per dial. `close` cancels what is under way.

    `small_reads` where callers speak TLS; targets that do are read so anyway (small_reads.py).
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, connect_s: float = CONNECT_S, small_reads: bool = False
    ) -> None:
        self._loop = loop
        self._small_reads = small_reads
        self._connect_s = connect_s
        self._handshakes = Handshakes()
        self._tasks: set[asyncio.Task[None]] = set()

    def dial(
        self, endpoint: Endpoint, make: Callable[[], UpstreamEnd], outcome: Callable[[UpstreamEnd | Fault], None]
    ) -> None:
        """Open one connection within the connect limit, addresses tried one after another."""
        task = self._loop.create_task(self._run(endpoint, make, outcome), name=f"dial {endpoint.addresses[:1]}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Cancel every dial under way; their outcome is not told."""
        for task in self._tasks:
            task.cancel()

    async def _run(
        self, endpoint: Endpoint, make: Callable[[], UpstreamEnd], outcome: Callable[[UpstreamEnd | Fault], None]
    ) -> None:
        outcome(await self._open(endpoint, make))

    async def _open(self, endpoint: Endpoint, make: Callable[[], UpstreamEnd]) -> UpstreamEnd | Fault:
        if endpoint.tls is None:
            return await self._open_in_time(endpoint, make)
        turn = await self._handshakes.turn(endpoint.server_name or "".join(endpoint.addresses[:1]))
        try:  # what it waited was our doing, not the target's
            return await self._open_in_time(endpoint, make)
        finally:
            turn.end()

    async def _open_in_time(self, endpoint: Endpoint, make: Callable[[], UpstreamEnd]) -> UpstreamEnd | Fault:
        refused = Fault.CONNECT_REFUSED
        try:
            async with asyncio.timeout(self._connect_s):
                link = await self._connect(endpoint)
                if endpoint.tls is None:
                    return await self._speak(make, link)
                refused = Fault.TLS_FAILED
                return await self._secure(endpoint, endpoint.tls, make, link)
        except TimeoutError:
            return Fault.CONNECT_TIMEOUT
        except ssl.SSLCertVerificationError:
            return Fault.UNTRUSTED
        except (OSError, UnicodeError):  # ssl.SSLError is one; and a name that TLS cannot say
            return refused

    async def _secure(
        self, endpoint: Endpoint, tls: ssl.SSLContext, make: Callable[[], UpstreamEnd], link: socket.socket
    ) -> UpstreamEnd:
        name = endpoint.server_name or endpoint.addresses[0]
        # from now on the socket is the loop's, which closes it whatever becomes of this
        clear, _ = await self._loop.create_connection(asyncio.Protocol, sock=link)
        early = Early()
        try:
            transport = await self._loop.start_tls(
                clear, early, tls, server_hostname=name, ssl_shutdown_timeout=GOODBYE_S
            )
        except BaseException:
            clear.abort()
            raise
        if transport is None or transport.is_closing() or early.heard:
            clear.abort()
            raise ConnectionResetError("the target ended the connection, or spoke first")
        read_tls_in_small_steps(clear, transport)
        end = make()
        transport.set_protocol(end)
        end.connection_made(transport)
        return end

    async def _speak(self, make: Callable[[], UpstreamEnd], link: socket.socket) -> UpstreamEnd:
        if not self._small_reads:
            return (await self._loop.create_connection(make, sock=link))[1]
        end: UpstreamEnd = (await self._loop.create_connection(lambda: SmallReads(make()), sock=link))[1].end
        return end

    async def _connect(self, endpoint: Endpoint) -> socket.socket:
        """The first address that answers; each gets its share of the limit, so that one dead address costs no more."""
        addresses = endpoint.addresses[:MAX_ADDRESSES]
        last: OSError = OSError("no address")
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            link = socket.socket(family, socket.SOCK_STREAM)
            link.setblocking(False)
            try:
                socket.inet_pton(family, address)  # a name would be looked up, and nobody judged what it yields
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                async with asyncio.timeout(self._connect_s / len(addresses)):
                    await self._loop.sock_connect(link, (address, endpoint.port))
            except OSError as error:  # TimeoutError is one
                link.close()
                last = error
            except BaseException:
                link.close()
                raise
            else:
                return link
        raise last
