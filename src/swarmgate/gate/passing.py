"""
Everything else below `/v1/`: files, audio, images, batches, whatever a provider adds. Bodies are not read, requests are metered.

Nothing in such a request names a model, so it goes to the first target whose own form is the caller's, else to the first that
speaks it too, and to no other: a file that was uploaded there is known there only. For the same reason all that is about what
the provider keeps goes with the keys of that target's first account. What the path may mean must be one thing for us and for the target.
"""

from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import unquote

from swarmgate.core.commands import Answer
from swarmgate.core.effect import Effect, effect_of
from swarmgate.core.errors import BadInput
from swarmgate.core.ladders import Ladders
from swarmgate.core.outcome import Ejects, Kind, Outcome, Verdict
from swarmgate.core.patience import USUAL_TIMEOUT_MS, listens_ms, wait_ms
from swarmgate.core.pinned_ring import pinned
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call, Rung
from swarmgate.core.scope import ANY, NOBODY, Scope
from swarmgate.core.target_errors import BadTarget
from swarmgate.core.url_path import path_to_judge, path_to_send
from swarmgate.gate import answers
from swarmgate.gate.answers import Reply
from swarmgate.gate.dead_letters import Asked
from swarmgate.gate.desk import Desk
from swarmgate.gate.egress.fetch import Fetch
from swarmgate.gate.identity import Identity, read_timeout_ms
from swarmgate.gate.model_route import PATHS
from swarmgate.gate.served import shown_headers
from swarmgate.gate.shapes import ANTHROPIC, Shape, shape_of
from swarmgate.gate.streaming import Streaming
from swarmgate.gate.target import ModelTarget, without_credentials
from swarmgate.gate.transport import OK, OURS
from swarmgate.http1.client_end import ClientEnd
from swarmgate.http1.head import Header, RequestHead, ResponseHead
from swarmgate.providers.dialect import CHAT, MESSAGES, Dialect
from swarmgate.providers.errors import outcome_of, read_error_body

PREFIX: Final = b"/v1/"
WHOLE_MS: Final = 600_000  # until an answer begins: pictures and transcripts take minutes; it is the SDKs' own limit
_LAYERS: Final = 3  # of escapes within escapes that a chain of servers may take off
# POST requests that are answered and forgotten: https://platform.openai.com/docs/api-reference, https://docs.mistral.ai/api
_AT_ONCE: Final = (
    "/v1/audio/",
    "/v1/images/",
    "/v1/moderations",
    "/v1/rerank",
    "/v1/ocr",
    "/v1/fim/",
    "/v1/responses/input_tokens",
)
_READ: Final = frozenset(path.decode() for path in PATHS)


class Errand(NamedTuple):
    """What a request is about; `path` is the target's, with its query."""

    target: ModelTarget
    rung: Rung
    identity: Identity
    path: bytes
    scope: Scope


class PassRoutes:
    """The surface for paths below `/v1/` that no other surface knows."""

    def __init__(self, desk: Desk, ladders: Ladders) -> None:
        self.desk = desk
        self._ladders = ladders

    def begin(self, end: ClientEnd, head: RequestHead, path: bytes, said: dict[str, str] | None) -> "Passing | None":
        """A request begins; None if it was answered at once."""
        shape = shape_of(path, head.fields)
        try:
            found = self._errand(head, path, said, shape)
            if not isinstance(found, Reply):
                passing = Passing(self.desk, end, head, found)
                forbidden = self._forbidden(head.method, found)
                if forbidden is None:
                    passing.begin_early(found.identity.step)
                else:
                    passing.decline(*forbidden)
                return passing if end.head is head else None
        except BadInput as bad:
            found = answers.bad_input(bad, shape)
        end.respond(*found)
        return None

    def _errand(self, head: RequestHead, path: bytes, said: dict[str, str] | None, shape: Shape) -> Errand | Reply:
        closed = self.desk.closed(head.fields)
        if closed is not None:
            return self.desk.refusal(closed, shape)
        if b"upgrade" in head.fields:
            return answers.refusal(Reason.CALLER_UPGRADE, shape=shape)
        identity, scope = self.desk.identity(head.fields, said), self.desk.scope(head.fields) or NOBODY
        rung = self._rung(MESSAGES if shape is ANTHROPIC else CHAT)
        if rung is None:
            return answers.refusal(Reason.POLICY_OTHER_DIALECT, shape=shape)
        path = _path(path)
        if _is_kept(head.method, path):
            rung = pinned(rung)  # other accounts do not know it
        return Errand(self.desk.targets[rung.target], rung, identity, path, scope)

    def _forbidden(self, method: bytes, errand: Errand) -> tuple[Reason, str] | None:
        """Why policy lets a request not go; None if it does."""
        scope, target, keeper = errand.scope, errand.rung.target, self.desk.keeper
        if not scope.allows(target):
            return Reason.POLICY_KEY_SCOPE, f"Key: {scope.id}."
        if scope.models != ANY:
            detail = "it may ask for certain models only, and nobody reads what this asks for."
            return Reason.POLICY_KEY_SCOPE, f"Key: {scope.id}; {detail}"
        if keeper is not None and _is_kept(method, errand.path) and keeper.is_shared(scope.team, target):
            detail = "give each team a target of its own (swarmgate keys create --targets)."
            return Reason.POLICY_SHARED_ACCOUNT, f"Target: {target}; {detail}"
        return None

    def _rung(self, path: str) -> Rung | None:
        """Of the targets that have the path of the caller's SDK the first whose provider has it as its own; else the first."""
        targets = self.desk.targets
        rungs = [rung for rung in self._ladders.rungs if rung.serves is None or path in rung.serves]
        rungs.sort(key=lambda rung: targets[rung.target].dialect.paths[0] != path)
        return rungs[0]._replace(model="") if rungs else None


class _Fetch(Fetch):
    """An attempt whose errors are read as those of model calls; what is said of a refused key is not shown."""

    __slots__ = ("dialect",)

    dialect: Dialect

    def _outcome(self) -> Outcome:
        head = self.head
        assert head is not None
        if head.status < 400:
            return OK
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers]
        found = outcome_of(self.dialect, head.status, headers, read_error_body(self.body), self._exchanges.unix_s())
        # An agent chose the path, and some want an administrator's key: no agent may take the gate's keys away so.
        return (
            found._replace(verdict=Verdict.FAILED, ejects=Ejects.NOTHING) if found.kind is Kind.KEY_REFUSED else found
        )


class Passing(Streaming):
    """One request that is passed on unread, and its answer."""

    __slots__ = ("desk", "errand")

    def __init__(self, desk: Desk, end: ClientEnd, head: RequestHead, errand: Errand) -> None:
        super().__init__(desk.exchanges, end, head)
        self.desk = desk
        self.errand = errand

    @property
    def shape(self) -> Shape:
        """The form in which its caller reads errors."""
        return shape_of(self._head.target, self._head.fields)

    @property
    def asked(self) -> tuple[bytes, ...]:
        """What the request asks for: method, path, and the body as far as it is here."""
        return (self._head.method, self.errand.path, b"".join(self._held))

    def request(self) -> Asked:
        """The request as it came in (dead_letters.Writer)."""
        body = None if self.streams else b"".join(self._held)
        return Asked(self._head.method, self._head.target, self._head.headers, body)

    def decline(self, reason: Reason, detail: str) -> None:
        """Refuse it; what policy forbids is a call, and has an end."""
        identity, scope = self.errand.identity, self.errand.scope
        call = self.desk.call(self, (self.errand.rung,), identity, self.desk.exchanges.now_ms(), scope)
        self.desk.decline(self, call, reason, detail)

    def begin_call(self) -> None:
        """Begin the call; it takes a request of each limit, and no tokens."""
        identity, desk, fields = self.errand.identity, self.desk, self._head.fields
        if desk.has_lost(self.errand.scope):
            self.reply(answers.refusal(Reason.CALLER_KEY_REFUSED, shape=self.shape))
            return
        now_ms = desk.exchanges.now_ms()
        try:
            self.call = call = desk.call(self, (self.errand.rung,), identity, now_ms, self.errand.scope)
            call.effect = effect_of(self._head.method.decode(), "", asked=identity.effect)
            if self.streams:
                call.effect = Effect.WRITE  # it can be sent only once
            call.content_ms = WHOLE_MS
            call.deadline_ms = now_ms + (USUAL_TIMEOUT_MS if identity.timeout_ms is None else identity.timeout_ms)
            read_ms = read_timeout_ms(fields)
            call.wait_until_ms = now_ms + wait_ms(identity.wait_ms, identity.timeout_ms, read_ms)
            if listens := listens_ms(read_ms, streams=False):
                call.listens_until_ms = now_ms + listens
            path, dialect = self.errand.path.partition(b"?")[0].decode(), self.errand.target.dialect
            if not desk.exchanges.till.reserve_unread(call, dialect, self._head.method.decode(), path):
                desk.decline(self, call, Reason.POLICY_PRICE_UNKNOWN, _unpriced(self.errand))
                return
            if (lost := desk.exchanges.till.refuses(call)) is not None:
                desk.decline(self, call, lost)
                return
            desk.arrive(self, call, fields, *self.asked)
        except BadInput as bad:
            self.reply(answers.bad_input(bad, self.shape))

    def attempt(self, call: Call) -> Fetch:
        """The next attempt."""
        exchanges, origin = self.desk.exchanges, self.errand.target.origin
        fetch = _Fetch(exchanges, exchanges.upstreams, call, origin, self, self._head.method)
        fetch.dialect = self.errand.target.dialect
        return fetch

    def opening_head(self, length: int | None, *, chunked: bool) -> bytes:
        """The head as the target sees it, with the key that was granted."""
        assert self.call is not None
        assert self.call.route is not None
        return self.errand.target.passing_head(
            self.call.route.key, self.errand.path, self._head, length, chunked=chunked
        )

    def hear(self, head: ResponseHead) -> None:
        """Nothing: limits of models are learned where models are called."""

    def answer_headers(self, call: Call, head: ResponseHead) -> list[Header]:
        """The target's headers that a caller may see, and how the call was served."""
        headers = self.errand.target.hide_all(shown_headers(head)) + self.desk.served.of(call)
        return [*headers, answers.theirs(head.status)] if head.status >= 400 else headers

    def _relay(self, call: Call, fetch: Fetch, head: ResponseHead) -> None:
        if call.reason in OURS and call.end is not None:
            self.end.respond(*answers.ended(call, call.end, call.reason, self.shape))
        else:
            super()._relay(call, fetch, head)

    def writer(self) -> Callable[[bytes], None]:
        """Good answers are searched too: a keyed write's is kept on file."""
        end, hide = self.end, self.errand.target.hide
        return lambda data: end.write_chunk(hide(data))

    def shown(self, error: bytes) -> bytes:
        """What the target said, without its key."""
        return self.errand.target.hide(error)

    def told(self, call: Call, answer: Answer) -> Reply:
        """What is said of a call that has no answer of its target."""
        return self.desk.told(call, answer, self._head, self.shape)


def _unpriced(errand: Errand) -> str:
    path = errand.path.partition(b"?")[0].decode()
    name = f"{errand.rung.target}{path}"
    return f'Nobody reads {path}, so its price is that of [prices."{name}"], which has no per_request.'


def _is_kept(method: bytes, path: bytes) -> bool:
    """Whether a request is about what the provider keeps for the account: files, batches, threads, answers, whatever is not known."""
    meant = _meant(path_to_judge(path.partition(b"?")[0].decode()))
    return method != b"POST" or not meant.startswith(_AT_ONCE) or "/../" in meant


def _path(target: bytes) -> bytes:
    """The path and query to send, without credentials. Errors: `BadInput` for what may leave `/v1/` at the target."""
    path, mark, query = target.decode("ascii").partition("?")
    try:
        sent = path_to_send(path)
        judged = path_to_judge(sent)
    except BadTarget as bad:
        raise BadInput("path", bad.args[0]) from None
    if not judged.startswith(PREFIX.decode()):
        raise BadInput("path", "leaves /v1/ by its dot segments")
    meant = _meant(judged)
    if meant in _READ:
        raise BadInput("path", f"is another spelling of {meant}, which is read and metered; write it so")
    seen = without_credentials(query.encode())
    return sent.encode() + (mark.encode() if seen else b"") + seen


def _meant(judged: str) -> str:
    """What a lenient server may take a path for: without parameters, case, and further layers of escapes."""
    for _ in range(_LAYERS):
        judged = unquote(judged)
    segments = [segment.partition(";")[0] for segment in judged.lower().replace("\\", "/").split("/")]
    return "/" + "/".join(segment for segment in segments if segment not in {"", "."})
