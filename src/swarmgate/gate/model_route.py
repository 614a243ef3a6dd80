"""
From a model request to a call: which ladder serves it, how it ranks, how long it may wait, what it will take.

The rules stand in core/patience.py, core/answer_times.py and core/estimate.py; the core decides everything after that.
"""

from bisect import bisect_left
from collections.abc import Mapping
from functools import partial
from typing import Final

from swarmgate.core.answer_times import AnswerTimes
from swarmgate.core.effect import Effect, effect_of
from swarmgate.core.errors import BadInput
from swarmgate.core.estimate import USUAL_OUTPUT_TOKENS, Outputs, charged, common_charge
from swarmgate.core.ladders import Ladders
from swarmgate.core.patience import USUAL_TIMEOUT_MS, listens_ms, wait_ms
from swarmgate.core.prompt_size import PROMPT_BOUNDS
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call, Rung
from swarmgate.core.rungs import too_small
from swarmgate.core.scope import NOBODY, PREFIX, Scope
from swarmgate.gate import answers
from swarmgate.gate.apart import NAMED, apart
from swarmgate.gate.compress import NOT_TRIED, Ceiling, Compressor
from swarmgate.gate.desk import Desk
from swarmgate.gate.identity import REQUEST_ID, UNSAID, Identity, read_timeout_ms
from swarmgate.gate.least import least_tokens
from swarmgate.gate.model_names import may_say
from swarmgate.gate.peek import peek
from swarmgate.gate.peeked import Peeked
from swarmgate.gate.relay import Relay, Wishes
from swarmgate.gate.shapes import Shape, shape_of
from swarmgate.gate.structured import asks_for_form
from swarmgate.gate.target import without_credentials
from swarmgate.gate.till import is_capped
from swarmgate.http1.client_end import ClientEnd
from swarmgate.http1.head import RequestHead
from swarmgate.providers.dialect import EMBEDDINGS

PATHS: Final = {
    b"/v1/chat/completions": "generate",
    b"/v1/completions": "generate",
    b"/v1/responses": "generate",
    b"/v1/messages": "generate",
    b"/v1/messages/count_tokens": "count_tokens",
    b"/v1/embeddings": "embeddings",
}
_SURFACES: Final = {path: path.decode() for path in PATHS}
_ENCODING: Final = b"content-encoding"
_PLAIN: Final = b"identity"
_KEY: Final = PREFIX.encode()  # of agents
_WRITE: Final = Effect.WRITE  # an enumeration takes 0.1 us to look a member up
_WISHES: Final = "wishes"  # where a head's notes hold them
MOST_MODEL: Final = 128  # letters of a model's name that are kept of it
MOST_BODY_BYTES: Final = 32 * 1024 * 1024


class ModelRoutes:
    """The surface for model calls; `ceilings` are the longest prompts in tokens, by task type."""

    most_body_bytes = MOST_BODY_BYTES

    def __init__(self, desk: Desk, ladders: Ladders, ceilings: Mapping[str, Ceiling]) -> None:
        self.desk = desk
        self._ladders = ladders
        self.ceilings = ceilings
        self._compressor = Compressor(self._begin_later, self._too_long)
        self._outputs = Outputs()
        self._outputs_of_several = (
            Outputs()
        )  # of each answer: a target that makes one where many were asked for says nothing of others
        self._times = AnswerTimes()
        self._times_of_several = AnswerTimes()  # many tokens in the time of few say nothing of one long answer

    def begin(self, end: ClientEnd, head: RequestHead, path: bytes, said: dict[str, str] | None) -> Relay | None:
        """A request's head has come; None if it was answered at once."""
        query = b""
        if b"?" in path:
            path, _, query = path.partition(b"?")
        desk, fields = self.desk, head.fields
        if (
            desk.is_stopping
            or (len(desk.pump.open) >= desk.crowd.crowded_at and desk.closed(fields) is not None)
            or head.method != b"POST"
            or fields.get(_ENCODING, _PLAIN) != _PLAIN
            or (head.content_length or 0) > self.most_body_bytes
        ):
            end.respond(*self._unread(head, path))
            return None
        if b"expect" in fields:
            try:
                self._wished(head, path, said)
            except BadInput as bad:  # before it is asked for its body (reliability HI-08)
                end.respond(*answers.bad_input(bad, shape_of(path, fields)))
                return None
            end.want_body()
        relay = Relay(self, end, head, path, said)
        if query:
            relay.query = without_credentials(query)
        return relay

    def _unread(self, head: RequestHead, path: bytes) -> answers.Reply:
        """Why a request is refused by its head."""
        shape, closed = shape_of(path, head.fields), self.desk.closed(head.fields)
        if closed is not None:
            return self.desk.refusal(closed, shape)
        if b"upgrade" in head.fields:
            return answers.refusal(Reason.CALLER_UPGRADE, shape=shape)
        if head.method != b"POST":
            return answers.refusal(Reason.CALLER_METHOD, "Model calls are POST requests.", shape=shape)
        if head.fields.get(_ENCODING, _PLAIN) != _PLAIN:
            return answers.refusal(Reason.CALLER_ENCODING, param="content-encoding", shape=shape)
        return answers.too_long(self.most_body_bytes, shape)

    def complete(self, relay: Relay) -> None:
        """The request is whole: begin its call, or answer why there is none."""
        head = relay.head
        try:
            parts, relay.parts = relay.parts, []
            relay.peeked = peeked = peek(parts[0] if len(parts) == 1 else b"".join(parts))
            wishes = head.notes.get(_WISHES) or self._wished(head, relay.path, relay.said)
            relay.wishes, relay.identity = wishes, wishes.identity
            rungs = self._ladders.by_model.get(peeked.model) or self._ladders.called(peeked.model)
            keeper = self.desk.keeper
            scope = None if keeper is None else keeper.scope(head.fields)
            is_doubtful = scope is None and keeper is not None and (keeper.required or _KEY in head.raw)
            if is_doubtful and self._is_lost(relay):
                return
            if rungs is None:
                relay.reply(self._unknown(peeked.model, scope, relay.shape))
                return
            if scope is not None:
                allowed = tuple(rung for rung in rungs if scope.allows(rung.target))
                if not allowed or not scope.allows_model(peeked.model):
                    call = self._call(relay, peeked, rungs, scope)
                    self.desk.decline(relay, call, Reason.POLICY_KEY_SCOPE, f"Key: {scope.id}.", "model")
                    return
                rungs = allowed
            scope = scope or NOBODY
            if scope.team and peeked.fields.keys() & NAMED:
                relay.peeked = peeked = self._apart(peeked, scope.team)
            ceiling = self.ceilings.get(wishes.identity.step.task_type)
            if ceiling is not None and peeked.prompt_tokens > ceiling.tokens and wishes.generates:
                self._shorten(relay, rungs, scope, ceiling)
                return
            self._begin(relay, rungs, scope)
        except BadInput as bad:
            relay.call = None
            relay.reply(answers.bad_input(bad, relay.shape))

    def _is_lost(self, relay: Relay) -> bool:
        """Whether a key that was good when its head came is so no longer; who showed it is told."""
        keeper = self.desk.keeper
        why = None if keeper is None else keeper.refuses(relay.head.fields)
        if why is not None:
            relay.reply(answers.refusal(why, shape=relay.shape))
        return why is not None

    def _apart(self, peeked: Peeked, team: str) -> Peeked:
        """The request with its names in the team's own space."""
        keeper = self.desk.keeper
        assert keeper is not None  # a team is known by its key only
        return apart(peeked, partial(keeper.alias, team))

    def _wished(self, head: RequestHead, path: bytes, said: dict[str, str] | None) -> Wishes:
        """What a head says of who calls and how; the same bytes say the same. Errors: `BadInput`."""
        head.notes[_WISHES] = wishes = _wishes(self._identity(head, said), head, path)
        return wishes

    def _identity(self, head: RequestHead, said: dict[str, str] | None) -> Identity:
        """The usual caller says nothing of itself, and need not."""
        fields = head.fields
        if REQUEST_ID in fields or b"traceparent" in fields:
            return self.desk.identity(fields, said)
        if said or self.desk.asked_for or b"x-swarmgate-" in head.raw.lower():
            return self.desk.identity(head.fields, said)
        return UNSAID

    def _begin(self, relay: Relay, rungs: tuple[Rung, ...], scope: Scope) -> None:
        """Begin the call of a request that is ready to be sent."""
        peeked = relay.peeked
        assert peeked is not None
        relay.call = call = self._call(relay, peeked, rungs, scope)
        if call.caps is not None and call.flat_micro and is_capped(call) and not self._reserve(relay, call, peeked):
            self.desk.decline(relay, call, Reason.POLICY_PRICE_UNKNOWN, f"Model: {call.model}.", "model")
        elif call.money and (lost := self.desk.exchanges.till.refuses(call)) is not None:
            self.desk.decline(relay, call, lost)
        elif call.effect is _WRITE:
            self.desk.arrive(relay, call, relay.head.fields, relay.path, peeked.body)
        else:
            self.desk.pump.arrive(call)

    def _begin_later(self, relay: Relay, rungs: tuple[Rung, ...], scope: Scope) -> None:
        """The same, some time after its key was looked at."""
        if self.desk.has_lost(scope):
            relay.reply(answers.refusal(Reason.CALLER_KEY_REFUSED, shape=relay.shape))
        else:
            self._begin(relay, rungs, scope)

    def _call(self, relay: Relay, peeked: Peeked, rungs: tuple[Rung, ...], scope: Scope) -> Call:
        desk, identity = self.desk, relay.identity
        wishes = relay.wishes or _wishes(identity, relay.head, relay.path)
        _, surface, effect, timeout_ms, longest_wait_ms, read_ms, generates = wishes
        now_ms = desk.exchanges.now_ms()
        call = desk.call(relay, rungs, identity, now_ms, scope)
        call.model = peeked.model[:MOST_MODEL]
        call.surface, call.effect = surface, effect
        call.deadline_ms = now_ms + timeout_ms
        call.wait_until_ms = now_ms + longest_wait_ms
        if read_ms is not None and (listens := listens_ms(read_ms, streams=peeked.stream)):
            call.listens_until_ms = now_ms + listens
        if peeked.stream and desk.streams is not None:
            desk.streams.admit(call)
        allowed, prompt = peeked.max_tokens or 0, peeked.prompt_tokens
        call.context_tokens = prompt + allowed
        call.streams, call.output = peeked.stream, allowed or USUAL_OUTPUT_TOKENS
        choices = peeked.choices if "prompt" in peeked.fields else peeked.answers
        is_one = choices == 1
        call.times = self._times if is_one else self._times_of_several
        call.form = len(rungs) > 1 and asks_for_form(peeked.fields)
        if generates:
            outputs = self._outputs if is_one else self._outputs_of_several
            relay.outputs = likely = outputs.of(peeked.model, identity.step.task_type)
            call.output = allowed or likely.longest
            call.asked_tokens = prompt
            call.choices = choices
            call.likely_tokens = choices * (allowed if 0 < allowed < likely.likely else likely.likely)
            charge = rungs[0].charge if len(rungs) == 1 else common_charge([rung.charge for rung in rungs])
            call.prompt, call.reserve = charged(charge, prompt, allowed, likely, choices)
            call.spared = max(0, prompt - call.prompt)
            if len(rungs) > 1:
                call.least_tokens = least_tokens(peeked, rungs[0])
        else:
            call.prompt = prompt
            if surface == EMBEDDINGS:
                call.asked_tokens = prompt
            else:
                call.flat_micro = 0  # nobody bills a count of tokens
        call.size = bisect_left(PROMPT_BOUNDS, call.asked_tokens)  # `prompt_size`, a call less per call
        if call.form:
            call.too_small = too_small(call, desk.served.cell_of)
        return call

    def _reserve(self, relay: Relay, call: Call, peeked: Peeked) -> bool:
        """Put on the call what its tokens will probably cost; False if that is not known."""
        output = 0 if relay.outputs is None else call.choices * relay.outputs.reserve(peeked.max_tokens or 0)
        return self.desk.exchanges.till.reserve(call, self.desk.targets, peeked.prompt_tokens, output)

    def _shorten(self, relay: Relay, rungs: tuple[Rung, ...], scope: Scope, ceiling: Ceiling) -> None:
        """Its prompt is beyond its ceiling: make it shorter, or say why it is not."""
        why = self._compressor.shorten(relay, rungs, scope, ceiling.tokens) if ceiling.compress else NOT_TRIED
        if why:
            assert relay.peeked is not None
            asked, task_type = relay.peeked.prompt_tokens, relay.identity.step.task_type
            said = f"Task type {task_type!r} reads at most {ceiling.tokens} tokens; this prompt has about {asked}."
            self._too_long(relay, rungs, scope, f"{said} {why}")

    def _too_long(self, relay: Relay, rungs: tuple[Rung, ...], scope: Scope, detail: str) -> None:
        assert relay.peeked is not None
        call = self._call(relay, relay.peeked, rungs, scope)
        self.desk.decline(relay, call, Reason.POLICY_CONTEXT_CEILING, detail, "messages")

    def _unknown(self, model: str, scope: Scope | None, shape: Shape) -> answers.Reply:
        names = [name for name in self._ladders.nearest(model) if may_say(self._ladders, scope, name)]
        return answers.refusal(Reason.CALLER_UNKNOWN_MODEL, answers.nearest_models(model, names), "model", shape)


def _wishes(identity: Identity, head: RequestHead, path: bytes) -> Wishes:
    kind = PATHS[path]
    read_ms = read_timeout_ms(head.fields)
    return Wishes(
        identity,
        _SURFACES[path],
        effect_of("POST", kind, asked=identity.effect),
        USUAL_TIMEOUT_MS if identity.timeout_ms is None else identity.timeout_ms,
        wait_ms(identity.wait_ms, identity.timeout_ms, read_ms),
        read_ms,
        kind == "generate",
    )
