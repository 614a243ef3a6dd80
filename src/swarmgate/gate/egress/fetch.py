"""
One attempt at a host: a request out, its body streamed if it is long, the answer straight through.

An answer below 400 is shown from its head on. An error is held, up to 64 KiB, until its meaning is known, so that the
core may still wait, or try again; a longer one is shown like any answer. Both directions have back-pressure.
"""

from collections.abc import Callable
from typing import Final, Protocol

from swarmgate.core.events import CONTENT, Ended, Progress
from swarmgate.core.outcome import Outcome
from swarmgate.core.record import Call
from swarmgate.gate.egress.signals import outcome_of
from swarmgate.gate.exchange import Exchanges
from swarmgate.gate.wire import SILENCE_MS, HostWire
from swarmgate.http1.head import ResponseHead
from swarmgate.http1.upstreams import Origin, Upstreams
from swarmgate.ports import AttemptFacts

MOST_HELD_BYTES: Final = 64 * 1024
# of an answer that does not say its length: a file that large says it
MOST_UNTOLD_BYTES: Final = 16 * 1024**3


class Source(Protocol):
    """Where a request comes from: whoever stands at the caller's connection; `size` is of its body so far."""

    @property
    def size(self) -> int:
        """Bytes."""

    def opening(self) -> tuple[bytes, bool]:
        """The request's first bytes, and whether they are all of it."""

    def sent_opening(self, fetch: "Fetch") -> None:
        """They left; what follows goes to `fetch.upload`, unless they were all."""

    def hear(self, head: ResponseHead) -> None:
        """What an answer's headers say of limits."""

    def stop_upload(self) -> None:
        """The host takes no more for now."""

    def go_on_with_upload(self) -> None:
        """It does again."""


class Fetch(HostWire):
    """One send of a call, from the wish for a connection to the last byte (exchange.Exchange)."""

    __slots__ = (
        "_more",
        "_moved",
        "_refusals",
        "_seen",
        "_source",
        "_write",
        "held",
        "held_bytes",
        "method",
        "shown_ms",
        "whole",
    )

    def __init__(
        self, exchanges: Exchanges, upstreams: Upstreams, call: Call, origin: Origin, source: Source, method: bytes
    ) -> None:
        super().__init__(exchanges, upstreams, call, origin)
        self._source = source
        self._write: Callable[[bytes], None] | None = None
        # Bytes of the request beyond what was charged at admission; of them and the answer, what was charged since.
        self._more = self._seen = 0
        self._moved = 0  # bytes either way at the last report
        self._refusals: frozenset[int] = frozenset()
        self.method = method
        self.held: list[bytes] = []
        self.held_bytes = 0
        self.whole = False
        self.shown_ms = 0

    def taking(self, refusals: frozenset[int]) -> "Fetch":
        """With the statuses that mean "too fast" at this host."""
        self._refusals = refusals
        return self

    def send(self) -> bool:
        """Write the request, or its beginning; False if the connection was closed meanwhile."""
        data, complete = self._source.opening()
        end, read_ms = self.end, self.call.content_ms + SILENCE_MS
        if end is None or not end.send(self, self.method, data, complete=complete, read_ms=read_ms):
            self.end = None
            return False
        self.sent = True
        self.sent_bytes, self._more = len(data), max(0, self._source.size - self.call.prompt)
        self.progress_ms = self._exchanges.now_ms()
        if not complete:
            self._exchanges.live.add(self)
        self._source.sent_opening(self)
        return True

    def upload(self, data: bytes, *, complete: bool) -> None:
        """Further bytes of the request, already framed."""
        if self.end is not None:
            self.sent_bytes += len(data)
            self._more += len(data)
            self.end.send_more(data, complete=complete)

    def on_head(self, head: ResponseHead) -> None:
        """Shown at once, unless it is an error."""
        self.head = head
        self._source.hear(head)
        if head.status < 400:
            self._exchanges.fire(self.call, CONTENT)

    def on_chunk(self, payload: bytes) -> None:
        """Straight through once the caller may see it, held before."""
        self.got_bytes += len(payload)
        if self._write is not None:
            self._write(payload)
            return
        self.held.append(payload)
        self.held_bytes += len(payload)
        if self.held_bytes > MOST_HELD_BYTES:
            self._exchanges.fire(self.call, CONTENT)

    def on_end(self) -> None:
        """The answer is whole: say what it means."""
        self.whole = True
        self.end = None
        self._exchanges.live.discard(self)
        self._exchanges.fire(self.call, Ended(self._outcome(), self.got_bytes + self._more - self._seen))

    def on_upload_pause(self) -> None:
        """The host reads more slowly than the caller writes."""
        self._source.stop_upload()

    def on_upload_resume(self) -> None:
        """It caught up."""
        self._source.go_on_with_upload()

    @property
    def body(self) -> bytes:
        """What is held of the answer's body."""
        return b"".join(self.held)

    def go_through(self, write: Callable[[bytes], None]) -> None:
        """From now on payloads go to `write`, beginning with what is held."""
        for payload in self.held:
            write(payload)
        self.held = [self.body[:MOST_HELD_BYTES]] if self.held else []
        self.progress_ms = self.shown_ms = self._exchanges.now_ms()
        self._exchanges.live.add(self)
        self._write = write

    def report(self, now_ms: int, *, last: bool) -> None:  # noqa: ARG002  bytes are counted exactly all the time
        """Tell the core what flowed, either way; silence that is our own doing counts as flow."""
        moved = self.got_bytes + self.sent_bytes
        if moved != self._moved or self.paused:
            self.progress_ms, self._moved = now_ms, moved
            # It is charged once there is an answer.
            flowed = self.got_bytes + self._more - self._seen if self.call.committed else 0
            self._seen += flowed
            self._exchanges.fire(self.call, Progress(flowed))

    def is_endless(self) -> bool:
        """Whether an answer that does not say its length went on beyond any bound."""
        return self.got_bytes > MOST_UNTOLD_BYTES and self.head is not None and self.head.content_length is None

    def facts(self) -> AttemptFacts:
        """What is known of the attempt by now (ports.Told)."""
        status = 0 if self.head is None else self.head.status
        return AttemptFacts(status, -1, -1, -1, self.shown_ms, self.sent_bytes, self.got_bytes)

    def _outcome(self) -> Outcome:
        assert self.head is not None
        return outcome_of(self.head, self.body, self._refusals, self._exchanges.unix_s())
