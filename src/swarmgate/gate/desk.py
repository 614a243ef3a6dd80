"""What every surface that begins calls shares: how a call is made, how many may be open, and how callers are told."""

import os
from collections.abc import Mapping
from functools import partial
from itertools import count
from typing import Final

from swarmgate.core.commands import Answer, End
from swarmgate.core.crowd import Crowd
from swarmgate.core.effect import Effect
from swarmgate.core.events import GivenUp, OwnAnswer
from swarmgate.core.reasons import Reason
from swarmgate.core.record import IN_LINE, Call, Rung
from swarmgate.core.scope import NOBODY, Scope
from swarmgate.core.ticket import opened
from swarmgate.engine.pump import Pump
from swarmgate.gate import answers
from swarmgate.gate.answers import Reply
from swarmgate.gate.cap_desk import CapDesk
from swarmgate.gate.deferral import Asked, Deferrals
from swarmgate.gate.exchange import Exchanges
from swarmgate.gate.identity import Identity, Unattributed, must_say, read_identity
from swarmgate.gate.keeper import Keeper
from swarmgate.gate.live_streams import LiveStreams
from swarmgate.gate.once import Once, Ways, Writer, key_of, payload_of
from swarmgate.gate.served import ServedFields, own_id
from swarmgate.gate.shapes import Shape
from swarmgate.gate.target import ModelTarget
from swarmgate.http1.head import RequestHead

MOST_OPEN: Final = 20_000  # calls; what one may hold in memory is bounded by the size of its body
BUSY_S: Final = 5  # over so many seconds the repeats are spread
_REPEATS: Final = b"x-stainless-retry-count"


class Desk:
    """One per gate; `is_stopping` and `crowd` are looked at before a call is begun."""

    def __init__(
        self,
        pump: Pump,
        exchanges: Exchanges,
        targets: Mapping[str, ModelTarget],
        served: ServedFields,
        caps: CapDesk | None = None,
    ) -> None:
        self.pump = pump
        self.fire = pump.fire
        self.exchanges = exchanges
        self.targets = targets
        self.served = served
        self.caps = caps
        self.deferrals = Deferrals(served, os.urandom(32))  # a place is worth something at this gate only
        self.crowd = Crowd(MOST_OPEN)
        self.is_stopping = False
        self.streams: LiveStreams | None = None
        self.once: Once | None = None  # see Callers.once
        self.keeper: Keeper | None = None  # agents' keys, where there are any
        self.asked_for: tuple[str, ...] = ()  # the words that every call must say of who causes it
        self.unattributed = 0  # calls that were refused for that
        self._loses = False  # calls run whose agent key is no longer good: none of them is sent again
        self._prefix = f"req-{os.urandom(8).hex()}-"  # makes ids unique beyond this process; they are names, no secrets
        self._numbers = count()

    def closed(self, fields: Mapping[bytes, bytes]) -> Reason | None:
        """Why no call of who sends these may begin now; None if it may."""
        if self.is_stopping:
            return Reason.GATE_STOPPING
        calls, crowd, keeper = self.pump.open, self.crowd, self.keeper
        if len(calls) < crowd.crowded_at:
            return None
        is_full = len(calls) >= crowd.room
        if not is_full and keeper is not None and keeper.has_teams:
            is_full = crowd.is_too_much((keeper.scope(fields) or NOBODY).team, calls)
        return Reason.GATE_BUSY if is_full else None

    def look_around(self) -> None:
        """Count who holds the open calls, where they are many."""
        self.crowd.count(self.pump.open, is_crowded=len(self.pump.open) >= self.crowd.crowded_at // 2)

    def refusal(self, reason: Reason, shape: Shape) -> Reply:
        """Why no call may begin; who finds the gate busy may come again, not all at once."""
        reply = answers.refusal(reason, shape=shape)
        if reason is not Reason.GATE_BUSY:
            return reply
        later = (b"retry-after", b"%d" % (1 + next(self._numbers) % BUSY_S))
        return reply._replace(headers=[*(one for one in reply.headers if one != answers.STAY), later])

    def identity(self, fields: Mapping[bytes, bytes], in_path: Mapping[str, str] | None) -> Identity:
        """Who causes a call. Errors: `BadInput`; `Unattributed` if it does not say what the operator asks for."""
        identity = read_identity(fields, in_path)
        try:
            must_say(identity.step, self.asked_for)
        except Unattributed:
            self.unattributed += 1
            raise
        return identity

    def scope(self, fields: Mapping[bytes, bytes]) -> Scope | None:
        """What the key in a request's head allows; None = it carries none."""
        return self.keeper.scope(fields) if self.keeper is not None else None

    def has_lost(self, scope: Scope) -> bool:
        """Whether the key with which somebody came in is no longer good: what was begun with it must not be sent."""
        return self.keeper is not None and not self.keeper.admits(scope)

    def end_lost(self) -> None:
        """
        Refuse what waits in line with a key that the keeper does not know any more.

        What is on the wire goes on: it is paid for, and a write must not be torn; if it fails, it is not sent again.
        """
        self._loses = False
        if self.keeper is None:
            return
        lost = {call.agent_key for call in self.pump.open}.difference(self.keeper.ids, ("",))
        for call in [one for one in self.pump.open if one.agent_key in lost] if lost else ():
            if call.state in IN_LINE:
                self.fire(call, GivenUp(Reason.CALLER_KEY_REFUSED))
            else:
                self._loses = True

    def look_after_lost(self) -> None:
        """The same, a few times a second while calls of such keys run."""
        if self._loses:
            self.end_lost()

    def call(
        self, client: object, rungs: tuple[Rung, ...], identity: Identity, now_ms: int, scope: Scope = NOBODY
    ) -> Call:
        """A new call of this caller, with its caps and the place that its ticket keeps; `scope` is that of its agent key."""
        call = Call(
            self._prefix + str(next(self._numbers)), rungs, self.pump.room, rank=identity.rank, arrived_ms=now_ms
        )
        call.client = client
        call.step = identity.step
        call.team = call.tenant = scope.team
        call.agent_key = scope.id
        if self.caps is not None:
            self.caps.admit(call, scope)
        call.trace, call.client_request_id = identity.traceparent[3:35], identity.client_request_id
        if identity.ticket:
            place = opened(identity.ticket, self.deferrals.key, call.tenant, identity.rank, now_ms)
            if place is not None:
                call.ticket, call.score = place.ticket, place.score
        return call

    def arrive(self, writer: Writer, call: Call, fields: Mapping[bytes, bytes], *payload: bytes | memoryview) -> None:
        """
        Begin the call; a write that carries a key is put on file first, with a hash of its `payload`.

        Errors: `BadInput` for a key that cannot be used.
        """
        key = key_of(fields, call.step, owner(call)) if call.effect is Effect.WRITE else None
        if key is None:
            self.pump.arrive(call)
        elif self.once is None:
            self.decline(writer, call, Reason.GATE_RECORDS_LOST)
        else:
            name = f"{call.rungs[0].target}|{key.stored}"
            ways = Ways(partial(self._go, writer), self.answer)
            self.once.begin(writer, call, name, payload_of(*payload), ways)

    def _go(self, writer: Writer, call: Call) -> None:
        """A write is on file: it goes, unless its key was revoked meanwhile."""
        if self.keeper is not None and call.agent_key and call.agent_key not in self.keeper.ids:
            self.decline(writer, call, Reason.CALLER_KEY_REFUSED)
        else:
            self.pump.arrive(call)

    def decline(self, writer: Writer, call: Call, reason: Reason, detail: str = "", param: str | None = None) -> None:
        """Refuse a call that was understood; like every call it has an end, and its name leads to it."""
        reply = answers.refusal(reason, detail, param, writer.shape, call.id)
        reply.headers.extend(own_id(call))
        self.answer(writer, call, OwnAnswer(End.REFUSED, reason), reply)

    def answer(self, writer: Writer, call: Call, own: OwnAnswer, reply: Reply) -> None:
        """Answer a call before it stands in any line."""
        writer.call = None
        call.client = _Answered(writer, reply)
        self.fire(call, own)

    def told(self, call: Call, answer: Answer, head: RequestHead, shape: Shape) -> Reply:
        """The answer to a call that has none of its target's."""
        reason = answer.reason or Reason.GATE_BUG
        if answer.end is not End.DEFERRED or answer.denied is None:
            return answers.ended(call, answer.end, reason, shape)
        said = head.fields.get(_REPEATS, b"0")
        repeats = int(said) if said.isdigit() and len(said) < 10 else 0
        return self.deferrals.reply(call, answer.denied, reason, Asked(self.exchanges.now_ms(), shape, repeats))

    def last_event(self, call: Call, answer: Answer, shape: Shape) -> bytes:
        """The same in a stream that has begun: SDKs raise on it, and no `[DONE]` follows."""
        reason = answer.reason or Reason.GATE_BUG
        if answer.end is End.DEFERRED and answer.denied is not None:
            return shape.event(self.deferrals.said(call, answer.denied, reason, self.exchanges.now_ms()))
        return shape.event(answers.ended_said(call, answer.end, reason, shape))


class _Answered:
    """Who asked for a call that the gate answers itself (exchange.Caller)."""

    def __init__(self, writer: Writer, reply: Reply) -> None:
        self._writer = writer
        self._reply = reply

    def tell(self, _call: Call, _answer: Answer, _exchange: object) -> None:
        """It is told the reply that was made for it."""
        self._writer.reply(self._reply)


def owner(call: Call) -> str:
    """Whose keyed writes a call's are: the team of a key is never one that an agent only claims (no name has a space)."""
    return f"key {call.tenant}" if call.tenant else call.team
