"""
The live record of a call, and the frozen things it refers to. Only the core changes it.

`Route` is one way to serve a call (a deployment with one key): which budgets it takes from and which connection it
needs. `Plan` is all ways, rung by rung. `client` and `wire` are handles of the adapters, opaque here.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, Protocol

from swarmgate.core.answers import Denied
from swarmgate.core.book import Demand, first_score
from swarmgate.core.commands import End
from swarmgate.core.effect import Effect
from swarmgate.core.estimate import Charge
from swarmgate.core.lesson import Lesson
from swarmgate.core.limits import CLASSES
from swarmgate.core.outcome import Outcome, QuotaLeft
from swarmgate.core.reasons import Reason
from swarmgate.core.retry import RetryBudget
from swarmgate.core.rungs import Tried
from swarmgate.core.view import KeyView
from swarmgate.core.waiting import Room


class State(Enum):
    """Where a call is; `public` is the word users see (design 6)."""

    NEW = "new"
    CONNECTING = "connecting"
    ASKING = "asking"
    WAITING = "waiting"
    SENDING = "sending"
    RELAYING = "relaying"
    BACKOFF = "backoff"
    ENDED = "ended"

    __hash__ = object.__hash__  # Enum's own is Python code, and the table is looked up twice per event

    @property
    def public(self) -> str:
        """queued, running, backoff or ended."""
        return _PUBLIC[self]


_PUBLIC = {
    State.NEW: "queued",
    State.CONNECTING: "queued",
    State.ASKING: "queued",
    State.WAITING: "queued",
    State.SENDING: "running",
    State.RELAYING: "running",
    State.BACKOFF: "backoff",
    State.ENDED: "ended",
}


class Step(NamedTuple):
    """Which agent's step caused a call (essay B: trajectory); empty = unattributed."""

    agent: str = ""
    task: str = ""
    goal: str = ""
    step: str = ""
    operation: str = ""
    task_type: str = ""


_UNATTRIBUTED = Step()
_FIRST_SCORES = tuple(map(first_score, range(CLASSES)))


class Route(NamedTuple):
    """
    One key at one deployment, and the budgets it takes from.

    `fixed` are demands that do not depend on the call; `metered` budgets take its prompt at once and reserve its
    output, `inputs` its prompt only, `outputs` its output only; of the budgets that reserve, `first_byte` are given back when the answer begins, `whole` when it ends, and
    `ways` when the request is delivered; of these, `weighed` reserve the prompt (design 4: Compiler, U). `money` budgets
    reserve what the call will probably cost, in micro-units.
    """

    key: str
    fixed: tuple[Demand, ...]
    metered: tuple[str, ...] = ()
    first_byte: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    ways: tuple[str, ...] = ()
    weighed: tuple[str, ...] = ()
    fresh_ms: int = 250
    money: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    def demands(self, prompt: int, reserve: int, money: int = 0) -> tuple[Demand, ...]:
        """What a call of that size takes."""
        demands = list(self.fixed)
        for name in self.metered:
            demands.append((name, prompt, reserve))  # noqa: PERF401  a comprehension is one more call per admission
        for name in self.weighed:
            demands.append((name, 0, prompt))  # noqa: PERF401  see above
        for name in self.money:
            demands.append((name, 0, money))  # noqa: PERF401  see above
        for name in self.inputs:
            demands.append((name, prompt, 0))  # noqa: PERF401  see above
        for name in self.outputs:
            demands.append((name, 0, reserve))  # noqa: PERF401  see above
        return tuple(demands)

    def budgets(self) -> tuple[str, ...]:
        """Every budget in which this route keeps a lease."""
        return self.metered + self.outputs + self.first_byte + self.whole + self.ways + self.money

    def plus(self, caps: "Route") -> "Route":
        """This route, taking from the budgets of a caller's caps as well: one demand, all or nothing."""
        joined = (
            self.key,
            self.fixed + caps.fixed,
            self.metered + caps.metered,
            self.first_byte + caps.first_byte,
            self.whole + caps.whole,
            self.ways + caps.ways,
            self.weighed + caps.weighed,
            self.fresh_ms,
            self.money + caps.money,
            self.inputs + caps.inputs,
            self.outputs + caps.outputs,
        )
        return tuple.__new__(Route, joined)


class Ring(Protocol):
    """Which of a rung's keys may be used now: `keys.KeyRing`, or a host's `target_ring.TargetRing`."""

    def candidates(self, now_ms: int, n: int = 3) -> tuple[str, ...]:
        """The next key and up to n - 1 alternatives, best first; empty if there is none now."""

    def unused(self, key: str, asked_ms: int) -> bool:
        """The first key of `candidates` at that instant was not used; True if it was a probe, which is free again."""

    def ready(self, now_ms: int) -> bool:
        """Whether `candidates` would find one; takes no turn."""

    def back_at_ms(self, now_ms: int) -> int | None:
        """When there may be one again; None if only a person can bring one back."""

    def why(self, now_ms: int) -> Reason:
        """Why there is none."""

    def views(self, now_ms: int) -> dict[str, KeyView]:
        """Each key as planners see it; takes no turn."""

    def observe(self, key: str, outcome: Outcome, sent_ms: int, now_ms: int) -> bool:
        """Learn what a send came to; True if who waits for a key should ask again."""

    def report(self, key: str, left: QuotaLeft, sent_ms: int, now_ms: int) -> None:
        """Hear what an answer says is left."""

    def revive(self) -> bool:
        """Bring back what only a person can; whether there was any."""


class Rung(NamedTuple):
    """
    One step of a ladder: interchangeable keys of one deployment at one target, and the retries it tolerates.

    `charge` is what the provider counts against limits on tokens; `serves` are the surfaces that it speaks, None = all;
    `window` tells the largest call in tokens that its model takes, 0 = not known; it is asked when a call may step down to it. `own` are the budgets that not all of its keys take
    from: where none of them blocks, no other key helps; None = not known. `watched` are policies that only watch what is
    sent here, with what a call would take of them.
    """

    target: str
    model: str
    routes: dict[str, Route]
    ring: Ring
    retries: RetryBudget
    lessons: tuple[Lesson, ...] = ()  # who learns from what is sent here
    charge: Charge = Charge.PROMPT_THEN_OUTPUT
    serves: frozenset[str] | None = None
    window: Callable[[], int] | None = None
    own: frozenset[str] | None = None
    watched: tuple[tuple[str, Route], ...] = ()


_NO_COSTS: tuple[int, ...] = ()


class Call:
    """One unit of egress work with identity, priority, deadline and effect."""

    __slots__ = (
        "alarm_ms",
        "answer_lost",
        "arrived_ms",
        "asked_ms",
        "asked_turn",
        "asks",
        "attempt",
        "caps",
        "client",
        "committed",
        "content_ms",
        "context_tokens",
        "costs",
        "crowded",
        "deadline_ms",
        "delivered",
        "denied",
        "effect",
        "end",
        "id",
        "keyed",
        "lease",
        "model",
        "money",
        "offered",
        "old_tokens",
        "other_key_tried",
        "prompt",
        "rank",
        "reason",
        "reserve",
        "reserved_left",
        "retries",
        "room",
        "route",
        "rung",
        "rung_tries",
        "rungs",
        "score",
        "sent_ms",
        "spared",
        "standing",
        "state",
        "step",
        "surface",
        "team",
        "tenant",
        "ticket",
        "trace",
        "trail",
        "wait_until_ms",
        "whole_ms",
        "wire",
        "written",
    )

    def __init__(self, identity: str, rungs: tuple[Rung, ...], room: Room, *, rank: int, arrived_ms: int) -> None:
        self.id = identity
        self.ticket = identity  # a repeat of a deferred call carries the first one's
        self.rungs = rungs
        self.room = room
        self.rank = rank
        self.arrived_ms = arrived_ms
        self.step = _UNATTRIBUTED
        self.team = self.tenant = ""  # the tenant is the team that its agent key names: only that one may see it
        # micro-units that it will probably cost where it stands, and at each rung (-1 = not known); 0, () = nobody counts
        self.money, self.costs = 0, _NO_COSTS
        self.model = ""  # as the caller named it, where its rung names none
        self.caps: dict[str, Route] | None = None  # what its caller takes from, by target (core/caps.py)
        self.trace = ""  # the trace id of its `traceparent`
        self.effect = Effect.READ
        self.keyed = False  # the target honours the idempotency key that the request carries
        self.written = False  # a write of which a byte has left in an attempt that failed ...
        self.answer_lost = False  # ... and whose answer did not come
        self.surface = ""  # the path that callers know it by; empty = every rung speaks it
        # what it may grow to; how long it may take on the last rung of several, where its answer is checked whole (0 = not)
        self.context_tokens = self.whole_ms = 0
        self.trail: tuple[Tried, ...] = ()  # attempts that failed, rungs that were passed over
        self.prompt = self.reserve = 0
        self.spared = 0  # of the prompt: what a cache probably holds, so that it is not taken
        self.deadline_ms = arrived_ms + 300_000
        self.wait_until_ms = arrived_ms + 20_000
        self.content_ms = 8_000  # until the first content: the trigger of degradation (essay A)
        self.state = State.NEW
        self.rung = 0
        self.attempt = 0
        self.retries = 0
        self.rung_tries = 0
        self.other_key_tried = False
        self.score = _FIRST_SCORES[rank]
        self.standing: tuple[str, ...] = ()
        self.offered: tuple[Route, ...] = ()
        self.route: Route | None = None
        self.denied: Denied | None = None
        self.reserved_left = 0
        self.committed = False
        self.crowded = False  # its agent has as many calls in line as one agent may
        self.delivered = False
        self.lease = ""  # the name under which the newest take holds reservations
        self.asks = 0
        self.old_tokens = 0
        self.asked_ms = 0
        self.asked_turn = 0  # of the room
        self.sent_ms = 0
        self.alarm_ms = 0  # when the sweep wakes the call; 0 = never
        self.end: End | None = None
        self.reason: Reason | None = None
        self.client: object = None
        self.wire: object = None

    def __repr__(self) -> str:
        where = self.route.key if self.route else "-"
        return f"<Call {self.id} P{self.rank} {self.state.value} attempt={self.attempt} key={where}>"
