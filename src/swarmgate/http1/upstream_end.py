"""
The connection to one target: a request out, its response in, told to whoever owns the exchange.

Here lives the order of one upstream connection: one exchange at a time, 1xx skipped, the body read to its end, and the
verdict whether the connection may serve another. Any doubt (leftover bytes, a close announced, a request not sent to its
end) closes it: the next user must never read what was meant for this one.
"""

import asyncio
from typing import cast

from swarmgate.http1.faults import Fault
from swarmgate.http1.framing import BadBody, BodyReader, response_body
from swarmgate.http1.head import ResponseHead, parse_response
from swarmgate.http1.head_buffer import RESPONSE_FIRST, HeadBuffer
from swarmgate.http1.owner import Home, Owner
from swarmgate.http1.refusals import BadHead
from swarmgate.http1.sweep import NEVER, Sweep

MAX_INTERIM = 16
READ_MS = 30_000


class UpstreamEnd(asyncio.Protocol):
    """
    One connection to a target.

    `send` begins an exchange, `abandon` ends it from our side, `release` gives the connection back unused.
    `deadline_ms` may be set by the owner between reads.
    """

    __slots__ = (
        "_body",
        "_heads",
        "_home",
        "_interim",
        "_method",
        "_owner",
        "_paused",
        "_read_ms",
        "_request_sent",
        "_sweep",
        "_transport",
        "deadline_ms",
        "exchanges",
        "first_byte_seen",
        "head",
    )

    _transport: asyncio.Transport

    def __init__(self, sweep: Sweep, home: Home) -> None:
        self._sweep = sweep
        self._home = home
        self._owner: Owner | None = None
        self._heads = HeadBuffer(RESPONSE_FIRST)
        self._body = BodyReader.empty()
        self._method = b""
        self._interim = 0
        self._read_ms = READ_MS
        self._request_sent = True
        self._paused = False
        self.head: ResponseHead | None = None
        self.first_byte_seen = False
        self.exchanges = 0
        self.deadline_ms = NEVER

    def send(self, owner: Owner, method: bytes, data: bytes, *, complete: bool = True, read_ms: int = READ_MS) -> bool:
        """
        Begin an exchange with the request's first bytes (its head, and its body unless `complete` is false).

        False when the connection is already closed: no byte has left, the owner hears nothing. `read_ms` limits each
        silence of the target.
        """
        if self._transport.is_closing():
            return False
        self._owner, self._method, self._request_sent, self._read_ms = owner, method, complete, read_ms
        self.head, self.first_byte_seen, self._interim = None, False, 0
        self.exchanges += 1
        self.deadline_ms = self._sweep.now_ms + read_ms
        self._transport.write(data)
        return True

    def send_more(self, data: bytes, *, complete: bool) -> None:
        """Further bytes of the request, already framed; `complete` with its last."""
        if self._owner is not None and not self._transport.is_closing():
            self._request_sent = complete
            self.deadline_ms = self._sweep.now_ms + self._read_ms
            if data:
                self._transport.write(data)

    def abandon(self) -> None:
        """End the exchange: the owner hears nothing more, the connection is closed at once."""
        self._owner = None
        self._transport.abort()

    def release(self) -> None:
        """Give the connection back without an exchange."""
        self._home.on_free(self)

    @property
    def is_closing(self) -> bool:
        """Whether its end has been seen or begun."""
        return self._transport.is_closing()

    def pause(self) -> None:
        """Stop reading the response: its reader is slower. Our own slowness is not the target's silence."""
        self.deadline_ms = NEVER
        self._paused = True
        self._transport.pause_reading()

    def resume(self) -> None:
        """Go on reading."""
        self._paused = False
        self.deadline_ms = self._sweep.now_ms + self._read_ms
        self._transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected, TLS included."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass
        self._transport.set_write_buffer_limits(high=64 * 1024)
        self._sweep.watch(self)

    def data_received(self, data: bytes) -> None:
        """A read: head, payload, or bytes nobody asked for."""
        owner = self._owner
        if owner is None:
            self._transport.abort()
            return
        self.deadline_ms = self._sweep.now_ms + self._read_ms
        if self.head is None:
            self._read_head(owner, data)
            return
        try:
            payload = self._body.feed(data)
        except BadBody:
            self._lose(Fault.BAD_BODY)
            return
        if payload:
            owner.on_chunk(payload)
        if self._body.done and self._owner is owner:
            self._end(owner)

    def _read_head(self, owner: Owner, data: bytes) -> None:
        self.first_byte_seen = True
        while True:
            try:
                found = self._heads.feed(data)
                if found is None:
                    return
                head = parse_response(found[0])
            except BadHead:
                self._lose(Fault.BAD_HEAD)
                return
            data = found[1]
            if head.status >= 200:
                break
            self._interim += 1
            if head.status == 101 or self._interim > MAX_INTERIM:
                self._lose(Fault.UNASKED_UPGRADE if head.status == 101 else Fault.TOO_MANY_INTERIM)
                return
        self.head = head
        self._body = response_body(head, self._method)
        owner.on_head(head)
        if self._owner is owner and (data or self._body.done):
            self.data_received(data)

    def _end(self, owner: Owner) -> None:
        """Back to the pool first, so that whoever on_end wakes finds the connection there."""
        self._owner = None
        if self._paused:
            self.resume()
        if self.reusable:
            self.deadline_ms = NEVER
            self._home.on_free(self)
        else:
            self._transport.close()
        owner.on_end()

    @property
    def reusable(self) -> bool:
        """Whether another exchange may follow the one that just ended."""
        head, body = self.head, self._body
        kept = head is not None and head.keep_alive and body.done and not body.leftover
        return kept and self._request_sent and not self._transport.is_closing()

    def _lose(self, fault: Fault) -> None:
        owner, self._owner = self._owner, None
        self._transport.abort()
        if owner is not None:
            owner.on_lost(fault, self.first_byte_seen)

    def eof_received(self) -> None:
        """The target said its last byte: the end of a body until close, else of the exchange."""
        self._closed()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is no more; a reset ends no body properly."""
        self._sweep.forget(self)
        self._closed(proper=exc is None)
        self._home.on_closed(self)

    def _closed(self, *, proper: bool = True) -> None:
        owner = self._owner
        if owner is None:
            return
        if self.head is None:
            self._lose(Fault.CLOSED_EARLY)
        elif proper and self._body.eof():
            self._body.done = True
            self._transport.close()
            self._end(owner)
        else:
            self._lose(Fault.TRUNCATED)

    def pause_writing(self) -> None:
        """The request's body goes out faster than the target takes it."""
        if self._owner is not None:
            self._owner.on_upload_pause()

    def resume_writing(self) -> None:
        """The target caught up."""
        if self._owner is not None:
            self._owner.on_upload_resume()

    def on_deadline(self) -> None:
        """The target was silent for too long."""
        self._lose(Fault.TIMEOUT)
