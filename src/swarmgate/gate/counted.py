"""
What an attempt has used by now: as its target counted it, else as far as it can be seen in what came.

Budgets are charged by it and evidence is written from it. A count that the call cannot have used is none.
"""

from collections.abc import Callable
from typing import Final

from swarmgate.core.events import Progress
from swarmgate.core.price import FEW_TOKENS, LONGEST_THOUGHT
from swarmgate.core.record import Call
from swarmgate.gate.answer_shape import UNKNOWN
from swarmgate.gate.exchange import Exchanges
from swarmgate.gate.pieces import FAR, reckoned
from swarmgate.gate.taps import ABSURD, NO_CACHE, NO_USAGE, Cached, StreamTap, Usage, read_cached
from swarmgate.gate.target import ModelTarget
from swarmgate.gate.wire import Wire
from swarmgate.http1.answer import Answering
from swarmgate.ports import AttemptFacts

MOST_ANSWER_BYTES: Final = 256 * 1024 * 1024  # of a model, whatever its head says
_NOTHING: Usage = (0, 0)


class Counted(Wire):
    """The record of one send of a model call, and what it counts; `transport.Attempt` moves it."""

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

    @property
    def status(self) -> int:
        """Of the answer; 0 before it has a head."""
        return 0 if self.head is None else self.head.status

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

    def _take_nothing(self) -> None:
        """What failed before anybody saw content, and counts nothing, is no output, and nobody bills it (UP-09)."""
        if self.usage[1] < 0:
            self.usage = _NOTHING
