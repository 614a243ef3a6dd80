"""
The caller's side of one request to a host: its body while it comes in, the answer while it goes out.

A body up to 64 KiB is held, so that a read may be sent again. A longer one makes its call begin at once and streams:
it can be sent only once, so its call is a write. Whoever is slower, caller or host, slows the other down.
"""

from collections.abc import Callable
from typing import NamedTuple

from swarmgate.core.commands import Answer, End
from swarmgate.core.effect import Effect
from swarmgate.core.events import CLIENT_LEFT
from swarmgate.core.record import Call
from swarmgate.core.target import ParsedUrl
from swarmgate.gate import answers
from swarmgate.gate.answers import Reply
from swarmgate.gate.dead_letters import Asked
from swarmgate.gate.egress.desk import EgressDesk
from swarmgate.gate.egress.fetch import MOST_HELD_BYTES, Fetch
from swarmgate.gate.egress.hosts import Place
from swarmgate.gate.egress.requests import Manners, render
from swarmgate.gate.exchange import Exchange
from swarmgate.gate.identity import Identity
from swarmgate.gate.shapes import PROBLEM, Shape
from swarmgate.http1.client_end import ClientEnd
from swarmgate.http1.framing import LAST_CHUNK, frame
from swarmgate.http1.head import Header, RequestHead, ResponseHead
from swarmgate.http1.render import passed_on
from swarmgate.http1.upstreams import Origin


class Errand(NamedTuple):
    """What a request is about: where it goes, who asks, how, and how an answer's headers are put for the caller."""

    url: ParsedUrl
    place: Place
    identity: Identity
    effect: Effect
    manners: Manners
    put: Callable[[list[Header]], list[Header]]


class Forward:
    """One request and its answer; `call` is None until enough of the body is here (exchange.Caller, front.Listener)."""

    __slots__ = ("_fetch", "_head", "_held", "_is_whole", "_size", "call", "desk", "end", "errand")

    def __init__(self, desk: EgressDesk, end: ClientEnd, head: RequestHead, errand: Errand) -> None:
        self.desk = desk
        self.errand = errand
        self.call: Call | None = None
        self.end = end
        self._head = head
        self._held: list[bytes] = []
        self._size = 0
        self._is_whole = False
        self._fetch: Fetch | None = None  # to which the body streams

    @property
    def streams(self) -> bool:
        """Whether the body is sent while it comes in, and so can be sent only once."""
        return self._size > MOST_HELD_BYTES

    def request(self) -> Asked:
        """The request as it came in (dead_letters.Writer)."""
        body = None if self.streams else b"".join(self._held)
        return Asked(self._head.method, self._head.target, self._head.headers, body)

    @property
    def asked(self) -> tuple[bytes, ...]:
        """What the request asks for: method, URL, and the body as far as it is here."""
        return (self._head.method, self.errand.url.url.encode(), b"".join(self._held))

    @property
    def fields(self) -> dict[bytes, bytes]:
        """The fields of its head."""
        return self._head.fields

    @property
    def shape(self) -> Shape:
        """The form in which its caller reads errors."""
        return PROBLEM

    def reply(self, reply: Reply) -> None:
        """Answer with something of ours; there is no call any more."""
        self.call = None
        self.end.respond(*reply)

    @property
    def size(self) -> int:
        """Bytes of the body so far."""
        return self._size

    def on_body(self, data: bytes) -> None:
        """A piece of the request's body."""
        self._size += len(data)
        if self._fetch is not None:
            self._fetch.upload(self._framed(data), complete=False)
            return
        self._held.append(data)
        if self.streams:
            self.end.pause()
            if self.call is None:
                self.desk.arrive(self)

    def complete(self) -> None:
        """The request is whole."""
        self._is_whole = True
        if self._fetch is not None:
            self._fetch.upload(LAST_CHUNK if self._is_chunked else b"", complete=True)
        elif self.call is None:
            self.desk.arrive(self)

    def on_gone(self) -> None:
        """The caller left."""
        if self.call is not None:
            self.desk.fire(self.call, CLIENT_LEFT)

    def on_pause(self) -> None:
        """The caller reads too slowly: stop the host."""
        if self.call is not None and isinstance(self.call.wire, Fetch):
            self.call.wire.pause()

    def on_resume(self) -> None:
        """The caller caught up."""
        if self.call is not None and isinstance(self.call.wire, Fetch):
            self.call.wire.resume()

    # What the transport asks (exchange.Caller, fetch.Source).

    def attempt(self, call: Call) -> Fetch:
        """The next attempt."""
        target = self.errand.place.target
        origin = Origin(target.scheme, target.host, target.port)
        fetch = Fetch(self.desk.exchanges, self.desk.upstreams, call, origin, self, self._head.method)
        return fetch.taking(self.errand.place.judged.policy.refusals)

    def opening(self) -> tuple[bytes, bool]:
        """The request as far as it is here."""
        body = b"".join(self._held)
        length = self._head.content_length if self.streams else (self._size or None)
        chunked = self.streams and self._is_chunked
        head = render(self._head, self.errand.url, self.errand.manners, length, chunked=chunked)
        if chunked:
            body = frame(body) + (LAST_CHUNK if self._is_whole else b"")
        return head + body, self._is_whole

    def sent_opening(self, fetch: Fetch) -> None:
        """What comes in from now on goes out at once."""
        if not self._is_whole:
            self._held.clear()
            self._fetch = fetch
            self.end.resume()

    def hear(self, head: ResponseHead) -> None:
        """What an answer's headers say of limits."""
        self.desk.hear(self.errand.place, head)

    def stop_upload(self) -> None:
        """The host takes no more for now."""
        if not self._is_whole:
            self.end.pause()

    def go_on_with_upload(self) -> None:
        """It does again."""
        if not self._is_whole:
            self.end.resume()

    def show(self, call: Call) -> None:
        """Let the answer be seen from its head on."""
        fetch = call.wire
        assert isinstance(fetch, Fetch)
        assert fetch.head is not None
        self.end.start_stream(fetch.head.status, self._headers(call, fetch.head), fetch.head.content_length)
        fetch.go_through(self.end.write_chunk)

    def tell(self, call: Call, answer: Answer, exchange: Exchange | None) -> None:
        """Say how the call ended, once."""
        self.call = self._fetch = None
        fetch = exchange if isinstance(exchange, Fetch) else None
        if answer.end is End.CANCELLED:
            return
        if call.committed:
            self._finish(whole=fetch is not None and fetch.whole)
            return
        head = fetch.head if fetch is not None else None
        if fetch is not None and head is not None and fetch.whole and answer.end is not End.DEFERRED:
            self._relay(call, fetch, head)
            return
        reply = self.desk.told(call, answer, self._head)
        if head is not None:
            reply.headers.append(answers.theirs(head.status))
        self.end.respond(*reply)

    def _finish(self, *, whole: bool) -> None:
        if whole:
            self.end.finish()
        else:
            self.end.cut()

    def _relay(self, call: Call, fetch: Fetch, head: ResponseHead) -> None:
        """An error of the host, as it came."""
        length = head.content_length if fetch.method == b"HEAD" else fetch.held_bytes
        self.end.start_stream(head.status, self._headers(call, head), length)
        self.end.write_chunk(fetch.body)
        self.end.finish()

    def _headers(self, call: Call, head: ResponseHead) -> list[Header]:
        headers = self.errand.put(passed_on(head))
        headers += (
            (b"x-swarmgate-request-id", call.id.encode()),  # under a name that no host uses
            (b"x-swarmgate-attempts", b"%d" % call.attempt),
            (b"x-swarmgate-queue-ms", b"%d" % (call.sent_ms - call.arrived_ms)),
        )
        if head.status >= 400:
            headers.append(answers.theirs(head.status))
        return headers

    @property
    def _is_chunked(self) -> bool:
        return self._head.content_length is None

    def _framed(self, data: bytes) -> bytes:
        return frame(data) if self._is_chunked else data
