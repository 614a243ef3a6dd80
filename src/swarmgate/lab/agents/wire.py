"""
One request of an agent on a connection of its own, and what came back.

Built on the gate's own http1/, since an SDK costs 75 us a chunk and one core has to carry thousands of agents. Nothing is
decided here: whoever asked is told once, with an answer or with why there is none.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from swarmgate.http1.faults import Fault
from swarmgate.http1.head import ResponseHead
from swarmgate.http1.owner import Owner
from swarmgate.http1.upstream_end import UpstreamEnd
from swarmgate.http1.upstreams import Origin, Upstreams

READ_MS = 600_000  # agents are patient; the call's own deadline ends it
KEPT_BYTES = 16 * 1024
_EVENTS = b"text/event-stream"
_ENDS = (b"data: [DONE]", b'"type":"message_stop"')
_MOST_TAIL = 1_024
# As the stand-ins of chats write it.
_CONTENT = re.compile(rb'"delta":\{"content":"([0-9a-f]+)"\}')
_CODE = re.compile(rb'"code": ?"([^"]{1,60})"')


class Answer(NamedTuple):
    """
    What came back: `status` 0 = nothing whole.

    `body` is the beginning of what is no stream, `tail` the end of what is; `first_ms` the first byte's instant. `is_whole`
    says of a stream that it ended as streams end, with no error inside. `said` is the text of a stream that was kept.
    """

    status: int
    fields: dict[bytes, bytes]
    body: bytes
    tail: bytes
    first_ms: int
    is_whole: bool
    fault: str = ""
    said: str = ""

    @property
    def why(self) -> str:
        """Why it is no success: what happened to the connection, or the code of the error."""
        found = _CODE.search(self.body)
        return self.fault or (found[1].decode("ascii", "replace") if found else "")


NO_FIELDS: dict[bytes, bytes] = {}


class Send(Owner):
    """One send: the pool's waiter and the exchange's owner."""

    __slots__ = (
        "_body",
        "_data",
        "_done",
        "_end",
        "_head",
        "_kept",
        "_method",
        "_origin",
        "_size",
        "_upstreams",
        "first_ms",
    )

    def __init__(
        self,
        upstreams: Upstreams,
        origin: Origin,
        method: bytes,
        data: bytes,
        done: Callable[[Answer], None],
        *,
        keeps: bool = False,
    ) -> None:
        self._upstreams = upstreams
        self._origin = origin
        self._method = method
        self._data = data
        self._done: Callable[[Answer], None] | None = done
        self._end: UpstreamEnd | None = None
        self._head: ResponseHead | None = None
        self._body = b""
        self._size = 0
        self._kept: list[bytes] | None = [] if keeps else None  # all of a stream
        self.first_ms = 0
        upstreams.connect(origin, self)

    def drop(self) -> None:
        """Nobody waits for it any more."""
        self._done = None
        if self._end is not None:
            self._end.abandon()
        else:
            self._upstreams.withdraw(self._origin, self)

    @property
    def rank(self) -> int:
        """All agents' calls are alike on their way out; what differs is the gate's business."""
        return 0

    def on_connection(self, end: UpstreamEnd) -> None:
        """Send it; a connection that has just closed is no fault of anybody."""
        if self._done is None:
            end.release()
            return
        self._end = end
        if not end.send(self, self._method, self._data, read_ms=READ_MS):
            self._end = None
            self._upstreams.connect(self._origin, self)

    def on_no_connection(self, fault: Fault) -> None:
        """There is none."""
        self._tell(Answer(0, NO_FIELDS, b"", b"", 0, is_whole=False, fault=fault.code))

    def on_head(self, head: ResponseHead) -> None:
        """The answer begins."""
        self._head = head
        self.first_ms = int(self._upstreams.loop.time() * 1_000)

    def on_chunk(self, payload: bytes) -> None:
        """Of a stream the end is kept, of everything else the beginning."""
        head = self._head
        if head is not None and head.fields.get(b"content-type", b"").startswith(_EVENTS):
            self._body = payload if len(payload) >= _MOST_TAIL else (self._body + payload)[-_MOST_TAIL:]
            if self._kept is not None:
                self._kept.append(payload)
        elif len(self._body) < KEPT_BYTES:
            self._body += payload
        self._size += len(payload)

    def on_end(self) -> None:
        """The answer is complete."""
        head, self._end = self._head, None
        assert head is not None
        if head.fields.get(b"content-type", b"").startswith(_EVENTS):
            whole = any(mark in self._body for mark in _ENDS)
            said = b"".join(_CONTENT.findall(b"".join(self._kept or ()))).decode()
            self._tell(Answer(head.status, head.fields, b"", self._body, self.first_ms, whole, said=said))
        else:
            self._tell(Answer(head.status, head.fields, self._body, b"", self.first_ms, is_whole=True))

    def on_lost(self, fault: Fault, _first_byte_seen: bool) -> None:
        """There will be no whole answer."""
        self._end = None
        fields = NO_FIELDS if self._head is None else self._head.fields
        self._tell(Answer(0, fields, b"", self._body, self.first_ms, is_whole=False, fault=fault.code))

    def on_upload_pause(self) -> None:
        """The request was given whole."""

    def on_upload_resume(self) -> None:
        """Nothing to start."""

    def _tell(self, answer: Answer) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(answer)
