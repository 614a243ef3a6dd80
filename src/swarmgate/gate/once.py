"""
Keyed writes: asked for before they go, and finished even if their caller leaves.

A write that carries `Idempotency-Key`, or names agent, task and operation, goes only after the control process has it on file
(design 3: Two processes; closed if no answer comes). While it runs its caller may go away: the answer is waited for and kept,
so that a repeat gets it instead of a second effect. Such writes are rare; this is the one place on the data path with tasks.
"""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple, Protocol

from swarmgate.core.commands import Answer, End
from swarmgate.core.errors import BadInput
from swarmgate.core.events import OwnAnswer
from swarmgate.core.idempotency import HEADER, IdempotencyKey, from_header, from_operation
from swarmgate.core.once import MOST_ANSWER_BYTES, Ruling, Standing, standing_after
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call, Step
from swarmgate.gate.answers import Reply, refusal
from swarmgate.gate.shapes import Shape
from swarmgate.http1.handler import CallerEnd
from swarmgate.http1.head import Header

_HEADER: Final = HEADER.encode()
_CONFLICT_S: Final = b"2"
MOST_LATE: Final = 256  # ends that wait for the control process to come back; each may carry an answer
_AGAIN_S: Final = 0.5  # from one try to the next, at first ...
_MOST_AGAIN_S: Final = 15.0  # ... and at most; not one pair: mypyc 2.4 takes a final one of floats for unset
Ask = Callable[
    ..., Awaitable[Any]
]  # (order, **said): what the control process answers; raises ConnectionError, BadInput


class Writer(Protocol):
    """The caller's side of a keyed write: what its surface keeps in `end.call`."""

    end: CallerEnd
    call: Call | None

    @property
    def shape(self) -> Shape:
        """The form in which it reads errors."""
        ...

    def reply(self, reply: Reply) -> None:
        """Answer with something of ours."""
        ...


def key_of(fields: Mapping[bytes, bytes], step: Step, tenant: str) -> IdempotencyKey | None:
    """The key that a write carries; None = it has none. Errors: `BadInput` for one that cannot be used."""
    said = fields.get(_HEADER)
    if said is not None:
        return from_header(tenant, said.decode("latin-1"))
    if step.operation:
        return from_operation(tenant, step.agent, step.task, step.operation)
    return None


def payload_of(*parts: bytes | memoryview) -> str:
    """What a write asks for, as a hash: the same key must always bring the same (IETF draft 2.7)."""
    told = blake2b(digest_size=16)
    for part in parts:
        told.update(len(part).to_bytes(8, "big"))
        told.update(part)
    return told.hexdigest()


class Ways(NamedTuple):
    """What may become of a keyed write: it goes, or the gate answers it."""

    go: Callable[[Call], None]
    answer: Callable[[Writer, Call, OwnAnswer, Reply], None]


class Once:
    """The keyed writes of one gate; `open` has those that are on file as in flight, by call."""

    def __init__(self, loop: asyncio.AbstractEventLoop, run: str, ask: Ask, *, answers: bool = True) -> None:
        self._loop = loop
        self._run = run
        self._ask = ask
        self._answers = answers  # whether they may be kept
        self.open: dict[Call, tuple[str, Kept]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._late = 0  # ends that are told again
        self.untold = 0  # ends beyond those: on file their writes stay in flight, until the next run calls them unknown

    def begin(self, writer: Writer, call: Call, key: str, payload: str, ways: Ways) -> None:
        """Ask, then let it go, or answer why not."""
        outliving = Outliving(writer.end.call)
        writer.end.call = outliving  # from now on the write does not end with its caller
        self._later(self._begin(writer, call, (key, payload), ways), f"write {call.id}")

    async def _begin(self, writer: Writer, call: Call, named: tuple[str, str], ways: Ways) -> None:
        key, payload = named
        try:
            told = await self._ask("write_begin", key=key, payload=payload, call=call.id, run=self._run)
        except (ConnectionError, BadInput) as error:
            reply = refusal(Reason.GATE_RECORDS_LOST, shape=writer.shape, call=call.id)
            ways.answer(writer, call, OwnAnswer(End.REFUSED, Reason.GATE_RECORDS_LOST), reply)
            if isinstance(error, ConnectionError):  # it may be on file all the same, and its answer was lost or late
                await self._end({"key": key, "call": call.id, "standing": Standing.FREE.value})
            return
        if told["ruling"] == Ruling.PROCEED:
            writer.end = kept = Kept(writer.end)
            self.open[call] = (key, kept)
            ways.go(call)
        else:
            ways.answer(writer, call, *_told(told, call.id, writer.shape))

    def ended(self, call: Call, answer: Answer, *, is_theirs: bool) -> None:
        """The call is over: put on file what its write came to; `is_theirs` = what was answered is the target's own."""
        key, kept = self.open.pop(call)
        lost = call.answer_lost or kept.is_cut
        status = kept.status if is_theirs else 0
        standing = standing_after(answer.end, answer.reason, status, left=call.attempt > 0, lost=lost)
        said: dict[str, Any] = {"key": key, "call": call.id, "standing": standing.value}
        if standing is Standing.DONE:
            body = kept.body() if self._answers else None
            said |= {"status": kept.status, "content_type": kept.content_type}
            said["body"] = None if body is None else b64encode(body).decode()
        self._later(self._end(said), f"end of write {call.id}")

    async def finish(self, within_s: float) -> None:
        """No call is open any more: tell what is left to be told, as far as there is time."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=within_s)
            self.untold += len(late)
            for task in late:
                task.cancel()

    async def _end(self, said: dict[str, Any]) -> None:
        """Tell it until it is on file: a repeat must not be told for days that a write is in flight which is over."""
        if await self._is_told(said):
            return
        if self._late >= MOST_LATE:
            self.untold += 1
            return
        wait_s = _AGAIN_S
        self._late += 1
        try:
            is_told = False
            while not is_told:
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, _MOST_AGAIN_S)
                is_told = await self._is_told(said)
        finally:
            self._late -= 1

    async def _is_told(self, said: dict[str, Any]) -> bool:
        try:
            await self._ask("write_end", **said)
        except (ConnectionError, BadInput):
            return False
        return True

    def _later(self, work: Any, name: str) -> None:
        task = self._loop.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _told(told: Mapping[str, Any], call: str, shape: Shape) -> tuple[OwnAnswer, Reply]:
    """How a write ends that does not go, and its answer."""
    match Ruling(told["ruling"]):
        case Ruling.CONFLICT:
            reason, detail, field = Reason.CALLER_WRITE_IN_FLIGHT, f"Its call is {told['call']}.", None
        case Ruling.MISMATCH:
            reason, detail, field = Reason.CALLER_WRITE_MISMATCH, f"The first call is {told['call']}.", HEADER
        case Ruling.REPLAY if told["body"] is not None:
            return OwnAnswer(End.ANSWERED, Reason.CALLER_WRITE_DONE), _again(told)
        case Ruling.REPLAY:
            reason, field = Reason.CALLER_WRITE_DONE, None
            detail = f"It was done by {told['call']} with status {told['status']}; its answer was not kept."
        case _:
            reason, detail, field = Reason.TARGET_UNKNOWN_EFFECT, f"The write is {told['call']}.", None
    reply = refusal(reason, detail, field, shape, call)
    if reason is Reason.CALLER_WRITE_IN_FLIGHT:
        reply.headers.append((b"retry-after", _CONFLICT_S))
    return OwnAnswer(End.REFUSED, reason), reply


def _again(told: Mapping[str, Any]) -> Reply:
    """The answer that the write was given when it was done, under the name of the call that did it."""
    headers = [(b"content-type", told["content_type"].encode())] if told["content_type"] else []
    headers += [(b"x-request-id", told["call"].encode()), (b"x-swarmgate-replayed", b"true")]
    return Reply(told["status"], headers, b64decode(told["body"]))


class Outliving:
    """Stands before a keyed write's listener: its caller may leave, and it goes on."""

    def __init__(self, listener: Any) -> None:
        self._listener = listener

    def on_gone(self) -> None:
        """The answer is kept for when it asks again, and read on: what was not read before its caller left goes nowhere."""
        self._listener.on_resume()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._listener, name)


class Kept:
    """The client's end of a keyed write: what is answered goes out, and its beginning is kept."""

    def __init__(self, end: CallerEnd) -> None:
        self._end = end
        self.status = 0
        self.content_type = ""
        self._parts: list[bytes] = []
        self._size = 0
        self.is_cut = False

    @property
    def call(self) -> Any:
        """What its handler keeps there."""
        return self._end.call

    @call.setter
    def call(self, kept: Any) -> None:
        self._end.call = kept

    @property
    def is_full(self) -> bool:
        """Whether it reads too slowly."""
        return self._end.is_full

    def want_body(self) -> None:
        """The request's body may come."""
        self._end.want_body()

    def pause(self) -> None:
        """Read no more of it for now."""
        self._end.pause()

    def resume(self) -> None:
        """Go on reading it."""
        self._end.resume()

    def respond(self, status: int, headers: Sequence[Header], body: bytes = b"", ready: bytes = b"") -> None:
        """The whole answer."""
        self._note(status, headers)
        self._keep(body)
        self._end.respond(status, headers, body, ready)

    def start_stream(
        self, status: int, headers: Sequence[Header], length: int | None = None, ready: bytes = b""
    ) -> None:
        """The head of an answer."""
        self._note(status, headers)
        self._end.start_stream(status, headers, length, ready)

    def write_chunk(self, payload: bytes) -> None:
        """A part of it."""
        self._keep(payload)
        self._end.write_chunk(payload)

    def finish(self) -> None:
        """It is complete."""
        self._end.finish()

    def cut(self) -> None:
        """It cannot be completed."""
        self.is_cut = True
        self._end.cut()

    def body(self) -> bytes | None:
        """What was answered; None if it is too long to be kept."""
        return b"".join(self._parts) if self._size <= MOST_ANSWER_BYTES else None

    def _note(self, status: int, headers: Sequence[Header]) -> None:
        self.status = status
        self.content_type = next((value.decode("latin-1") for name, value in headers if name == b"content-type"), "")

    def _keep(self, payload: bytes) -> None:
        self._size += len(payload)
        if self._size <= MOST_ANSWER_BYTES:
            self._parts.append(payload)
        else:
            self._parts.clear()
