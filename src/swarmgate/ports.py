"""
The names behind which everything stands that the engine drives: small protocols, answered by events.

An adapter never returns a decision: it calls `fire(call, event)` again, at once or later, exactly once per request.
`call` is opaque to adapters. Instants are ms of the gate's monotonic clock unless said otherwise.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from swarmgate.core.answers import Revised
from swarmgate.core.book import Take, Used
from swarmgate.core.commands import Answer, Intent, Lose, Note
from swarmgate.core.events import Event
from swarmgate.core.limits import Limits
from swarmgate.core.record import Call

Fire = Callable[[Call, Event], None]


class Clock(Protocol):
    """The one place where time comes from."""

    def now_ms(self) -> int:
        """Monotonic milliseconds."""
        ...


class Timer(Protocol):
    """One alarm for everybody who waits; arming it again replaces it."""

    def arm(self, at_ms: int | None) -> None:
        """Ring at `at_ms`, never if None."""
        ...


class BudgetStore(Protocol):
    """
    Where budgets live. `take` fires Granted, Denied or StoreLost; the rest answers nobody.

    A store that cannot answer says so within 100 ms (design 2: P10).
    """

    def take(self, call: Call, request: Take) -> None:
        """Ask for one alternative, whole."""
        ...

    def settle(self, lease: str, usage: tuple[Used, ...], *, last: bool) -> None:
        """Tell what was used; `last` ends the reservation."""
        ...

    def release(self, lease: str, budgets: tuple[str, ...]) -> None:
        """End reservations of which nothing left."""
        ...

    def renew(self, lease: str, budgets: tuple[str, ...], lease_ms: int) -> None:
        """Keep living reservations."""
        ...

    def leave(self, ticket: str, lines: tuple[str, ...]) -> None:
        """Give up a place in line."""
        ...

    def define(self, budget: str, limits: Limits) -> None:
        """Make the budget known; nothing happens if it is."""
        ...

    def revise(self, budget: str, expected: int, limits: Limits, done: Callable[[Revised], None]) -> None:
        """Replace limits if their revision is still `expected`."""
        ...


class Transport(Protocol):
    """What reaches targets. `connect` fires Ready or Lost; `send` fires Content, Progress, Ended or Lost."""

    def connect(self, call: Call) -> None:
        """Have a connection for `call.route` ready, from the pool or dialled."""
        ...

    def park(self, call: Call) -> None:
        """Give an unused connection back."""
        ...

    def send(self, call: Call) -> None:
        """Write the request; its first byte leaves in this loop turn."""
        ...

    def abort(self, call: Call) -> None:
        """Drop the connection; nothing is fired afterwards for this attempt."""
        ...


class AttemptFacts(NamedTuple):
    """
    What a transport saw of an attempt; -1 = not known.

    `content_ms` is the instant at which content began to pass, 0 where the answer came whole.
    """

    status: int = 0
    prompt_tokens: int = -1
    output_tokens: int = -1
    cached_tokens: int = -1
    content_ms: int = 0
    sent_bytes: int = 0
    got_bytes: int = 0


class Told(Protocol):
    """What `call.wire` is from its attempt's intent on, to whoever keeps the evidence."""

    def facts(self) -> AttemptFacts:
        """What is known by now, also after the attempt's end."""
        ...


class Client(Protocol):
    """The caller's side of a call."""

    def relay(self, call: Call) -> None:
        """Let the caller see the answer from here on, beginning with what is held."""
        ...

    def answer(self, call: Call, answer: Answer) -> None:
        """Say how the call ended, if nothing was relayed yet; otherwise end the relay honestly."""
        ...


class Journal(Protocol):
    """Append-only memory of attempts and ends; never blocks, never raises."""

    def intent(self, call: Call, intent: Intent) -> None:
        """Note an attempt before its first byte leaves."""
        ...

    def note(self, call: Call, note: Note) -> None:
        """Note how an attempt ended."""
        ...

    def lost(self, call: Call, lose: Lose) -> None:
        """Note a grant of which nothing left."""
        ...

    def end(self, call: Call, answer: Answer) -> None:
        """Note how the call ended."""
        ...
