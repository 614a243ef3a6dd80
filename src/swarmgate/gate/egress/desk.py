"""
Where requests to hosts become calls: who waits how long, what may be repeated, what is taken; and what answers teach.

The core decides everything after that, with the same table, pump and store as for model calls.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

from swarmgate.core.commands import Answer
from swarmgate.core.effect import Effect, effect_of
from swarmgate.core.errors import BadInput
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call, Rung
from swarmgate.core.retry import RetryBudget
from swarmgate.core.scope import Scope
from swarmgate.core.target import Target
from swarmgate.core.target_ring import TargetRing
from swarmgate.engine.teacher import Teacher
from swarmgate.gate.answers import Reply, bad_input, refusal
from swarmgate.gate.desk import Desk, owner
from swarmgate.gate.egress.chains import Chains
from swarmgate.gate.egress.fetch import MOST_HELD_BYTES
from swarmgate.gate.egress.hosts import Destination, Hosts
from swarmgate.gate.egress.plan import EgressPlan
from swarmgate.gate.egress.requests import is_plain
from swarmgate.gate.egress.shadow import Shadow
from swarmgate.gate.egress.signals import stated
from swarmgate.gate.identity import Identity
from swarmgate.gate.once import key_of
from swarmgate.gate.resolve import TargetResolver
from swarmgate.gate.shapes import PROBLEM
from swarmgate.http1.client_end import ClientEnd
from swarmgate.http1.handler import CallerEnd
from swarmgate.http1.head import RequestHead, ResponseHead
from swarmgate.http1.upstreams import Upstreams
from swarmgate.ports import Fire

if TYPE_CHECKING:
    from swarmgate.gate.egress.forward import Forward
    from swarmgate.gate.egress.tunnel import Tunnel

LONGEST_WAIT_MS: Final = 300_000
USUAL_TIMEOUT_MS: Final = 300_000
FIRST_BYTE_MS: Final = 30_000
# of a host that refused nothing: any page may say that nothing is left, for everybody
LONGEST_REST_MS: Final = 3_600_000
USUAL_ANSWER_BYTES: Final = 64 * 1024


class Reach(NamedTuple):
    """How hosts are reached: connections of their own, never those of the operator's targets, and who finds them."""

    upstreams: Upstreams
    resolver: TargetResolver


class EgressDesk:
    """What the doors share, at the gate's own desk; `shadow` has what policies that only watch have seen."""

    def __init__(self, desk: Desk, ways: Reach, hosts: Hosts, teacher: Teacher) -> None:
        self.pump = desk.pump
        self.exchanges = desk.exchanges
        self.fire: Fire = desk.fire
        self.closed = desk.closed
        self.scope = desk.scope
        self.identity = desk.identity
        self.upstreams, self.resolver = ways
        self.hosts = hosts
        self.shadow = teacher.watcher = Shadow(hosts.plan.policies, desk.exchanges.now_ms)
        hosts.open = lambda: desk.pump.open
        self.chains = Chains(desk.exchanges.now_ms)
        self.tunnels: set[Tunnel] = set()  # that are open, or wait for it
        self._desk = desk
        self._teacher = teacher

    @property
    def plan(self) -> EgressPlan:
        """Policies and settings in force."""
        return self.hosts.plan

    def arrive(self, forward: "Forward") -> None:
        """Begin the call of a request."""
        errand = forward.errand
        if self._desk.has_lost(errand.scope):
            forward.reply(refusal(Reason.CALLER_KEY_REFUSED, shape=PROBLEM))
            return
        if errand.place.host.is_gone:  # while the body came in
            place = self.hosts.place(errand.url.target, forward.asked[0].decode(), errand.url.path, errand.scope.team)
            forward.errand = errand = errand._replace(place=place)
        forward.call = call = self.call(
            forward, errand.place, errand.identity, min(forward.size, MOST_HELD_BYTES), errand.scope
        )
        call.effect = Effect.WRITE if forward.streams else errand.effect
        if is_plain(forward.asked[0], forward.fields, errand.url):
            call.flat_micro = 0
        try:
            self._begin(forward, call)
        except BadInput as bad:
            forward.reply(bad_input(bad, PROBLEM))

    def _begin(self, forward: "Forward", call: Call) -> None:
        """A write that carries a key is put on file first. Errors: `BadInput`."""
        key = key_of(forward.fields, call.step, owner(call)) if call.effect is Effect.WRITE else None
        if key is not None:
            if forward.streams:
                raise BadInput("body", f"is longer than the {MOST_HELD_BYTES} bytes that a write with a key may have")
            if forward.errand.place.judged.policy.honours_keys:
                call.keyed = True
                forward.carry(key.sent.encode())
        self._desk.arrive(forward, call, forward.fields, *forward.asked)

    def call(self, client: object, place: Destination, identity: Identity, prompt_bytes: int, scope: Scope) -> Call:
        """A call to a place, on behalf of somebody; `scope` is that of its key."""
        now_ms = self.exchanges.now_ms()
        call = self._desk.call(client, (place.rung,), identity, now_ms, scope)
        call.prompt, call.reserve = prompt_bytes, USUAL_ANSWER_BYTES
        call.content_ms = max(FIRST_BYTE_MS, identity.timeout_ms or 0)  # who says that it waits longer means that, too
        call.deadline_ms = now_ms + (USUAL_TIMEOUT_MS if identity.timeout_ms is None else identity.timeout_ms)
        call.wait_until_ms = now_ms + self._wait_ms(place, identity)
        return call

    def decline(
        self,
        end: ClientEnd,
        target: Target,
        asker: tuple[Identity, Scope],
        why: tuple[Reason, str, str | None],
    ) -> None:
        """Refuse what policy forbids: a call that ends before its host is known here."""
        identity, scope = asker
        rung = Rung(target.key, "", {}, TargetRing(), RetryBudget())
        writer = _Refused(end)
        call = self._desk.call(writer, (rung,), identity, self.exchanges.now_ms(), scope)
        self._desk.decline(writer, call, *why)

    def admits(self, scope: Scope) -> bool:
        """Whether the key of this scope is still good."""
        return not self._desk.has_lost(scope)

    def told(self, call: Call, answer: Answer, head: RequestHead) -> Reply:
        """What the caller of a call that has no answer of its host is told."""
        return self._desk.told(call, answer, head, PROBLEM)

    def hear(self, call: Call | None, place: Destination, head: ResponseHead) -> None:
        """Learn what an answer's headers say of limits: in force at the next admission."""
        if call is not None and place.rung.watched:
            self.shadow.began(call)
        said = stated(head, self.exchanges.unix_s())
        now_ms = self.exchanges.now_ms()
        if said.remaining == 0 and said.reset_ms and head.status < 400:
            self.hosts.pause(place, now_ms + min(said.reset_ms, LONGEST_REST_MS))
        for lesson in place.rung.lessons[:1]:  # the host's own, not its group's
            if said.limit is not None and (said.window_ms or lesson.stated):
                self._teacher.told(lesson, lesson.learner.told(said.limit, said.window_ms))
            if said.concurrent is not None:
                self._teacher.told(lesson, lesson.learner.told_cap(said.concurrent))

    def _wait_ms(self, place: Destination, identity: Identity) -> int:
        policy = place.judged.policy.wait_ms
        usual = self.plan.settings.wait_ms if policy is None else policy
        said = usual if identity.wait_ms is None else identity.wait_ms
        bounds = (
            [said, LONGEST_WAIT_MS] if identity.timeout_ms is None else [said, LONGEST_WAIT_MS, identity.timeout_ms]
        )
        return min(bounds)


class _Refused:
    """The caller of a call to a host that may not be called (once.Writer)."""

    shape = PROBLEM
    call: Call | None = None

    def __init__(self, end: ClientEnd) -> None:
        self.end: CallerEnd = end

    def reply(self, reply: Reply) -> None:
        """It is told so."""
        self.end.respond(*reply)


def effect(place: Destination, method: bytes, identity: Identity) -> Effect:
    """Whether a request may be repeated. Errors: `BadInput` if the caller asks for what only policy may give."""
    policy, path_class, _ = place.judged
    declared = policy.effects.get(path_class)
    return effect_of(method.decode(), "", declared=declared, asked=identity.effect, may_relax=policy.may_relax)
