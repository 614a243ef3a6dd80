"""
The connection to one target: a request out, its response in, told to whoever owns the exchange.

Here lives the order of one upstream connection: one exchange at a time, and the verdict whether another may follow. Any
doubt (leftover bytes, a close announced, a request not sent to its end) closes it: the next user must never read what
was meant for this one.
"""

from collections.abc import Sequence
from typing import Final

from swarmgate.http1.connection import FULL_READ_BYTES
from swarmgate.http1.faults import Fault
from swarmgate.http1.framing import READ, BadBody, BodyReader
from swarmgate.http1.owner import Home, Owner
from swarmgate.http1.response_reader import BrokenResponse, ResponseReader, keep_ms
from swarmgate.http1.sweep import NEVER, Sweep
from swarmgate.http1.upload import Uploading

READ_MS: Final = 30_000


class UpstreamEnd(Uploading):
    """
    One connection to a target.

    `send` begins an exchange, `abandon` ends it from our side, `release` gives the connection back unused. The owner may
    move `deadline_ms` between reads; `exchanges` counts the requests sent here, `first_byte_seen` is of the present one.
    `keep_ms` is how long the target keeps the connection, as it said last.
    """

    __slots__ = ("_body", "_home", "_owner", "_read_ms", "_response", "exchanges", "first_byte_seen", "keep_ms")

    def __init__(self, sweep: Sweep, home: Home) -> None:
        super().__init__(sweep)
        self._owner: Owner | None = None
        self._body: BodyReader | None = None  # of the present response; None until its head is here
        self._read_ms = READ_MS
        self._home = home
        self._response = ResponseReader()
        self.first_byte_seen, self.exchanges = False, 0
        self.keep_ms = NEVER

    def send(
        self,
        owner: Owner,
        method: bytes,
        data: bytes,
        *,
        complete: bool = True,
        read_ms: int = READ_MS,
        rest: Sequence[memoryview] = (),
    ) -> bool:
        """
        Begin an exchange with the request's first bytes: its head, and its body unless `complete` is false.

        What is too long for that is its `rest`, which must stay as it is until the exchange is over. `read_ms` limits each
        silence of the target. False when the connection is already closed: no byte has left, the owner hears nothing.
        """
        transport = self._transport
        if transport.is_closing():
            return False
        self._owner, self._request_sent, self._read_ms = owner, complete, read_ms
        self._response.begin(method)
        self._body, self.first_byte_seen = None, False
        self.exchanges += 1
        self.deadline_ms = self._sweep.now_ms + read_ms
        self._sweep.cork.write(transport, data)
        if rest:
            self._upload(rest)
        return True

    def send_more(self, data: bytes, *, complete: bool) -> None:
        """Further bytes of the request, already framed; `complete` with the last of them."""
        if self._owner is not None and not self._transport.is_closing():
            self._request_sent = complete
            self.deadline_ms = self._sweep.now_ms + self._read_ms
            if data:
                self._sweep.cork.write(self._transport, data)

    def open_tunnel(self, owner: Owner, *, read_ms: int = READ_MS) -> None:
        """No HTTP here: all bytes are payload in both directions (`on_chunk`, `send_more`) until the connection ends."""
        self._owner, self._read_ms = owner, read_ms
        self._response.begin_tunnel()
        self._body = self._response.body
        self.deadline_ms = self._sweep.now_ms + read_ms

    def abandon(self) -> None:
        """End the exchange: the owner hears nothing more, the connection is closed at once."""
        self._owner = None
        self._transport.abort()

    def release(self) -> None:
        """Give the connection back without an exchange."""
        self._home.on_free(self)

    def _limit(self) -> int:
        return self._sweep.now_ms + self._read_ms

    def data_received(self, data: bytes) -> None:
        """A read: head, payload, or bytes nobody asked for."""
        owner, body = self._owner, self._body
        if owner is None:
            self._transport.abort()
            return
        if len(data) >= FULL_READ_BYTES:
            self._rest()
        self.deadline_ms = self._sweep.now_ms + self._read_ms
        if body is None:
            self._read_head(owner, self._response, data)
            return
        try:
            payload = body.feed(data)
        except BadBody:
            self._lose(Fault.BAD_BODY)
            return
        if payload:
            owner.on_chunk(payload)
        if body.done and self._owner is owner:
            self._end(owner, self._response.ended_cleanly)

    def _read_head(self, owner: Owner, response: ResponseReader, data: bytes) -> None:
        self.first_byte_seen = True
        mine: object = owner  # `is owner` would be believed afterwards, and so compiled, whoever took it since
        try:
            rest = response.feed_head(data)
        except BrokenResponse as broken:
            self._lose(broken.fault)
            return
        head = response.head
        if head is None:
            return
        self._body = response.body
        self.keep_ms = keep_ms(head) if b"keep-alive" in head.fields else NEVER
        owner.on_head(head)
        if self._owner is not mine:
            return
        if response.body is READ:
            if rest:
                owner.on_chunk(rest)
            if self._owner is mine:
                self._end(owner, head.keep_alive)
        elif rest or response.body.done:
            self.data_received(rest)

    def _end(self, owner: Owner, is_clean: bool) -> None:
        """Back to the pool first, so that whoever on_end wakes finds the connection there; a full one would not tell that again."""
        self._owner = None
        if self._paused:
            self.resume()
        self.deadline_ms = NEVER
        if is_clean and self._request_sent and not (self._is_full or self._transport.is_closing()):
            self._home.on_free(self)
        else:
            self._transport.close()
        owner.on_end()

    def _lose(self, fault: Fault) -> None:
        owner, self._owner = self._owner, None
        self._transport.abort()
        if owner is not None:
            owner.on_lost(fault, self.first_byte_seen)

    def eof_received(self) -> None:
        """The target said its last byte: the proper end of a body until close, else the loss of the exchange."""
        self._close_exchange(whole=self._response.body.eof())

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is no more; a reset ends no body properly."""
        super().connection_lost(exc)
        self._close_exchange(whole=exc is None and self._response.body.eof())
        self._home.on_closed(self)

    def _close_exchange(self, *, whole: bool) -> None:
        owner = self._owner
        if owner is None:
            return
        if self._response.wants_head:
            self._lose(Fault.CLOSED_EARLY)
        elif whole:
            self._transport.close()
            self._end(owner, is_clean=False)
        else:
            self._lose(Fault.TRUNCATED)

    def pause_writing(self) -> None:
        """The request's body goes out faster than the target takes it."""
        super().pause_writing()
        if self._owner is not None:
            self._owner.on_upload_pause()

    def resume_writing(self) -> None:
        """The target caught up."""
        super().resume_writing()
        if self._owner is not None:
            self._owner.on_upload_resume()

    def on_deadline(self) -> None:
        """The target was silent for too long."""
        self._lose(Fault.TIMEOUT)
