"""
What every surface that sends calls brings along: whoever asked, and one exchange with a target per attempt.

The pump knows calls; here `call.client` is a `Caller` and `call.wire` an `Exchange`, so model calls, bodies that stream
and egress share one transport and one way back. Nothing is decided here.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from swarmgate.core.commands import Answer, End
from swarmgate.core.events import GivenUp, Lost, LostKind
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call
from swarmgate.facts.prices import PriceBook
from swarmgate.gate.answer_shape import UNKNOWN
from swarmgate.gate.dead_letters import DeadLetters
from swarmgate.gate.delivery import Deliveries
from swarmgate.gate.once import Once
from swarmgate.gate.taps import NO_USAGE
from swarmgate.gate.till import Till
from swarmgate.http1.upstreams import Origin, Upstreams, Waiter
from swarmgate.ports import AttemptFacts, Fire, Told

PROGRESS_MS: Final = 5_000
_DEAD_LETTERED: Final = End.DEAD_LETTERED  # an enumeration takes 0.1 us to look a member up
_ENDLESS: Final = GivenUp(Reason.TARGET_ENDLESS)
REMEMBERED: Final = 1_024  # calls that ended lately
Ended = deque[
    tuple[Call, tuple[int, int], bool]
]  # calls that ended, the tokens in and out of each, and whether that is an estimate
NOTHING_SEEN: Final = AttemptFacts()
Clocks = tuple[Callable[[], int], Callable[[], int]]  # (monotonic ms, seconds of the wall clock)


class Exchange(Waiter, Told, Protocol):
    """
    One attempt, from the wish for a connection to the last byte: the pool's waiter, then the exchange's owner.

    Facts are fired as events of its call: Ready, Content once, Ended or Lost once. One whose answer lasts stands in
    `Exchanges.live` and says in `progress_ms` when it last told what flowed.
    """

    call: Call
    upstreams: Upstreams  # whose connection it wants: hosts that agents name have pools of their own
    origin: Origin
    progress_ms: int

    def send(self) -> bool:
        """Write the request, or its beginning; False if the connection was closed meanwhile and no byte left."""
        ...

    def drop(self) -> None:
        """Give everything up: unused back to its pool, in use closed, wished for no more; nothing is fired again."""
        ...

    def is_delivered(self) -> bool | None:
        """Whether the target has the request; None if the exchange is over."""
        ...

    def report(self, now_ms: int, *, last: bool) -> None:
        """Fire Progress if anything flowed since `progress_ms`; after the `last` word nobody will count it."""
        ...

    def is_endless(self) -> bool:
        """Whether more came than any answer to its request can have (reliability UP-06)."""
        ...


class Caller(Protocol):
    """Whoever asked for a call: `call.client` as long as it is open."""

    def attempt(self, call: Call) -> Exchange:
        """The next attempt, at the call's present rung."""
        ...

    def show(self, call: Call) -> None:
        """Let the answer be seen from here on, beginning with what the exchange holds."""
        ...

    def tell(self, call: Call, answer: Answer, exchange: Exchange | None) -> None:
        """Say how the call ended, once; `exchange` is its last attempt, if that was not dropped."""
        ...


class Exchanges:
    """ports.Transport: attempts on pooled connections, whoever makes them; what they need to run stands here."""

    def __init__(
        self, upstreams: Upstreams, fire: Fire, clocks: Clocks, deliveries: Deliveries, till: Till | None = None
    ) -> None:
        self.upstreams = upstreams
        self.fire = fire
        self.now_ms, self.unix_s = clocks
        self.live: set[Exchange] = set()
        self._deliveries = deliveries
        self.till = till or Till(PriceBook())

    def connect(self, call: Call) -> None:
        """Fire Ready or Lost."""
        call.wire = exchange = call.client.attempt(call)  # type: ignore[attr-defined]  # ports know no surface
        exchange.upstreams.connect(exchange.origin, exchange)

    def park(self, call: Call) -> None:
        """Give the unused connection back."""
        self.abort(call)

    def send(self, call: Call) -> None:
        """Write the request; Content, Ended or Lost follow."""
        exchange, route = call.wire, call.route
        if not exchange.send():  # type: ignore[attr-defined]  # see connect
            self.fire(call, Lost(LostKind.STALE, sent=False))
        elif route is not None and route.ways:
            self._deliveries.watch(exchange)  # type: ignore[arg-type]  # see connect

    def abort(self, call: Call) -> None:
        """Drop the attempt; nothing is fired for it afterwards."""
        exchange, call.wire = call.wire, None
        if exchange is not None:
            exchange.drop()  # type: ignore[attr-defined]  # see connect
            if call.sent_ms:
                facts: AttemptFacts = exchange.facts()  # type: ignore[attr-defined]  # see connect
                if facts.output_tokens != UNKNOWN:
                    call.seen = facts

    def sweep(self) -> None:
        """
        Let everybody tell what flowed: every 5 s each, so that reservations live and silence is seen, and before its time ends.

        What flowed beyond any bound ends there; what came of it is charged.
        """
        now_ms = self.now_ms()
        due = [one for one in self.live if now_ms - one.progress_ms >= PROGRESS_MS or one.call.deadline_ms <= now_ms]
        for exchange in due:
            exchange.report(now_ms, last=exchange.call.deadline_ms <= now_ms)
            if exchange.is_endless():
                self.fire(exchange.call, _ENDLESS)

    def hear_out(self, call: Call) -> None:
        """The call is about to end: what flowed since it told last counts, also beyond its estimate (reliability SE-03)."""
        exchange = call.wire
        if exchange in self.live:
            exchange.report(self.now_ms(), last=True)


class Callers:
    """ports.Client: what the pump asks of callers, whoever they are; `ended` has the newest last."""

    def __init__(self) -> None:
        self.ended: Ended = deque(maxlen=REMEMBERED)
        self.letters: DeadLetters | None = None  # where there is a state folder
        self.once: Once | None = None  # keyed writes, where there is a control process to keep them on file

    def relay(self, call: Call) -> None:
        """Let the answer be seen."""
        call.client.show(call)  # type: ignore[attr-defined]  # ports know no surface

    def answer(self, call: Call, answer: Answer) -> None:
        """Say how the call ended; nobody refers to it any more."""
        caller, exchange = call.client, call.wire
        call.client = call.wire = None
        if answer.end is _DEAD_LETTERED and self.letters is not None:
            self.letters.put(call, answer, caller)
        caller.tell(call, answer, exchange)  # type: ignore[attr-defined]  # see relay
        if self.once is not None and call in self.once.open:
            whole = answer.end is End.ANSWERED or (answer.end is End.FAILED and getattr(exchange, "whole", False))
            self.once.ended(call, answer, is_theirs=whole)
        usage = getattr(exchange, "usage", NO_USAGE)
        estimated = False
        if UNKNOWN in usage and call.sent_ms:
            usage, estimated = seen_of(call, exchange)
        self.ended.append((call, usage, estimated))


def seen_of(call: Call, exchange: object) -> tuple[tuple[int, int], bool]:
    """Tokens in and out of a call's newest attempt, which its target did not tell, and whether they are an estimate."""
    facts = NOTHING_SEEN if exchange is None else exchange.facts()  # type: ignore[attr-defined]  # ports know no surface
    if facts.output_tokens == UNKNOWN and isinstance(call.seen, AttemptFacts):
        facts = call.seen  # it was given up, or one before it was, and this one never left
    return (facts.prompt_tokens, facts.output_tokens), facts.estimated
