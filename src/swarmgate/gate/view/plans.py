"""
`POST /plan`: steps in, an order out; the kernel run ahead (core/planning.py) between the loop's other turns.

One plan is made at a time, in turns of about a millisecond, and after it no other for some time, so that nobody's call feels
it, however often plans are asked for.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Protocol

import msgspec
from msgspec import Meta

from swarmgate.core.answers import BlockKind
from swarmgate.core.book import Book
from swarmgate.core.compiler import WAY
from swarmgate.core.duration import parse_duration_ms
from swarmgate.core.errors import BadInput
from swarmgate.core.limits import Limits
from swarmgate.core.planning import NOTHING_FRESH, USUAL_MS, Planned, PlannedStep, Planning, Way
from swarmgate.core.reasons import Reason
from swarmgate.core.scope import Scope
from swarmgate.gate import answers
from swarmgate.gate.identity import RANKS
from swarmgate.gate.view.surface import Query, relative, told, whose_is, words
from swarmgate.http1.client_end import ClientEnd
from swarmgate.http1.head import RequestHead

MOST_STEPS = 1_000
MOST_WAITING = 16
MOST_OF_ONE = 4  # of them of one caller: whoever asks without end must not keep all others out
MOST_BODY_BYTES = 1024 * 1024
LOOKS_A_TURN = 256
FINDS_A_TURN = 8  # steps; a host that nobody has called takes a tenth of a millisecond
LONGEST_STEP_MS = 3_600_000
RESTS = 3  # times as long as a plan took, until the next is begun: plans get a quarter of the loop at most
_KINDS = {BlockKind.TIME: "time", BlockKind.LINE: "line", BlockKind.EVENT: "event", BlockKind.NEVER: "never"}
_Units = Annotated[int, Meta(ge=0, le=10**9)]


class PlanStep(msgspec.Struct, forbid_unknown_fields=True):
    """A step as a scheduler writes it: a model with its tokens, or a URL with its method and the bytes that come and go."""

    id: Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[!-~]+$")]
    model: str = ""
    url: str = ""
    method: str = "GET"
    priority: str = "P1"
    prompt_tokens: _Units = 0
    output_tokens: _Units = 0
    bytes: _Units = 0
    lasts: str = ""


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """What is posted."""

    steps: Annotated[list[PlanStep], Meta(min_length=1, max_length=MOST_STEPS)]


class StepWays(msgspec.Struct, frozen=True):
    """
    What would serve a step: its target, its ways with the key of each, and from when one of them may be taken.

    `fresh` are budgets among them that nobody has used yet.
    """

    target: str
    ways: tuple[Way, ...]
    keys: tuple[str, ...]
    not_before_ms: int = 0
    fresh: Mapping[str, Limits] = NOTHING_FRESH


class Finder(Protocol):
    """Who knows what a step would take."""

    def find(self, asked: PlanStep, viewer: Scope) -> StepWays:
        """Errors: `BadInput` names the field of the step that leads nowhere."""
        ...


class Plans:
    """Plans are asked for, made one after the other, and answered."""

    def __init__(self, loop: asyncio.AbstractEventLoop, book: Book, now_ms: Callable[[], int], finder: Finder) -> None:
        self._loop = loop
        self._book = book
        self._now_ms = now_ms
        self._finder = finder
        self._waiting: deque[Request] = deque()
        self._began_s = self._rests_until_s = 0.0

    def begin(self, end: ClientEnd, head: RequestHead, query: Query, viewer: Scope) -> "Request | None":
        """A request begins; None if it was answered at once."""
        words(query)
        if (head.content_length or 0) > MOST_BODY_BYTES:
            end.respond(*answers.too_long(MOST_BODY_BYTES))
            return None
        if b"expect" in head.fields:
            end.want_body()
        return Request(self, end, viewer, whose_is(head, viewer))

    def make(self, request: "Request", body: bytes) -> None:
        """Plan what was asked, after the plans that were asked for before. Errors: `BadInput`."""
        try:
            request.asked = msgspec.json.decode(body, type=Body).steps
        except msgspec.MsgspecError as error:
            raise BadInput("body", f"is no plan: {error}") from None
        own = sum(one.whose == request.whose for one in self._waiting)
        if own >= MOST_OF_ONE or len(self._waiting) >= MOST_WAITING:
            whose = f"{own} plans of this caller" if own >= MOST_OF_ONE else f"{MOST_WAITING} plans"
            request.reply(answers.refusal(Reason.GATE_BUSY, f"{whose} wait already; ask again when one is answered."))
            return
        self._waiting.append(request)
        if len(self._waiting) == 1:
            self._loop.call_at(self._rests_until_s, self._begin)

    def _begin(self) -> None:
        self._began_s = self._loop.time()
        self._turn()

    def _turn(self) -> None:
        request = self._waiting[0]
        try:
            is_over = request.is_gone or self._advance(request)
        except BadInput as bad:
            is_over = True
            request.reply(answers.bad_input(bad))
        if not is_over:
            self._loop.call_soon(self._turn)
            return
        self._waiting.popleft()
        now_s = self._loop.time()
        self._rests_until_s = now_s + RESTS * (now_s - self._began_s)
        if self._waiting:
            self._loop.call_at(self._rests_until_s, self._begin)

    def _advance(self, request: "Request") -> bool:
        """Work on one plan for about a millisecond; whether it was answered. Errors: `BadInput`."""
        planning = request.planning
        if planning is None:
            self._find(request)
            return False
        if not planning.advance(LOOKS_A_TURN):
            return False
        request.reply(told(_order(planning, request.found)))
        return True

    def _find(self, request: "Request") -> None:
        """Find what the next few steps take; with the last of them the planning begins. Errors: `BadInput`."""
        at = len(request.steps)
        for index, one in enumerate(request.asked[at : at + FINDS_A_TURN], at):
            try:
                where = self._finder.find(one, request.viewer)
                request.steps.append(_step(one, where, request.found))
            except BadInput as bad:
                raise BadInput(f"steps[{index}].{bad.field}", bad.reason) from None
            request.found[one.id] = where
        if len(request.steps) == len(request.asked):
            kinds = {id(one.fresh): one.fresh for one in request.found.values()}.values()  # new hosts share one
            fresh = {name: limits for kind in kinds for name, limits in kind.items()}
            request.planning = Planning(self._book, request.steps, self._now_ms() + self._book.offset_ms, fresh)


class Request:
    """One request for a plan, from its head to its answer; `whose` is its caller's key, or the name that it says."""

    def __init__(self, plans: Plans, end: ClientEnd, viewer: Scope, whose: bytes) -> None:
        self._plans = plans
        self.viewer = viewer
        self.whose = whose
        self._end = end
        self._parts: list[bytes] = []
        self._size = 0
        self.planning: Planning | None = None
        self.asked: list[PlanStep] = []
        self.steps: list[PlannedStep] = []
        self.found: dict[str, StepWays] = {}
        self.is_gone = False

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        self._size += len(data)
        self._parts.append(data)
        if self._size > MOST_BODY_BYTES:
            self.reply(answers.too_long(MOST_BODY_BYTES))

    def complete(self) -> None:
        """The body is whole."""
        try:
            self._plans.make(self, b"".join(self._parts))
        except BadInput as bad:
            self.reply(answers.bad_input(bad))

    def reply(self, reply: answers.Reply) -> None:
        """Answer, once."""
        self._parts.clear()
        self._end.respond(*reply)

    def on_gone(self) -> None:
        """Whoever asked has left."""
        self.is_gone = True

    def on_pause(self) -> None:
        """One answer is not much."""

    def on_resume(self) -> None:
        """See above."""


def _step(asked: PlanStep, found: StepWays, others: Collection[str]) -> PlannedStep:
    if asked.id in others:
        raise BadInput("id", f"{asked.id!r} stands twice")
    if asked.priority not in RANKS:
        raise BadInput("priority", f"{asked.priority[:20]!r} is none; say P0, P1 or P2")
    lasts_ms = parse_duration_ms(asked.lasts, "lasts") if asked.lasts else USUAL_MS
    if lasts_ms > LONGEST_STEP_MS:
        raise BadInput("lasts", f"{asked.lasts!r} is more than an hour")
    return PlannedStep(asked.id, RANKS[asked.priority], found.ways, lasts_ms, found.not_before_ms)


def _order(planning: Planning, found: dict[str, StepWays]) -> dict[str, object]:
    planned = planning.planned
    return {
        "order": [_row(one, found[one.id], planning.now_ms) for one in planned],
        "now": [one.id for one in planned if one.kind is None],
    }


def _row(one: Planned, found: StepWays, now_ms: int) -> dict[str, object]:
    keys = ["keys"] if found.not_before_ms > now_ms else []
    return {
        "id": one.id,
        "not_before_ms": relative(one.start_ms, now_ms),
        "kind": "now" if one.kind is None else _KINDS[one.kind],
        "waits_for": list(dict.fromkeys(name.removesuffix(WAY) for name in one.waits_for)) or keys,
        "target": found.target,
        "key": (found.keys[one.way] or None) if one.start_ms is not None else None,
    }
