"""
What reaches targets: one attempt after another on pooled connections, and what each came to, told to the pump.

An attempt waits for a connection, owns it while its exchange lasts, and fires one event per fact: Ready, Content once,
Ended or Lost once. Chunks never go through the pump. What came before the first content is held, so that the core may
still choose another way; afterwards each payload goes straight to the client.
"""

from collections.abc import Callable, Sequence
from typing import Final

from swarmgate.core.events import CONTENT, Ended, Lost, LostKind
from swarmgate.core.outcome import Outcome, QuotaLeft, Signal, classify
from swarmgate.core.price import FEW_TOKENS
from swarmgate.core.reasons import Reason
from swarmgate.gate.answer_shape import UNKNOWN
from swarmgate.gate.counted import Counted
from swarmgate.gate.pieces import Pieces
from swarmgate.gate.taps import (
    COUNT,
    DONE,
    ERROR,
    RESPONSE,
    STOP,
    SealedTap,
    StreamTap,
    ends_response,
    looks_like_events,
    no_answer,
    read_answer,
    read_tail,
)
from swarmgate.gate.wire import SILENCE_MS
from swarmgate.http1.answer import Answering
from swarmgate.http1.handler import CallerEnd
from swarmgate.http1.head import ResponseHead
from swarmgate.providers.errors import Failure, outcome_of, read_error_body

MOST_HELD_BYTES: Final = 64 * 1024
TAIL_BYTES: Final = 4 * 1024
OK: Final = classify(Signal(status=200))
OURS: Final = frozenset({Reason.TARGET_KEY_REFUSED, Reason.TARGET_NO_MONEY})  # what is said of them may hold the key
_BLANK_LINE: Final = b"\n\n"
_JSON_ENDS: Final = b"}\n\n"  # how an event ends that is not the last word of its stream
_PLAIN: Final = b"identity"
_new: Final = tuple.__new__  # what every call makes is made without the Python code of a named tuple's constructor


class Attempt(Counted):
    """One send of a call, from the wish for a connection to the last byte: the pool's waiter, the exchange's owner."""

    __slots__ = ()

    def send(self) -> bool:
        """Write the request; False if the connection was closed meanwhile."""
        call, end, route = self.call, self.end, self.call.route
        assert route is not None
        data = call.client.render(self.target, route.key, call.rungs[call.rung].model)  # type: ignore[attr-defined]
        rest: Sequence[memoryview] = call.client.rest  # type: ignore[attr-defined]
        if end is None or not end.send(self, b"POST", data, read_ms=call.content_ms + SILENCE_MS, rest=rest):
            self.end = None
            return False
        self.sent = True
        self.sent_bytes = len(data) + sum(piece.nbytes for piece in rest) if rest else len(data)
        return True

    # The exchange's owner.

    def on_head(self, head: ResponseHead) -> None:
        """How to listen follows from the head."""
        self.head = head
        if head.status < 400 and head.fields.get(b"content-type", b"").startswith(b"text/event-stream"):
            places = self.target.dialect.errors_in_200
            self.stream = StreamTap(places) if _is_plain(head) else SealedTap(places)

    def hear_unnamed(self, payload: bytes) -> None:
        """The first of a body that is not called a stream: events that were asked for are one all the same, as SDKs take them."""
        head = self.head
        if self.held or head is None or head.status >= 300 or not self.call.streams or not _is_plain(head):
            return
        if looks_like_events(payload):
            self.stream = StreamTap(self.target.dialect.errors_in_200)

    def on_chunk(self, payload: bytes) -> None:
        """Straight through once the client may see it, held before."""
        self.got_bytes += len(payload)
        write, caller = self._write, self._caller
        if write is None:
            if self.stream is None and self.call.streams:
                self.hear_unnamed(payload)
            self.held.append(payload)
            self.held_bytes += len(payload)
            if self.stream is not None or self.held_bytes > MOST_HELD_BYTES:
                self._look(payload)
            return
        if (
            self._is_open
            or not payload.endswith(_JSON_ENDS)
            or payload.find(COUNT) >= 0  # from here on as taps.may_tell
            or payload.find(ERROR) >= 0
            or payload.find(DONE) >= 0
            or payload.find(STOP) >= 0
            or (payload.find(RESPONSE) >= 0 and ends_response(payload))
        ):
            self._listen(payload, write)
            return
        if caller is not None:
            caller.write_chunk(payload)  # compiled, a method that is known costs less than a callable
        else:
            write(payload)
        self.events += 1 if len(payload) < self._two else payload.count(_BLANK_LINE)

    def on_end(self) -> None:
        """The answer is whole: say what it means."""
        self.whole = True
        self.end = None
        head = self.head
        assert head is not None
        if self.stream is not None or self._write is not None or head.status >= 400:
            self._end_unusual(head)
            return
        if len(self.held) != 1:
            self.held = [self.body]
        self.usage, failure = read_answer(self.held[0], self.target.dialect.errors_in_200)
        if self.usage[0] > FEW_TOKENS or self.usage[1] > FEW_TOKENS:
            self.usage = self._believed(self.usage)
        if failure is None and (self.held[0][:1] != b"{" or head.status >= 300):
            failure = no_answer(head, self.held[0])
        if failure is not None:
            self._take_nothing()
        call, outcome = self.call, self._verdict(failure)
        used = self.used()
        status, cost = 0 if outcome is OK else head.status, self._cost() if call.money else UNKNOWN
        left = None if self.target.quotas.names.isdisjoint(head.fields) else self._left(head)
        self._exchanges.fire(call, _new(Ended, (outcome, used, left, status, cost, self.beyond, self.usage[1])))

    def on_upload_pause(self) -> None:
        """Nothing to stop: the request was given whole."""

    def on_upload_resume(self) -> None:
        """Nothing to start."""

    # The client's side.

    @property
    def body(self) -> bytes:
        """What is held of the answer's body."""
        return b"".join(self.held)

    def may_be_shown(self, reason: Reason | None) -> bool:
        """Whether an error is here as the target said it, is one by its status, and not about the gate's own key."""
        return self.whole and self.status >= 400 and reason not in OURS

    def go_through(self, end: CallerEnd, write: Callable[[bytes], None] | None = None) -> None:
        """From now on payloads go to the caller, or to `write` before it; what is held has been taken."""
        self._tail = self.body[-TAIL_BYTES:]
        self.held.clear()
        stream = self.stream
        self._is_open = stream is None or bool(stream.carry)
        if stream is not None:
            self.events = stream.pieces.count
            self._measure(stream.pieces)
        self.progress_ms = self.content_ms = self._exchanges.now_ms()
        self._exchanges.live.add(self)
        self._write = write or end.write_chunk
        self._caller = end if write is None and isinstance(end, Answering) else None

    def _listen(self, payload: bytes, write: Callable[[bytes], None]) -> None:
        """Keep what tells the use of an answer that goes through; of a stream that fails, its error is the last that does."""
        stream = self.stream
        if stream is None:
            write(payload)
            self._tail = (self._tail + payload)[-TAIL_BYTES:]
            self.events += 1
        else:
            pieces = stream.pieces
            before = pieces.count
            stream.feed(payload)
            self.events += pieces.count - before
            self._is_open = bool(stream.carry)
            self._measure(pieces)
            if stream.failure is None:
                write(payload)
            else:
                write(self.target.hide(payload[: stream.failed_at]))
                self._fail_early(stream.failure)

    def _measure(self, pieces: Pieces) -> None:
        """Every payload is looked at until it is known how its content is wrapped."""
        self._two = pieces.wrap * 3 // 2
        if not pieces.wrap:
            self._is_open = True

    def _look(self, payload: bytes) -> None:
        """Has content begun, or is the answer too long to hold on to it."""
        head, stream = self.head, self.stream
        if head is None or head.status >= 400:
            self.held.pop()  # the rest of an error page tells nothing
            return
        begun, failure = self.held_bytes > MOST_HELD_BYTES, None
        if stream is not None:
            stream.feed(payload)
            begun, failure = stream.begun or begun, stream.failure
        elif begun:
            failure = no_answer(head, self.body)
        if failure is not None:
            self._fail_early(failure)
        elif begun:
            self._exchanges.fire(self.call, CONTENT)

    def _fail_early(self, failure: Failure) -> None:
        """An error is the last word of its stream, and a long page is none: nobody waits for what follows."""
        assert self.head is not None
        self.drop()
        self.whole = True
        self._end_unusual(self.head, failure)

    @property
    def has_told(self) -> bool:
        """Whether the caller has seen the target's own error event, which its SDK understands."""
        return self._write is not None and self.stream is not None and self.stream.is_told

    def _end_unusual(self, head: ResponseHead, failure: Failure | None = None) -> None:
        """The end of a stream, of a long answer, of an error page."""
        self.held = [self.body]
        self._exchanges.live.discard(self)
        stream = self.stream
        if head.status >= 400:
            failure = read_error_body(self.body)
        elif stream is None:
            self.usage = self._believed(read_tail(self._tail))
        else:
            stream.close()
            failure = stream.failure
            broken = not stream.finished and failure is None
            if stream.finished or (failure is not None and self._write is None):
                self.usage = self._believed(stream.usage)  # else more may have been made than it told by then
            if self._write is not None and (broken or self.usage[1] < 0):
                self.report(self._exchanges.now_ms(), last=True)  # where nobody counts it, what flowed does
            if broken:
                self._exchanges.fire(self.call, Lost(LostKind.BROKEN, sent=True))
                return
        if failure is not None and self._write is None and (stream is None or not stream.begun):
            self._take_nothing()
        outcome = self._verdict(failure)
        status, cost = 0 if outcome is OK else self.status, self._cost() if self.call.money else UNKNOWN
        used = self.used()
        self._exchanges.fire(
            self.call, Ended(outcome, used, self._left(head), status, cost, self.beyond, self.usage[1])
        )

    def _left(self, head: ResponseHead) -> QuotaLeft | None:
        """What the answer says is left of its key's quota, if it says so and it is time to listen."""
        quotas = self.target.quotas
        if quotas.names.isdisjoint(head.fields):
            return None
        call, exchanges = self.call, self._exchanges
        assert call.route is not None
        ring = call.rungs[call.rung].ring
        return quotas.left(ring, call.route.key, head, exchanges.now_ms(), exchanges.unix_s)

    def _verdict(self, failure: Failure | None) -> Outcome:
        """What a whole answer means."""
        if failure is None:
            return OK
        head = self.head
        assert head is not None
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers]
        return outcome_of(self.target.dialect, head.status, headers, failure, self._exchanges.unix_s())


def _is_plain(head: ResponseHead) -> bool:
    return head.fields.get(b"content-encoding", _PLAIN) == _PLAIN
