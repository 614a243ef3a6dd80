"""
What reaches targets: one attempt after another on pooled connections, and what each came to, told to the pump.

An attempt waits for a connection, owns it while its exchange lasts, and fires one event per fact: Ready, Content once,
Ended or Lost once. Chunks never go through the pump. What came before the first content is held, so that the core may
still choose another way; afterwards each payload goes straight to the client.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from swarmgate.core.events import CONTENT, Ended, Lost, LostKind, Progress
from swarmgate.core.outcome import Outcome, QuotaLeft, Signal, classify
from swarmgate.core.price import FEW_TOKENS, LONGEST_THOUGHT
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call
from swarmgate.gate.answer_shape import UNKNOWN
from swarmgate.gate.exchange import Exchanges
from swarmgate.gate.pieces import FAR, Pieces, reckoned
from swarmgate.gate.taps import (
    ABSURD,
    NO_CACHE,
    NO_USAGE,
    Cached,
    SealedTap,
    StreamTap,
    Usage,
    no_answer,
    read_answer,
    read_cached,
    read_tail,
)
from swarmgate.gate.target import ModelTarget
from swarmgate.gate.wire import SILENCE_MS, Wire
from swarmgate.http1.answer import Answering
from swarmgate.http1.handler import CallerEnd
from swarmgate.http1.head import ResponseHead
from swarmgate.ports import AttemptFacts
from swarmgate.providers.errors import Failure, outcome_of, read_error_body

MOST_HELD_BYTES: Final = 64 * 1024
TAIL_BYTES: Final = 4 * 1024
MOST_ANSWER_BYTES: Final = 256 * 1024 * 1024  # of a model, whatever its head says
OK: Final = classify(Signal(status=200))
OURS: Final = frozenset({Reason.TARGET_KEY_REFUSED, Reason.TARGET_NO_MONEY})  # what is said of them may hold the key
_BLANK_LINE: Final = b"\n\n"
_JSON_ENDS: Final = b"}\n\n"  # how an event ends that is not the last word of its stream
_PLAIN: Final = b"identity"
_NOTHING: Usage = (0, 0)
_new: Final = tuple.__new__  # what every call makes is made without the Python code of a named tuple's constructor
# Of use, of an error, of the end: one search costs half of three look-ups, if all of it begins with the same byte.
_may_matter: Final = re.compile(rb'"(?:usage"\s*:\s*\{|error"|message_stop"|response\.[cif])').search
_DONE: Final = b"[DONE]"  # something may follow it in the same read


class Attempt(Wire):
    """One send of a call, from the wish for a connection to the last byte: the pool's waiter, the exchange's owner."""

    __slots__ = (
        "_caller",
        "_is_open",
        "_tail",
        "_two",
        "_write",
        "allowed",
        "beyond",
        "content_ms",
        "events",
        "held",
        "held_bytes",
        "prompts",
        "seen",
        "stream",
        "target",
        "usage",
        "whole",
    )

    def __init__(self, exchanges: Exchanges, call: Call, target: ModelTarget) -> None:
        Wire.__init__(self, exchanges, exchanges.upstreams, call, target.origin)
        # What each chunk asks for stands together: a thousand streams do not fit into a CPU's cache.
        self._write: Callable[[bytes], None] | None = None
        self._caller: Answering | None = None  # whose `write_chunk` that is, unless somebody stands between
        self._is_open = True  # every payload is looked at: an event has begun and not ended, or the answer has none
        self.events = self.seen = 0  # pieces of content, and how many of them were reported
        self._two = FAR  # bytes from which on a payload may have two pieces
        self.target = target
        self.stream: StreamTap | None = None  # the answer is a stream of events
        self.held: list[bytes] = []
        self.held_bytes = 0
        self._tail = b""  # the end of an answer that is no stream
        self.usage: Usage = NO_USAGE
        self.whole = False  # the answer is here to its last byte
        self.content_ms = 0
        self.allowed = 0, 1  # tokens of output, by its caller, 0 = it does not say; and how many answers in one
        self.beyond = 0  # prompt beyond its estimate
        self.prompts: tuple[int, int] | None = None  # tokens that count, of so many, where a cache makes a difference

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
            is_plain = head.fields.get(b"content-encoding", _PLAIN) == _PLAIN
            places = self.target.dialect.errors_in_200
            self.stream = StreamTap(places) if is_plain else SealedTap(places)

    def on_chunk(self, payload: bytes) -> None:
        """Straight through once the client may see it, held before."""
        self.got_bytes += len(payload)
        write, caller = self._write, self._caller
        if write is None:
            self.held.append(payload)
            self.held_bytes += len(payload)
            if self.stream is not None or self.held_bytes > MOST_HELD_BYTES:
                self._look(payload)
            return
        if self._is_open or payload[-3:] != _JSON_ENDS or _may_matter(payload) or _DONE in payload:
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

    @property
    def status(self) -> int:
        """Of the answer; 0 before it has a head."""
        return 0 if self.head is None else self.head.status

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

    def facts(self) -> AttemptFacts:
        """What is known of the attempt by now (ports.Told)."""
        head, (prompt, output), (cached, apart) = self.head, self.usage, self.cached
        status = 0 if head is None else head.status
        estimated = False
        if status >= 400:
            prompt, output = max(0, prompt), max(0, output)  # nobody bills an error
        elif self.sent and UNKNOWN in {prompt, output}:
            told = self.usage if self.stream is None else self._believed(self.stream.usage)
            prompt, output, estimated = reckoned(self.call, told, self._flowed())
        if prompt >= 0:
            prompt += apart
        seen = (status, prompt, output, cached, self.content_ms, self.sent_bytes, self.got_bytes, estimated)
        return tuple.__new__(AttemptFacts, seen)  # without the Python code of a named tuple's constructor

    def _flowed(self) -> int:
        """Tokens of output that came by now, as far as they can be seen; -1 = they cannot, and what is likely was made."""
        stream = self.stream
        if stream is not None:
            return stream.flowed(stream.pieces.count if self._write is None else self.events, self.got_bytes)
        return 0 if self.call.streams and self.head is None else -1

    def used(self) -> int:
        """Units of output not yet reported, and prompt beyond its estimate; UNKNOWN if an answer did not say."""
        sent, got = self.usage
        if got < 0:
            return 0 if self.status >= 400 else UNKNOWN  # an error is no output
        if not self.call.reserve:
            got = 0  # its provider does not count the output, or counted the largest one at admission
        if sent > 0 and not self.target.dialect.charge.counts_cached:
            sent = self._counted(sent)
        beyond = sent - self.call.prompt
        if beyond > 0:
            self.beyond = beyond
            got += beyond
        return got if self._write is None else max(0, got - self.seen)

    @property
    def cached(self) -> Cached:
        """What the answer says of caches, if it can be so."""
        found = read_cached((self.held and self.held[0]) or self._tail) if self.stream is None else self.stream.cached
        if found[0] <= FEW_TOKENS and found[1] <= FEW_TOKENS:
            return found
        return NO_CACHE if self._believed(found) is ABSURD else found

    def _believed(self, usage: Usage) -> Usage:
        """What was told, or `ABSURD` where the call cannot have used so much (reliability LG-12): one lie would shut a budget for weeks."""
        prompt, output = usage
        if prompt <= FEW_TOKENS and output <= FEW_TOKENS:
            return usage
        return usage if self._exchanges.till.believes(self.call, self.target, prompt, output) else ABSURD

    def _counted(self, sent: int) -> int:
        """The prompt without what was read from a cache: its provider does not count that."""
        read, apart = self.cached
        whole = sent + apart
        self.prompts = max(0, whole - max(0, read)), whole
        return self.prompts[0]

    def _cost(self) -> int:
        if self.status >= 400:
            return 0  # nobody bills an error
        return self._exchanges.till.cost(self.call, self.target.dialect.name, self.usage, self.cached)

    def report(self, now_ms: int, *, last: bool) -> None:
        """
        Tell the core what flowed; silence that is our own doing counts as flow.

        As long as its target may still count it, a piece is one token, which is never too much.
        """
        came = max(self.events, self._flowed()) if last else self.events
        flowed = max(0, came - self.seen)
        if flowed or self.paused:
            self.progress_ms = now_ms
            self.seen += flowed
            self._exchanges.fire(self.call, Progress(flowed, self._spent() if last and self.call.money else 0))

    def _spent(self) -> int:
        """What cost what came, as far as that is known."""
        facts = self.facts()
        usage = facts.prompt_tokens, facts.output_tokens
        return max(0, self._exchanges.till.cost(self.call, self.target.dialect.name, usage, NO_CACHE))

    def is_endless(self) -> bool:
        """Whether it went on beyond any answer of a model, or beyond what its caller allows."""
        if self.got_bytes > MOST_ANSWER_BYTES:
            return True
        if self.stream is None or self.events <= LONGEST_THOUGHT:
            return False
        return self._exchanges.till.is_endless(self.call, self.target, self.events, self.allowed)

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

    def _take_nothing(self) -> None:
        """What failed before anybody saw content, and counts nothing, is no output, and nobody bills it (UP-09)."""
        if self.usage[1] < 0:
            self.usage = _NOTHING

    def _verdict(self, failure: Failure | None) -> Outcome:
        """What a whole answer means."""
        if failure is None:
            return OK
        head = self.head
        assert head is not None
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers]
        return outcome_of(self.target.dialect, head.status, headers, failure, self._exchanges.unix_s())
