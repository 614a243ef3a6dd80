"""
Prompts beyond a ceiling, made shorter by a summary: a call of its own with its own admission, deadline and cost.

What may go is decided in core/context.py. The child carries no task type, so it is never compressed itself. A summary is
kept by what it stands for: an agent that sends the whole story with each turn pays for it once in many.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from swarmgate.core.context import KEPT_TURNS, SUMMARY_TOKENS, Cut, choose, cuts
from swarmgate.core.errors import BadInput
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Rung
from swarmgate.core.scope import Scope
from swarmgate.gate import answers
from swarmgate.gate.answers import Reply
from swarmgate.gate.peek import peek
from swarmgate.gate.relay import Relay
from swarmgate.gate.turns import (
    MOST_TURNS,
    Conversation,
    dropped,
    read_conversation,
    request_for,
    shortened,
    summary_in,
)
from swarmgate.http1.head import Header, parse_request

REMEMBERED: Final = 1_024  # summaries
MOST_SUMMARY_BYTES: Final = 1_048_576  # a longer answer is none
NOT_TRIED: Final = 'Make it shorter, or have it compressed (over = "compress" in the task type).'
_VERSION: Final = b"anthropic-version"
_UNREAD: Final = f"Compressing was tried: this is no conversation of at most {MOST_TURNS} messages, and only older messages give way."
_KEPT: Final = f"system and signed messages, the last {KEPT_TURNS} and tools stay"

Begin = Callable[[Relay, tuple[Rung, ...], Scope], None]
Refuse = Callable[[Relay, tuple[Rung, ...], Scope, str], None]


class Ceiling(NamedTuple):
    """The longest prompt of a task type, and what becomes of a longer one."""

    tokens: int
    compress: bool = False


class Compressor:
    """Makes prompts shorter; `begin` starts the call of a relay whose request is ready, `refuse` ends it with a word."""

    def __init__(self, begin: Begin, refuse: Refuse) -> None:
        self._begin = begin
        self._refuse = refuse
        self._summaries: OrderedDict[bytes, str] = OrderedDict()

    def shorten(self, relay: Relay, rungs: tuple[Rung, ...], scope: Scope, ceiling_tokens: int) -> str:
        """Begin the call with a shorter prompt, now or when its summary is there; else why no summary can help."""
        peeked = relay.peeked
        assert peeked is not None
        conversation = read_conversation(peeked, relay.path)
        if conversation is None:
            return _UNREAD
        whose = (scope.team, peeked.model)  # nobody gets what another team's model wrote (reliability TI-03)
        found = cuts(conversation.turns, conversation.beside_tokens)
        cut = choose(found, ceiling_tokens, lambda one: _key(conversation, one, whose) in self._summaries)
        if cut is None:
            return _why_not(found)
        key = _key(conversation, cut, whose)
        if key in self._summaries:
            self._summaries.move_to_end(key)
            relay.peeked = shortened(peeked, conversation, cut, self._summaries[key])
            self._begin(relay, rungs, scope)
        else:
            self._ask(relay, rungs, scope, (conversation, cut, key))
        return ""

    def _ask(
        self, relay: Relay, rungs: tuple[Rung, ...], scope: Scope, needed: tuple[Conversation, Cut, bytes]
    ) -> None:
        conversation, cut, key = needed
        peeked, identity = relay.peeked, relay.identity
        assert peeked is not None

        def heard(reply: Reply) -> None:
            relay.call = None
            if reply.status != 200:
                relay.reply(reply)
                return
            summary = summary_in(reply.body)
            if not summary:
                self._refuse(relay, rungs, scope, "Compressing was tried: the model gave no summary.")
                return
            self._keep(key, summary)
            relay.peeked = shortened(peeked, conversation, cut, summary)
            try:
                self._begin(relay, rungs, scope)
            except BadInput as bad:
                relay.call = None
                relay.reply(answers.bad_input(bad, relay.shape))

        ear = Ear(heard)
        version = relay.head.fields.get(_VERSION)
        fields = b"anthropic-version: %b\r\n" % version if version else b""
        raw = b"POST %b HTTP/1.1\r\nhost: gate\r\ncontent-type: application/json\r\n%b\r\n" % (relay.path, fields)
        child = Relay(relay.counter, ear, parse_request(raw), relay.path, None)
        child.peeked = peek(request_for(peeked, relay.path, dropped(conversation, cut), SUMMARY_TOKENS))
        child.identity = identity._replace(step=identity.step._replace(task_type=""), ticket="", effect="")
        self._begin(child, rungs, scope)
        if not ear.heard:
            relay.call = child.call  # who leaves now leaves the child

    def _keep(self, key: bytes, summary: str) -> None:
        self._summaries[key] = summary
        if len(self._summaries) > REMEMBERED:
            self._summaries.popitem(last=False)


class Ear:
    """What stands in the place of a client's connection for a child call (CallerEnd): it hears the whole answer, once."""

    call: object = None
    is_full = False

    def __init__(self, tell: Callable[[Reply], None]) -> None:
        self._tell = tell
        self._status = 0
        self._body: list[bytes] = []
        self._size = 0
        self.heard = False

    def respond(self, status: int, headers: Sequence[Header], body: bytes = b"", ready: bytes = b"") -> None:  # noqa: ARG002  they say nothing
        """The whole answer."""
        self.heard = True
        self._tell(Reply(status, [answers.JSON, answers.STAY], body))

    def start_stream(
        self,
        status: int,
        headers: Sequence[Header],  # noqa: ARG002  see respond
        length: int | None = None,  # noqa: ARG002  see respond
        ready: bytes = b"",  # noqa: ARG002  see respond
    ) -> None:
        """An answer begins that is longer than it was asked to be."""
        self._status = status

    def write_chunk(self, payload: bytes) -> None:
        """A part of it, as long as it may be a summary."""
        self._size += len(payload)
        if self._size <= MOST_SUMMARY_BYTES:
            self._body.append(payload)
        else:
            self._body.clear()

    def finish(self) -> None:
        """It is whole."""
        self.respond(self._status, (), b"".join(self._body))

    def cut(self) -> None:
        """It broke off."""
        self.respond(502, (), answers.refusal(Reason.TARGET_CUT).body)

    def want_body(self) -> None:
        """Its request is whole from the start."""

    def pause(self) -> None:
        """See want_body."""

    def resume(self) -> None:
        """See want_body."""


def _why_not(found: Sequence[Cut]) -> str:
    """Why none of these cuts helps."""
    if not found:
        return f"Compressing was tried: no message may give way ({_KEPT})."
    return f"Compressing was tried: with a summary of all that may give way it still has about {found[-1].tokens} ({_KEPT})."


def _key(conversation: Conversation, cut: Cut, whose: tuple[str, str]) -> bytes:
    return sha256(repr(whose).encode() + b"\0" + dropped(conversation, cut)).digest()
