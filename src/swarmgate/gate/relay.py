"""
The caller's side of one model call: its request while it comes in, its answer while it goes out.

A `Relay` stands in `end.call` from the request's head to the answer's last byte, and in `call.client` once the call has
begun. Back-pressure runs through it: a client that reads slowly stops the target's connection, so nothing piles up here.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from swarmgate.core.commands import Answer, End
from swarmgate.core.effect import Effect
from swarmgate.core.errors import BadInput
from swarmgate.core.estimate import OutputEstimate
from swarmgate.core.events import CLIENT_LEFT
from swarmgate.core.record import Call
from swarmgate.gate import answers
from swarmgate.gate.answers import Reply
from swarmgate.gate.dead_letters import Asked
from swarmgate.gate.desk import Desk
from swarmgate.gate.exchange import Exchange
from swarmgate.gate.identity import UNSAID, Identity
from swarmgate.gate.injection import INJECTED, InjectedAttempt
from swarmgate.gate.long_body import LongBody
from swarmgate.gate.peeked import MOST_COPIED_BYTES, Body, Peeked
from swarmgate.gate.served import own_id, shown_headers, shown_lines
from swarmgate.gate.shapes import Shape, shape_of
from swarmgate.gate.structured import CheckedAttempt, schema_in
from swarmgate.gate.target import ModelTarget
from swarmgate.gate.transport import Attempt
from swarmgate.http1.handler import CallerEnd
from swarmgate.http1.head import RequestHead, ResponseHead

SPEAKS_EVERY_MS: Final = 10_000
_EVENTS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)
_ANSWERED: Final = End.ANSWERED  # what nearly every call ends with; an enumeration takes 0.1 us to look it up
_SHOWN: Final = "shown"  # where a head's notes hold the lines that a caller may see
_NEVER: Final = bytes(64)  # stands nowhere in an answer
_KEEP_ALIVE: Final = b": keepalive\n\n"  # a comment; clients of event streams pass over it (WHATWG HTML 9.2.6)


class Counter(Protocol):
    """Where a request goes once it is whole."""

    desk: Desk
    most_body_bytes: int

    def complete(self, relay: "Relay") -> None:
        """Begin the call, or answer why there is none."""


class Wishes(NamedTuple):
    """What the lines of a head say of every call that is made with them: worked out once for all that share them."""

    identity: Identity
    surface: str
    effect: Effect
    timeout_ms: int
    wait_ms: int
    read_ms: int | None  # what its SDK reads for
    generates: bool


class Relay:
    """One request and its answer; `call` is None until the request is whole and understood."""

    __slots__ = (
        "_event_open",
        "_long",
        "_options",
        "_size",
        "_speaks_ms",
        "as_events",
        "call",
        "counter",
        "desk",
        "end",
        "head",
        "identity",
        "outputs",
        "parts",
        "path",
        "peeked",
        "query",
        "rest",
        "said",
        "shown",
        "wishes",
    )

    def __init__(
        self, counter: Counter, end: CallerEnd, head: RequestHead, path: bytes, said: dict[str, str] | None
    ) -> None:
        self.counter = counter
        self.desk = counter.desk
        self.parts: list[Body] = []  # of the request's body
        self.rest: Sequence[memoryview] = ()  # of the present attempt's request, if it is too long to be in one piece
        self._size = 0
        self._long: LongBody | None = None  # the body, if it is long
        self._speaks_ms = 0
        self._event_open = False  # of an answer that is no stream, too long to be held: `tell` ends it
        self._options: dict[str, object] | None = None  # `stream_options` of the present attempt, if the gate sets them
        self.end = end
        self.head = head
        self.path = path
        self.said = said
        self.query = b""
        self.identity: Identity = UNSAID
        self.wishes: Wishes | None = None  # None: what `identity` says of them
        self.peeked: Peeked | None = None
        self.call: Call | None = None
        self.outputs: OutputEstimate | None = None  # learns from this answer
        self.shown = False  # to the last byte; the connection may already serve the next request
        self.as_events = False  # the answer has begun, and is a stream of events

    def on_body(self, data: bytes) -> None:
        """A piece of the request's body."""
        self._size += len(data)
        if self._size > self.counter.most_body_bytes:
            self.parts.clear()
            self.reply(answers.too_long(self.counter.most_body_bytes, self.shape))
        elif self._size > MOST_COPIED_BYTES:
            self._gather(data)
        else:
            self.parts.append(data)

    def _gather(self, data: bytes) -> None:
        """A piece of a long body."""
        if self._long is None:
            self._long = LongBody(self.head.content_length or self.counter.most_body_bytes)
        parts, self.parts = [*self.parts, data], []
        try:
            for part in parts:
                self._long.add(bytes(part))  # as it came, until all is here
        except BadInput as bad:
            self._long = None
            self.reply(answers.bad_input(bad, self.shape))

    def complete(self) -> None:
        """The request is whole."""
        if self._long is not None:
            self.parts = [self._long.whole()]
            self._long = None
        self.counter.complete(self)

    def on_gone(self) -> None:
        """The caller left."""
        call = self.call
        if call is None:
            return
        self.desk.exchanges.hear_out(call)
        self.desk.fire(call, CLIENT_LEFT)

    def on_pause(self) -> None:
        """The caller reads too slowly: stop the target."""
        if self.call is not None and isinstance(self.call.wire, Attempt):
            self.call.wire.pause()

    def on_resume(self) -> None:
        """The caller caught up."""
        if self.call is not None and isinstance(self.call.wire, Attempt):
            self.call.wire.resume()

    @property
    def shape(self) -> Shape:
        """The form in which this caller reads errors."""
        return shape_of(self.path, self.head.fields)

    def reply(self, reply: Reply) -> None:
        """Answer with something of ours; the call, if there was one, is over."""
        self.end.respond(*reply)

    def render(self, target: ModelTarget, key: str, model: str) -> bytes:
        """The request as the next attempt sends it, but for its `rest`."""
        peeked = self.peeked
        assert peeked is not None
        if len(peeked.body) > MOST_COPIED_BYTES:
            self.rest = rest = peeked.pieces(model, self._options)
            return target.request(key, self.path, self.head, b"", self.query, sum(piece.nbytes for piece in rest))
        if self._options is not None:
            body = peeked.sent_as(model, self._options)
        else:
            body = peeked.body if not model or model == peeked.model else peeked.with_model(model)  # type: ignore[assignment]  # a view is long
        return target.request(key, self.path, self.head, body, self.query)

    def request(self) -> Asked:
        """The request as it came in (dead_letters.Writer)."""
        peeked = self.peeked
        return Asked(self.head.method, self.head.target, self.head.headers, None if peeked is None else peeked.body)

    def attempt(self, call: Call) -> Attempt:
        """The next attempt, at the target of the call's rung."""
        desk, rung, peeked = self.desk, call.rung, self.peeked
        target = desk.targets[call.rungs[rung].target]
        self._options = None
        if call.checked and peeked is not None:
            schema = schema_in(peeked.fields)
            if schema is not None:
                return CheckedAttempt(desk.exchanges, call, target, schema)
        if peeked is not None and peeked.stream and target.dialect.injects_usage and self.path in INJECTED:
            self._options = peeked.counting()
            if self._options is not None:
                return InjectedAttempt(desk.exchanges, call, target)
        return Attempt(desk.exchanges, call, target)

    def show(self, call: Call) -> None:
        """Show the answer: whole if it is, else what is held and then whatever comes."""
        attempt, end = call.wire, self.end
        assert isinstance(attempt, Attempt)
        head, secret = attempt.head, _NEVER
        assert head is not None
        if not attempt.whole:
            self._show_begun(call, attempt, end, head)
            return
        if call.route is not None:  # whoever answers with what it was asked shows our key (reliability SC-02)
            secret = attempt.target.secrets.get(call.route.key, _NEVER)
        body = attempt.held[0]
        if secret in body:
            body = attempt.target.hide(body)
        if self.as_events:  # the head is gone; an answer that is no stream becomes its only event
            end.write_chunk(body if attempt.stream is not None else b"data: %b\n\n" % _lines_of_event(body))
            return
        self.shown = True
        lines = head.notes.get(_SHOWN) or _shown(head)
        if secret in head.raw:
            lines = attempt.target.hide(lines)
        end.respond(head.status, (), body, lines + self.desk.served.lines(call))

    def _show_begun(self, call: Call, attempt: Attempt, end: CallerEnd, head: ResponseHead) -> None:
        if not self.as_events:
            self.as_events = head.content_length is None and attempt.stream is not None
            lines = attempt.target.hide(head.notes.get(_SHOWN) or _shown(head))
            end.start_stream(head.status, (), head.content_length, lines + self.desk.served.lines(call))
        body = attempt.target.hide(attempt.body)
        if self.as_events and attempt.stream is None:
            self._event_open = True
            end.write_chunk(b"data: %b" % _lines_of_event(body))
            attempt.go_through(end, self._write_in_event)
        else:
            end.write_chunk(body)
            attempt.go_through(end)
        if end.is_full:  # of comments, before there was anything to pause
            attempt.pause()
        if self.peeked is not None:
            attempt.allowed = self.peeked.max_tokens or 0, call.choices
        self.peeked = self._options = None  # it will not be sent again; a stream may last for long
        self.rest = ()

    def _write_in_event(self, payload: bytes) -> None:
        self.end.write_chunk(_lines_of_event(payload))

    def tell(self, call: Call, answer: Answer, exchange: Exchange | None) -> None:
        """Say how the call ended, once."""
        self.call = None
        if self._event_open:
            self.end.write_chunk(b"\n\n")
        if answer.end is _ANSWERED:
            if not self.shown:
                self.end.finish()
            if self.outputs is not None and isinstance(exchange, Attempt) and exchange.usage[1] > 0:
                self.outputs.seen(-(-exchange.usage[1] // call.choices))
                if exchange.prompts is not None:
                    self.outputs.read(*exchange.prompts)
        elif answer.end is not End.CANCELLED:
            self._tell(call, answer, exchange)

    def _tell(self, call: Call, answer: Answer, exchange: Exchange | None) -> None:
        if self.as_events or call.committed:
            self._break_off(call, answer, exchange)
        elif answer.end is End.FAILED and isinstance(exchange, Attempt) and exchange.may_be_shown(answer.reason):
            status = exchange.status
            assert exchange.head is not None
            shown = exchange.target.hide_all(shown_headers(exchange.head))
            headers = [*shown, *self.desk.served.of(call), answers.STAY, answers.theirs(status)]
            target = self.desk.targets[call.rungs[call.rung].target]
            self.reply(Reply(status, headers, answers.with_trail(target.hide(exchange.body), call)))
        else:
            self.reply(self.desk.told(call, answer, self.head, self.shape))

    def keep_alive(self, call: Call, now_ms: int) -> None:
        """Say to a caller of a stream that its call still waits; its status is then 200, whatever follows."""
        peeked = self.peeked
        if peeked is None or not peeked.stream or call.committed or now_ms < self._speaks_ms:
            return
        self._speaks_ms = now_ms + SPEAKS_EVERY_MS
        if not self.as_events:
            self.as_events = True
            self.end.start_stream(200, [*_EVENTS, (b"x-request-id", call.id.encode()), *own_id(call)])
        self.end.write_chunk(_KEEP_ALIVE)

    def _break_off(self, call: Call, answer: Answer, exchange: Exchange | None) -> None:
        """An answer that had begun cannot go on: say so once where the format can, and let nobody take it for whole."""
        told = exchange.stream if isinstance(exchange, Attempt) and exchange.has_told else None
        if self.as_events and told is None:
            self.end.write_chunk(self.desk.last_event(call, answer, self.shape))
        if told is not None and told.finished:  # `response.failed` is the last event of a whole stream
            self.end.finish()
        else:
            self.end.cut()


def _lines_of_event(payload: bytes) -> bytes:
    """A JSON text as the data of an event (WHATWG HTML 9.2.6); its line ends are white space."""
    return payload.replace(b"\r", b"").replace(b"\n", b"\ndata: ")


def _shown(head: ResponseHead) -> bytes:
    """The lines of a target's answer that a caller may see; made once for all heads that are the same."""
    shown = head.notes[_SHOWN] = shown_lines(head)
    return shown
