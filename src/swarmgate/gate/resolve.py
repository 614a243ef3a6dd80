"""
Addresses of the operator's own targets: asked of the system off the loop, kept for a while.

Only origins from the configuration come here, so every address is allowed; what agents name is judged elsewhere (design
4: target identity and SSRF).
"""

import asyncio
import ipaddress
import socket
from ssl import SSLContext

from swarmgate.http1.dial import Endpoint
from swarmgate.http1.faults import Fault
from swarmgate.http1.sweep import Sweep
from swarmgate.http1.upstreams import Located, Origin

KEPT_MS = 30_000


class OperatorResolver:
    """Finds where an origin's connections are dialled; `locate` calls back at once where it knows."""

    def __init__(self, loop: asyncio.AbstractEventLoop, sweep: Sweep, tls: SSLContext | None) -> None:
        self._loop = loop
        self._sweep = sweep
        self._tls = tls
        self._known: dict[Origin, tuple[Endpoint, int]] = {}
        self._asking: dict[Origin, list[Located]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def locate(self, origin: Origin, located: Located) -> None:
        """Tell `located` the endpoint, or that there is none."""
        if is_address(origin.host):
            located(self._endpoint(origin, (origin.host,)))
            return
        endpoint, until_ms = self._known.get(origin, (None, 0))
        if endpoint is not None and self._sweep.now_ms < until_ms:
            located(endpoint)
            return
        waiting = self._asking.setdefault(origin, [])
        waiting.append(located)
        if len(waiting) == 1:
            task = self._loop.create_task(self._ask(origin), name=f"resolve {origin.host}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _ask(self, origin: Origin) -> None:
        found: Endpoint | Fault = Fault.RESOLVE_FAILED
        try:
            infos = await self._loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):  # the latter for names that cannot be encoded, such as `a..b`
            infos = []
        addresses = tuple(dict.fromkeys(str(info[4][0]) for info in infos))
        if addresses:
            found = self._endpoint(origin, addresses)
            self._known[origin] = (found, self._sweep.now_ms + KEPT_MS)
        for located in self._asking.pop(origin):
            located(found)

    def _endpoint(self, origin: Origin, addresses: tuple[str, ...]) -> Endpoint:
        if origin.scheme == "https":
            return Endpoint(addresses, origin.port, self._tls, origin.host)
        return Endpoint(addresses, origin.port)


def is_address(host: str) -> bool:
    """Whether a host is an IP address already."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
