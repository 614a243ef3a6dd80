"""
The wire of a call: what every exchange does with its connection, whatever it speaks on it.

It wishes for one, owns it, gives it up, passes back-pressure on, and says why there is none or no more.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

from mypy_extensions import mypyc_attr

from swarmgate.core.events import READY, Lost, LostKind
from swarmgate.core.record import Call
from swarmgate.gate.exchange import Exchanges
from swarmgate.http1.faults import Fault
from swarmgate.http1.head import ResponseHead
from swarmgate.http1.owner import Owner
from swarmgate.http1.upstream_end import UpstreamEnd
from swarmgate.http1.upstreams import Origin, Upstreams

SILENCE_MS: Final = 30_000  # the core decides first: this much later the connection itself gives up
_LOST: Final = {Fault.CLOSED_EARLY: LostKind.RESET, Fault.TIMEOUT: LostKind.FIRST_CONTENT}


@mypyc_attr(allow_interpreted_subclasses=True)
class Wire(Owner):
    """The part of an exchange.Exchange that is the same for models, hosts and tunnels."""

    __slots__ = (
        "_exchanges",
        "call",
        "end",
        "got_bytes",
        "head",
        "origin",
        "paused",
        "progress_ms",
        "sent",
        "sent_bytes",
        "upstreams",
    )

    UNCONNECTED: ClassVar[Mapping[Fault, LostKind]] = {
        Fault.CONNECT_TIMEOUT: LostKind.CONNECT_TIMEOUT,
        Fault.POOL_FULL: LostKind.POOL_FULL,
        Fault.TLS_FAILED: LostKind.TLS,
        Fault.UNTRUSTED: LostKind.UNTRUSTED,
    }

    def __init__(self, exchanges: Exchanges, upstreams: Upstreams, call: Call, origin: Origin) -> None:
        self._exchanges = exchanges
        self.upstreams = upstreams
        self.call = call
        self.origin = origin
        self.end: UpstreamEnd | None = None
        self.head: ResponseHead | None = None
        self.sent = self.paused = False
        self.progress_ms = self.sent_bytes = self.got_bytes = 0

    @property
    def rank(self) -> int:
        """The class in which it waits for a connection."""
        return self.call.rank

    def on_connection(self, end: UpstreamEnd) -> None:
        """A connection is ours."""
        self.end = end
        self._exchanges.fire(self.call, READY)

    def on_no_connection(self, fault: Fault) -> None:
        """There is none; nothing left."""
        self._exchanges.fire(self.call, Lost(self.UNCONNECTED.get(fault, LostKind.CONNECT), sent=False))

    def drop(self) -> None:
        """Give the connection up: unused back to its pool, in use closed, wished for no more."""
        self._exchanges.live.discard(self)
        end, self.end = self.end, None
        if end is None:
            if not self.sent:
                self.upstreams.withdraw(self.origin, self)
        elif self.sent:
            end.abandon()
        else:
            end.release()

    def is_delivered(self) -> bool | None:
        """Whether the target has the request; None if the exchange is over."""
        end = self.end
        return None if end is None else self.head is not None or end.is_delivered()

    def on_lost(self, fault: Fault, _first_byte_seen: bool) -> None:
        """There will be no whole answer."""
        self._exchanges.hear_out(self.call)
        self.end = None
        self._exchanges.live.discard(self)
        kind = _LOST.get(fault, LostKind.BROKEN)
        if kind is LostKind.FIRST_CONTENT and self.call.committed:
            kind = LostKind.IDLE
        self._exchanges.fire(self.call, Lost(kind, sent=True))

    def is_endless(self) -> bool:
        """What has a length ends there, and a tunnel with its ends (exchange.Exchange)."""
        return False

    def pause(self) -> None:
        """The caller cannot take more: neither shall we."""
        if self.end is not None:
            self.paused = True
            self.end.pause()

    def resume(self) -> None:
        """The caller caught up."""
        self.paused = False
        if self.end is not None:
            self.end.resume()


class HostWire(Wire):
    """A wire to a host that agents name: its name may not exist, its address may not be dialled."""

    __slots__ = ()

    UNCONNECTED: ClassVar[Mapping[Fault, LostKind]] = {
        **Wire.UNCONNECTED,
        Fault.ADDRESS_DENIED: LostKind.DENIED,
        Fault.NO_SUCH_NAME: LostKind.UNNAMED,
        Fault.NAMES_USED_UP: LostKind.NAMES,
    }
