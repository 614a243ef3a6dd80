"""
The live record of a call, and the frozen things it refers to. Only the core changes it.

`Route` is one way to serve a call (a deployment with one key): which budgets it takes from. `Rung` is all of one deployment,
and a call has one or several. `client` and `wire` are handles of the adapters, opaque here.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple, Protocol

from swarmgate.core.answer_times import AnswerTimes
from swarmgate.core.answers import Denied
from swarmgate.core.book import Demand, first_score
from swarmgate.core.commands import End
from swarmgate.core.effect import Effect
from swarmgate.core.estimate import Charge
from swarmgate.core.lesson import Lesson
from swarmgate.core.limits import CLASSES
from swarmgate.core.outcome import Outcome, QuotaLeft
from swarmgate.core.patience import FIRST_CONTENT_MS, USUAL_WAIT_MS
from swarmgate.core.reasons import Reason
from swarmgate.core.retry import RetryBudget
from swarmgate.core.rung_breaker import RungBreaker
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


# Nothing of it is on the wire.
IN_LINE: Final = frozenset({State.CONNECTING, State.ASKING, State.WAITING, State.BACKOFF})
_PUBLIC: Final = {
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


_UNATTRIBUTED: Final = Step()
_FIRST_SCORES: Final = tuple(map(first_score, range(CLASSES)))


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

    def begun(self, key: str, sent_ms: int, now_ms: int) -> bool:
        """The content of an answer has begun; True if somebody may go who could not before."""
        ...

    def report(self, key: str, left: QuotaLeft, sent_ms: int, now_ms: int) -> None:
        """Hear what an answer says is left."""

    def revive(self) -> bool:
        """Bring back what only a person can; whether there was any."""


class Rung(NamedTuple):
    """
    One step of a ladder: interchangeable keys of one deployment at one target, and the retries it tolerates.

    `charge` is what the provider counts against limits on tokens; `serves` are the surfaces that it speaks, None = all;
    `window` tells the largest call in tokens that its model takes, or the caller's where it names none, 0 = not known; None on a
    ladder of one. `own` are the budgets that not all of its keys take
    from: where none of them blocks, no other key helps; None = not known. `watched` are policies that only watch what is
    sent here, with what a call would take of them. `apart` makes the ring of one more model, where a rung serves any and its
    provider counts each for itself. `breaker` knows whether most sends of a size failed lately: then a rung below serves.
    """

    target: str
    model: str
    routes: dict[str, Route]
    ring: Ring
    retries: RetryBudget
    lessons: tuple[Lesson, ...] = ()  # who learns from what is sent here
    charge: Charge = Charge.PROMPT_THEN_OUTPUT
    serves: frozenset[str] | None = None
    window: Callable[[str], int] | None = None
    own: frozenset[str] | None = None
    watched: tuple[tuple[str, Route], ...] = ()
    apart: Callable[[], Ring] | None = None
    breaker: RungBreaker | None = None


class Call:
    """One unit of egress work with identity, priority, deadline and effect."""

    __slots__ = (
        "agent_key",
        "alarm_ms",
        "answer_lost",
        "arrived_ms",
        "asked_ms",
        "asked_tokens",
        "asked_turn",
        "asks",
        "attempt",
        "barred",
        "caps",
        "checked",
        "choices",
        "client",
        "client_request_id",
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
        "flat_micro",
        "form",
        "id",
        "keyed",
        "lease",
        "least_tokens",
        "likely_tokens",
        "listens_until_ms",
        "model",
        "money",
        "offered",
        "old_tokens",
        "other_key_tried",
        "output",
        "prompt",
        "queued_ms",
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
        "seen",
        "sent_ms",
        "size",
        "spared",
        "spent",
        "standing",
        "state",
        "step",
        "streams",
        "surface",
        "team",
        "tenant",
        "ticket",
        "times",
        "too_small",
        "trace",
        "trail",
        "wait_until_ms",
        "wire",
        "written",
    )

    rungs: tuple[Rung, ...]
    room: Room
    client: object  # handles of the adapters, opaque here
    wire: object
    seen: object  # of its newest attempt that was given up
    # Who wants it, and what it is.
    id: str
    ticket: str  # its own id; a repeat of a deferred call carries the first one's
    step: Step
    team: str
    tenant: str  # the team that its agent key names: only that one may see it
    agent_key: str  # the id of that key; empty = it came without one
    client_request_id: str  # the caller's own name for it (`x-request-id`); it need not be unique
    trace: str  # the trace id of its `traceparent`
    surface: str  # the path that callers know it by; empty = every rung speaks it
    model: str  # as the caller named it, where its rung names none
    caps: dict[str, Route] | None  # what its caller takes from, by target (core/caps.py)
    rank: int
    effect: Effect
    keyed: bool  # the target honours the idempotency key that the request carries
    # How large it is, and how long it may take.
    prompt: int
    reserve: int
    spared: int  # of the prompt: what a cache probably holds, so that it is not taken
    money: int  # micro-units that it will probably cost where it stands; 0 = nobody counts
    spent: int  # micro-units that it has cost by now, as far as an answer that is not whole tells
    costs: tuple[int, ...]  # what `money` is at each rung, -1 = not known; () = nobody counts
    flat_micro: (
        int  # what it costs whatever it uses, 0 = nobody bills such a call; -1 = it goes by its tokens, or nobody knows
    )
    context_tokens: int  # what it may grow to
    size: int  # of its prompt, as core/prompt_size.py tells them apart; 0 of one that nobody read
    asked_tokens: int  # of its prompt, as estimated, whatever of it counts; 0 = nobody read it, or nobody bills it
    likely_tokens: int  # of its output, whoever counts them
    least_tokens: int  # what its prompt certainly has, where that is more than its first rung's window; else 0
    arrived_ms: int
    deadline_ms: int
    wait_until_ms: int
    listens_until_ms: int  # nothing is repeated later: its caller would have left; 0 = not known
    content_ms: int  # until the first content: the trigger of degradation (essay A)
    streams: bool  # else its answer comes whole: `content_ms` is what `times` say at each send
    output: int  # tokens that each answer may have, or probably has; by them `times` know it
    choices: int  # answers that are made side by side, each as long as that
    times: AnswerTimes | None  # None: nothing is known of its target's answers
    form: bool  # it says what form its answer must have ...
    too_small: tuple[int, ...]  # ... and these rungs had budgets that can never hold it, when it came
    # Where it stands.
    state: State
    rung: int
    attempt: int
    retries: int
    rung_tries: int
    checked: bool  # it stands below the first rung, at the last that may serve it: an answer is shown whole, if it has its form
    trail: tuple[Tried, ...]  # attempts that failed, rungs that were passed over
    barred: tuple[int, ...]  # rungs that can never serve it, as was found when it stood there
    other_key_tried: bool
    written: bool  # a write of which a byte has left in an attempt that failed ...
    answer_lost: bool  # ... and whose answer did not come
    committed: bool
    delivered: bool
    crowded: bool  # its agent has as many calls in line as one agent may
    score: int
    standing: tuple[str, ...]
    offered: tuple[Route, ...]
    route: Route | None
    denied: Denied | None
    lease: str  # the name under which the newest take holds reservations
    reserved_left: int
    asks: int
    asked_ms: int
    asked_turn: int  # of the room
    old_tokens: int
    sent_ms: int
    queued_ms: int  # until then, without what earlier sends took
    alarm_ms: int  # when the sweep wakes the call; 0 = never
    end: End | None
    reason: Reason | None

    def __init__(self, identity: str, rungs: tuple[Rung, ...], room: Room, *, rank: int, arrived_ms: int) -> None:
        self.id = self.ticket = identity
        self.rungs = rungs
        self.room = room
        self.rank = rank
        self.arrived_ms = arrived_ms
        self.deadline_ms = arrived_ms + 300_000
        self.wait_until_ms = arrived_ms + USUAL_WAIT_MS
        self.content_ms = FIRST_CONTENT_MS
        self.score = _FIRST_SCORES[rank]
        self.step = _UNATTRIBUTED
        self.effect = Effect.READ
        self.state = State.NEW
        self.team = self.tenant = self.agent_key = self.model = self.trace = self.surface = self.lease = ""
        self.client_request_id = ""
        self.keyed = self.written = self.answer_lost = self.other_key_tried = False
        self.committed = self.crowded = self.delivered = self.form = self.checked = False
        self.streams = True
        self.choices = 1
        self.rung = self.attempt = self.retries = self.rung_tries = self.asks = self.asked_ms = self.asked_turn = 0
        self.flat_micro = -1
        self.size = self.prompt = self.reserve = self.spared = self.money = self.spent = self.output = 0
        self.context_tokens = self.least_tokens = self.asked_tokens = self.likely_tokens = 0
        self.reserved_left = self.old_tokens = self.sent_ms = self.queued_ms = self.alarm_ms = self.listens_until_ms = 0
        self.trail = self.barred = self.too_small = self.costs = self.standing = self.offered = ()
        self.times = self.caps = self.route = self.denied = self.end = self.reason = self.client = self.wire = (
            self.seen
        ) = None

    def __repr__(self) -> str:
        where = self.route.key if self.route else "-"
        return f"<Call {self.id} P{self.rank} {self.state.value} attempt={self.attempt} key={where}>"
