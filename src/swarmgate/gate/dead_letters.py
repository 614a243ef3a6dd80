"""
What the gate does with a call that it gives up: its request goes on the shelf, in a thread, before its caller is told.

A request whose body was not held, because it streamed, is put there without it; so is one beyond a megabyte.
"""

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, runtime_checkable

from swarmgate.core.commands import Answer
from swarmgate.core.record import Call
from swarmgate.http1.head import Header
from swarmgate.stores.letters.letter import MOST_BODY_BYTES, REPLAY_OF, Letter, kept_headers, kept_path
from swarmgate.stores.letters.shelf import Shelf

_REPLAY_OF: Final = REPLAY_OF.encode()


class Asked(NamedTuple):
    """A request as it came in; `body` None = it is not held any more."""

    method: bytes
    path: bytes
    headers: list[Header]
    body: bytes | memoryview | None


@runtime_checkable
class Writer(Protocol):
    """A caller whose request can be sent again."""

    def request(self) -> Asked:
        """What it asked for."""
        ...


class DeadLetters:
    """Puts given-up requests on a shelf; `lost` counts those that could not be kept, `trouble` says why."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, shelf: Shelf, now_ms: Callable[[], int], *, bodies: bool
    ) -> None:
        self._loop = loop
        self._shelf = shelf
        self._now_ms = now_ms
        self._bodies = bodies
        self._open: set[asyncio.Future[None]] = set()
        self.lost = 0
        self.trouble = ""

    def put(self, call: Call, answer: Answer, caller: object) -> None:
        """Keep the request of a call that is over."""
        if isinstance(caller, Writer):
            asked = caller.request()
            letter = self._letter(call, answer, asked)
            replay_of = dict(asked.headers).get(_REPLAY_OF, b"").decode("latin-1")
            done = self._loop.run_in_executor(None, self._shelf.put, letter, letter.at_ms, replay_of)
            self._open.add(done)
            done.add_done_callback(self._kept)

    def _kept(self, done: asyncio.Future[None]) -> None:
        self._open.discard(done)
        error = None if done.cancelled() else done.exception()
        if error is not None:
            self.lost += 1
            self.trouble = f"a dead letter cannot be kept: {error}"

    def _letter(self, call: Call, answer: Answer, asked: Asked) -> Letter:
        body, why, reason = asked.body, "", answer.reason or call.reason
        if not self._bodies:
            body, why = None, "the configuration says not to keep bodies"
        elif body is None:
            why = "it streamed and was not held"
        elif len(body) > MOST_BODY_BYTES:
            body, why = None, f"it is longer than {MOST_BODY_BYTES} bytes"
        rung = call.rungs[call.rung]
        return Letter(
            call.id,
            self._now_ms(),
            reason.value if reason is not None else "",
            rung.target,
            rung.model or call.model,
            call.attempt,
            {**call.step._asdict(), "priority": f"P{call.rank}"},
            asked.method.decode("latin-1"),
            kept_path(asked.path),
            kept_headers(asked.headers),
            None if body is None else bytes(body),
            why,
        )
