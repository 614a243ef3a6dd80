"""
A CONNECT tunnel: one connection through the gate, admitted like a request, then bytes both ways.

What happens inside is not seen: a tunnel takes one request of the host's budgets, a place while it lasts, and its bytes.
It ends when either side ends, after five minutes without a byte, and when its caller's key is no longer good.
"""

from typing import Final

from swarmgate.core.commands import Answer, End
from swarmgate.core.effect import Effect
from swarmgate.core.events import CLIENT_LEFT, CONTENT, Ended, GivenUp, Lost, LostKind, Progress
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call
from swarmgate.core.scope import Scope
from swarmgate.gate.egress.desk import EgressDesk
from swarmgate.gate.egress.hosts import Destination
from swarmgate.gate.egress.signals import OK
from swarmgate.gate.exchange import Exchange
from swarmgate.gate.identity import Identity
from swarmgate.gate.resolve import TUNNEL
from swarmgate.gate.wire import HostWire
from swarmgate.http1.client_end import ClientEnd
from swarmgate.http1.faults import Fault
from swarmgate.http1.head import RequestHead, ResponseHead
from swarmgate.http1.refusal_id import FIELD
from swarmgate.http1.upstreams import Origin
from swarmgate.ports import AttemptFacts

IDLE_MS: Final = 300_000
USUAL_LIFE_MS: Final = 3_600_000


class Tunnel:
    """The caller's side of a tunnel (exchange.Caller, front.Listener)."""

    __slots__ = ("_asker", "_desk", "_head", "call", "end", "place")

    def __init__(
        self, desk: EgressDesk, end: ClientEnd, head: RequestHead, place: Destination, asker: tuple[Identity, Scope]
    ) -> None:
        self._desk = desk
        self.end = end
        self._head = head
        self.place = place
        self._asker = asker  # what it says of itself, and what its key allows
        self.call: Call | None = None

    def complete(self) -> None:
        """The head is all that there is: ask for the connection."""
        if self.call is not None:
            return
        identity, scope = self._asker
        self.call = call = self._desk.call(self, self.place, identity, 0, scope)
        call.effect = Effect.WRITE  # what flows inside is not known, and cannot be repeated
        if identity.timeout_ms is None:
            call.deadline_ms = call.arrived_ms + USUAL_LIFE_MS
        self._desk.tunnels.add(self)
        self._desk.pump.arrive(call)

    def on_body(self, data: bytes) -> None:
        """Bytes of the caller."""
        if self.call is not None and isinstance(self.call.wire, Pipe):
            self.call.wire.push(data)

    def on_gone(self) -> None:
        """The caller left."""
        if self.call is not None:
            self._desk.exchanges.hear_out(self.call)
            self._desk.fire(self.call, CLIENT_LEFT)

    def on_pause(self) -> None:
        """The caller reads too slowly: stop the host."""
        if self.call is not None and isinstance(self.call.wire, Pipe):
            self.call.wire.pause()

    def on_resume(self) -> None:
        """The caller caught up."""
        if self.call is not None and isinstance(self.call.wire, Pipe):
            self.call.wire.resume()

    def recheck(self) -> None:
        """End it if the key that opened it is no longer good."""
        if self.call is not None and not self._desk.admits(self._asker[1]):
            self._desk.exchanges.hear_out(self.call)
            self._desk.fire(self.call, GivenUp(Reason.CALLER_KEY_REFUSED))

    def attempt(self, call: Call) -> "Pipe":
        """The connection to the host."""
        return Pipe(self._desk, call, self)

    def show(self, call: Call) -> None:
        """The tunnel is open."""
        self.end.open_tunnel(IDLE_MS, [(FIELD, call.id.encode())])

    def tell(self, call: Call, answer: Answer, _exchange: Exchange | None) -> None:
        """Say how the tunnel ended, once."""
        self.call = None
        self._desk.tunnels.discard(self)
        if answer.end is End.CANCELLED:
            return
        if call.committed:
            self.end.finish()
        else:
            self.end.respond(*self._desk.told(call, answer, self._head))


class Pipe(HostWire):
    """The host's side of a tunnel (exchange.Exchange)."""

    __slots__ = (
        "_active_ms",
        "_client",
        "_desk",
        "_place",
        "_seen",
    )

    def __init__(self, desk: EgressDesk, call: Call, tunnel: Tunnel) -> None:
        self._place = tunnel.place
        target = self._place.target
        super().__init__(desk.exchanges, desk.upstreams, call, Origin(TUNNEL, target.host, target.port))
        self._desk = desk
        self._client = tunnel.end
        self._seen = self._active_ms = 0

    def send(self) -> bool:
        """Open it; False if the connection was closed meanwhile."""
        end = self.end
        if end is None or end.is_closing():
            self.end = None
            return False
        self.sent = self._place.host.is_met = True
        self.progress_ms = self._active_ms = self._desk.exchanges.now_ms()
        end.open_tunnel(self, read_ms=2 * IDLE_MS)
        self._desk.exchanges.live.add(self)
        self._desk.shadow.began(self.call)
        self._desk.fire(self.call, CONTENT)
        return True

    def push(self, data: bytes) -> None:
        """Bytes of the caller."""
        if self.end is not None:
            self.sent_bytes += len(data)
            self.end.send_more(data, complete=False)

    def is_delivered(self) -> bool | None:
        """There is no request that could be on its way."""
        return None if self.end is None else True

    def on_head(self, head: ResponseHead) -> None:
        """No HTTP is spoken here."""

    def on_chunk(self, payload: bytes) -> None:
        """Bytes of the host."""
        self.got_bytes += len(payload)
        self._client.write_chunk(payload)

    def on_end(self) -> None:
        """The host ended."""
        self._over()
        self._desk.fire(self.call, Ended(OK, self.got_bytes + self.sent_bytes - self._seen))

    def on_lost(self, _fault: Fault, _first_byte_seen: bool) -> None:
        """The connection broke."""
        self._desk.exchanges.hear_out(self.call)
        self._over()
        self._desk.fire(self.call, Lost(LostKind.BROKEN, sent=True))

    def on_upload_pause(self) -> None:
        """The host reads more slowly than the caller writes."""
        self._client.pause()

    def on_upload_resume(self) -> None:
        """It caught up."""
        self._client.resume()

    def report(self, now_ms: int, *, last: bool) -> None:  # noqa: ARG002  bytes are counted exactly all the time
        """Tell the core what flowed; a quiet tunnel lives on for a while."""
        flowed = self.got_bytes + self.sent_bytes - self._seen
        if flowed:
            self._active_ms = now_ms
        if now_ms - self._active_ms < IDLE_MS:
            self.progress_ms = now_ms
            self._seen += flowed
            self._desk.fire(self.call, Progress(flowed))

    def facts(self) -> AttemptFacts:
        """What is known of it by now (ports.Told)."""
        return AttemptFacts(sent_bytes=self.sent_bytes, got_bytes=self.got_bytes)

    def _over(self) -> None:
        self.end = None
        self._desk.exchanges.live.discard(self)
