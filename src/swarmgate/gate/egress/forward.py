"""The caller's side of one request to a host: where it goes, how it is put, what its answer teaches."""

from collections.abc import Callable, Hashable
from typing import NamedTuple

from swarmgate.core.commands import Answer
from swarmgate.core.effect import Effect
from swarmgate.core.record import Call
from swarmgate.core.scope import NOBODY, Scope
from swarmgate.core.target import ParsedUrl
from swarmgate.gate import answers
from swarmgate.gate.answers import Reply
from swarmgate.gate.dead_letters import Asked
from swarmgate.gate.egress.desk import EgressDesk
from swarmgate.gate.egress.fetch import Fetch
from swarmgate.gate.egress.hosts import Destination
from swarmgate.gate.egress.requests import Manners, render
from swarmgate.gate.identity import Identity
from swarmgate.gate.shapes import PROBLEM, Shape
from swarmgate.gate.streaming import Streaming
from swarmgate.http1.client_end import ClientEnd
from swarmgate.http1.head import Header, RequestHead, ResponseHead
from swarmgate.http1.render import passed_on
from swarmgate.http1.upstreams import Origin


class Errand(NamedTuple):
    """What a request is about: where it goes, who asks, how, and how an answer's headers are put for the caller; `asker` is who follows redirects."""

    url: ParsedUrl
    place: Destination
    identity: Identity
    effect: Effect
    manners: Manners
    put: Callable[[list[Header]], list[Header]]
    scope: Scope = NOBODY
    asker: Hashable = None


class Forward(Streaming):
    """One request to a host and its answer."""

    __slots__ = ("desk", "errand")

    def __init__(self, desk: EgressDesk, end: ClientEnd, head: RequestHead, errand: Errand) -> None:
        super().__init__(desk.exchanges, end, head)
        self.desk = desk
        self.errand = errand

    def request(self) -> Asked:
        """The request as it came in (dead_letters.Writer)."""
        body = None if self.streams else b"".join(self._held)
        return Asked(self._head.method, self._head.target, self._head.headers, body)

    @property
    def asked(self) -> tuple[bytes, ...]:
        """What the request asks for: method, URL, and the body as far as it is here."""
        return (self._head.method, self.errand.url.url.encode(), b"".join(self._held))

    @property
    def shape(self) -> Shape:
        """The form in which its caller reads errors."""
        return PROBLEM

    def carry(self, key: bytes) -> None:
        """Send this idempotency key along."""
        self.errand = self.errand._replace(manners=self.errand.manners._replace(key=key))

    def attempt(self, call: Call) -> Fetch:
        """The next attempt."""
        target = self.errand.place.target
        origin = Origin(target.scheme, target.host, target.port)
        fetch = Fetch(self.desk.exchanges, self.desk.upstreams, call, origin, self, self._head.method)
        return fetch.taking(self.errand.place.judged.policy.refusals)

    def begin_call(self) -> None:
        """Begin the call."""
        self.desk.arrive(self)

    def opening_head(self, length: int | None, *, chunked: bool) -> bytes:
        """The head as the host sees it."""
        self.errand.place.host.is_met = True
        return render(self._head, self.errand.url, self.errand.manners, length, chunked=chunked)

    def hear(self, head: ResponseHead) -> None:
        """What an answer's headers say of limits."""
        self.desk.hear(self.call, self.errand.place, head)

    def told(self, call: Call, answer: Answer) -> Reply:
        """What is said of a call that has no answer of its host."""
        return self.desk.told(call, answer, self._head)

    def answer_headers(self, call: Call, head: ResponseHead) -> list[Header]:
        """The host's headers, and how the call was served."""
        chains = self.desk.chains
        if chains.led or 300 <= head.status < 400:
            chains.answered(self.errand.asker, self.errand.url, self._head, head)
        headers = self.errand.put(passed_on(head))
        headers += (
            (b"x-swarmgate-request-id", call.id.encode()),  # under a name that no host uses
            (b"x-swarmgate-attempts", b"%d" % call.attempt),
            (b"x-swarmgate-queue-ms", b"%d" % call.queued_ms),
        )
        if head.status >= 400:
            headers.append(answers.theirs(head.status))
        return headers
