"""
Where names are dialled: asked of the system off the loop, kept for a while.

The operator's own targets may be anywhere. What agents name is judged: every address that a name has must be public by
our own table, and exactly what was judged is dialled, so that no second look-up can lead elsewhere (design 4: target
identity and SSRF; reliability EG-01 to EG-06). Only the operator's pin opens another address.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Mapping
from functools import partial
from ssl import SSLContext
from typing import Final

from swarmgate.core.address import host_verdict, verdict
from swarmgate.core.groups import SuffixRules, registrable_domain
from swarmgate.core.leaving import NEXT_NAME_MS
from swarmgate.gate.lookups import Found, LookUp, Lookups
from swarmgate.http1.dial import CONNECT_S, MAX_ADDRESSES, Endpoint
from swarmgate.http1.faults import Fault
from swarmgate.http1.sweep import Sweep
from swarmgate.http1.upstreams import Located, Origin

KEPT_MS: Final = 30_000
STALE_MS: Final = 600_000  # whoever makes the resolver slow makes only names slow that nobody has asked for lately
KEPT_FAILURE_MS: Final = 2_000  # a name that is not there is not asked for by every agent anew
MOST_WAITING: Final = 1_024
MOST_KNOWN: Final = 4_096
# new ones of a registrable domain, then one a second: what a look-up carries outside has a pace, too
NAMES_AT_ONCE: Final = 64
_NO_SUCH_NAME: Final = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})
TUNNEL: Final = "tunnel"  # scheme of connections on which no HTTP of ours is spoken


Pins = Mapping[str, tuple[str, int]]  # endpoints by `host:port` or `host`


def pinned(pins: Pins, origin: Origin) -> tuple[str, int] | None:
    """Where the operator lets an origin be dialled, whatever DNS says; None if they leave it to DNS."""
    return pins.get(f"{origin.host}:{origin.port}") or pins.get(origin.host)


class OperatorResolver:
    """
    Finds where an origin's connections are dialled; `locate` calls back at once where it knows.

    A name server has `look_up_s`, as a dial has; where it is silent or fails, a name leads where it did, for ten minutes.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sweep: Sweep,
        tls: SSLContext | None,
        pins: Pins,
        look_up_s: float = CONNECT_S,
    ) -> None:
        self._look_up_s = look_up_s
        self._pins = pins
        self._loop = loop
        self._sweep = sweep
        self._tls = tls
        self._known: dict[Origin, tuple[Endpoint, int]] = {}
        self._asking: dict[Origin, list[Located]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def locate(self, origin: Origin, located: Located) -> None:
        """Tell `located` the endpoint, or that there is none."""
        pin = (origin.host, origin.port) if is_address(origin.host) else pinned(self._pins, origin)
        if pin is not None:
            located(self._endpoint(origin, (pin[0],), pin[1]))
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
        known, until_ms = self._known.get(origin, (found, 0))
        infos = []
        try:
            async with asyncio.timeout(self._look_up_s):
                infos = await self._loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
        except OSError as error:  # TimeoutError is one
            if error.errno not in _NO_SUCH_NAME and self._sweep.now_ms < until_ms + STALE_MS:
                found = known
        except UnicodeError:  # of names that cannot be encoded, such as `a..b`
            pass
        addresses = tuple(dict.fromkeys(str(info[4][0]) for info in infos))
        if addresses:
            found = self._endpoint(origin, addresses, origin.port)
            self._known[origin] = (found, self._sweep.now_ms + KEPT_MS)
        for located in self._asking.pop(origin):
            located(found)

    def _endpoint(self, origin: Origin, addresses: tuple[str, ...], port: int) -> Endpoint:
        if origin.scheme == "https":
            return Endpoint(addresses, port, self._tls, origin.host)
        return Endpoint(addresses, port)


def is_address(host: str) -> bool:
    """Whether a host is an IP address already."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def ask_system(name: str) -> Found:
    """Ask the C library; blocks. Errors: OSError."""
    infos = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME)
    addresses = tuple(dict.fromkeys(str(info[4][0]) for info in infos))
    return Found(addresses, str(infos[0][3]) if infos else "")


class TargetResolver:
    """
    Finds and judges where a host that an agent named is dialled.

    `look_up` runs in a thread (lookups.py); of one registrable domain 64 new names may be asked for at once, and then one a
    second. `denied` counts names that led where nothing may be dialled, `refused` those that had to wait for their domain's
    pace.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sweep: Sweep,
        tls: SSLContext | None,
        rules: SuffixRules,
        pins: Pins,
        look_up: LookUp = ask_system,
    ) -> None:
        self._sweep = sweep
        self._tls = tls
        self._rules = rules
        self._pins = pins
        self._asking = Lookups(loop, look_up)
        self._known: dict[str, tuple[tuple[str, ...] | Fault, int]] = {}
        self._judged_last: dict[str, tuple[int, tuple[str, ...]]] = {}  # what name servers said, and when
        self._waiting: dict[str, list[tuple[Origin, Located]]] = {}
        self._spent_ms: dict[str, int] = {}  # until when the names that were asked for count, by domain
        self.denied = self.refused = 0

    @property
    def lookups(self) -> int:
        """How many names were looked up."""
        return self._asking.begun

    def locate(self, origin: Origin, located: Located) -> None:
        """Tell `located` the endpoint, or why there is none; at once where no look-up is needed."""
        host = origin.host
        pin = pinned(self._pins, origin)
        if pin is not None:
            located(self._endpoint(origin, (pin[0],), pin[1]))
            return
        judged = host_verdict(host)
        if judged is not None:
            located(self._denied() if judged.denied else self._endpoint(origin, (host,), origin.port))
            return
        known, until_ms = self._known.get(host, (Fault.RESOLVE_FAILED, 0))
        if self._sweep.now_ms < until_ms:
            self._tell(origin, known, located)
        elif host in self._waiting:
            self._waiting[host].append((origin, located))
        elif len(self._waiting) >= MOST_WAITING:
            self._tell(origin, self._as_before(host), located)
        elif host not in self._known and not self._may_ask(registrable_domain(host, self._rules)):
            self.refused += 1
            located(Fault.NAMES_USED_UP)
        else:
            self._waiting[host] = [(origin, located)]
            domain = registrable_domain(host, self._rules)
            self._asking.ask(host, domain, partial(self._looked_up, host))

    def _may_ask(self, domain: str) -> bool:
        """Whether one more new name of a domain may be looked up; it counts from then on."""
        now_ms = self._sweep.now_ms
        spent_ms = max(now_ms, self._spent_ms.pop(domain, 0)) + NEXT_NAME_MS
        if spent_ms > now_ms + NAMES_AT_ONCE * NEXT_NAME_MS:
            self._spent_ms[domain] = spent_ms - NEXT_NAME_MS
            return False
        while len(self._spent_ms) >= MOST_KNOWN:
            del self._spent_ms[next(iter(self._spent_ms))]  # the one that was asked for longest ago
        self._spent_ms[domain] = spent_ms
        return True

    def close(self) -> None:
        """Stop asking; who waits hears nothing more."""
        self._asking.close()

    def _looked_up(self, host: str, said: Found | BaseException) -> None:
        found: tuple[str, ...] | Fault
        if isinstance(said, Found):
            found = self._judged(said)
            self._remember(host, found)
        elif getattr(said, "errno", None) in _NO_SUCH_NAME:
            found = Fault.NO_SUCH_NAME
            self._remember(host, found)
        else:
            found = self._as_before(host)
        self._keep(host, found)
        for origin, located in self._waiting.pop(host):
            self._tell(origin, found, located)
        if not isinstance(said, Found | OSError | UnicodeError):  # TimeoutError is an OSError
            raise said

    def _as_before(self, host: str) -> tuple[str, ...] | Fault:
        """The addresses that were judged last, for a while, where nobody answers now."""
        judged_ms, addresses = self._judged_last.get(host, (-STALE_MS, ()))
        return addresses if self._sweep.now_ms < judged_ms + STALE_MS else Fault.RESOLVE_FAILED

    def _tell(self, origin: Origin, found: tuple[str, ...] | Fault, located: Located) -> None:
        located(found if isinstance(found, Fault) else self._endpoint(origin, found, origin.port))

    def _judged(self, found: Found) -> tuple[str, ...] | Fault:
        """As many of its addresses as are ever dialled, if each of them may be and no alias leads inside."""
        inside = host_verdict(found.canonical.lower().removesuffix(".")) if found.canonical else None
        if (inside is not None and inside.denied) or any(verdict(address).denied for address in found.addresses):
            return self._denied()
        return found.addresses[:MAX_ADDRESSES] or Fault.NO_SUCH_NAME

    def _denied(self) -> Fault:
        self.denied += 1
        return Fault.ADDRESS_DENIED

    def _remember(self, host: str, found: tuple[str, ...] | Fault) -> None:
        """What a name server said: addresses that may be dialled for a while, or that they no longer may."""
        self._judged_last.pop(host, None)
        if isinstance(found, tuple):
            while len(self._judged_last) >= MOST_KNOWN:
                del self._judged_last[next(iter(self._judged_last))]
            self._judged_last[host] = self._sweep.now_ms, found

    def _keep(self, host: str, found: tuple[str, ...] | Fault) -> None:
        self._known.pop(host, None)
        while len(self._known) >= MOST_KNOWN:
            del self._known[next(iter(self._known))]
        kept_ms = KEPT_FAILURE_MS if isinstance(found, Fault) else KEPT_MS
        self._known[host] = (found, self._sweep.now_ms + kept_ms)

    def _endpoint(self, origin: Origin, addresses: tuple[str, ...], port: int) -> Endpoint:
        if origin.scheme == "https":
            return Endpoint(addresses, port, self._tls, origin.host)
        return Endpoint(addresses, port)
