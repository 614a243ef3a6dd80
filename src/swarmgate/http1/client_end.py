"""
The connection to one agent: bytes in, a handler called; answers out.

Here lives the order of one client connection: one call in flight, pipelined bytes wait unparsed, the connection is kept
or closed. Framing and heads are read elsewhere (head.py, request_body.py). The end of the client's stream while its call is
open means it left (design 3), also when it only half-closed.
"""

import asyncio
from typing import Final

from mypy_extensions import mypyc_attr

from swarmgate.http1.answer import SILENT, UNTIL_CLOSE, Fields
from swarmgate.http1.client_limits import BODY_MS, HEAD_MS, KEEP_ALIVE_MS, Limited
from swarmgate.http1.connection import FULL_READ_BYTES
from swarmgate.http1.framing import READ, BadBody
from swarmgate.http1.handler import Handler
from swarmgate.http1.head import RequestHead
from swarmgate.http1.refusals import BadHead
from swarmgate.http1.render import TUNNEL_OPEN, header_lines
from swarmgate.http1.request_body import request_body
from swarmgate.http1.sweep import NEVER, Sweep

MAX_WAITING_BYTES: Final = 64 * 1024
MOST_A_TURN: Final = 16  # requests of one client that are answered before others are heard: a read may hold thousands


@mypyc_attr(allow_interpreted_subclasses=True)
class ClientEnd(Limited):
    """One client connection: made per accepted socket, with the handler it calls and the sweep that watches it."""

    __slots__ = ("_waiting", "is_early")

    def __init__(self, handler: Handler, sweep: Sweep) -> None:
        super().__init__(handler, sweep)
        self._waiting = bytearray()  # pipelined, unparsed
        self.is_early = False  # early: bytes came with the present head, behind it

    def open_tunnel(self, idle_ms: int, headers: Fields = ()) -> None:
        """Answer CONNECT: from now on all bytes are payload, both ways, until `finish`, `cut` or the client's end."""
        self._start_tunnel(TUNNEL_OPEN + header_lines(headers) + b"\r\n")
        self._body_ms, self._least_bytes = idle_ms, 0
        self.deadline_ms = self._limit()
        early = bytes(self._waiting)
        self._waiting.clear()
        self.resume()
        if early:
            self._hold(early)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accepted; the first request has as long to begin as any other."""
        super().connection_made(transport)
        self.deadline_ms = self._limit()

    def data_received(self, data: bytes) -> None:
        """A read: the next head, this call's body, or bytes that must wait."""
        if len(data) >= FULL_READ_BYTES:
            self._rest()
        head = self.head
        if head is not None and not self._body.done:
            self._hear_body(len(data))
            data = self._take_body(head, data)
        if not data or not self._open:
            return
        if self.head is None and not self._waiting and not self._is_full:
            self._serve(data)
        else:
            self._hold(data)

    def _serve(self, data: bytes) -> None:
        """Begin calls from `data` until one is in flight, or it is enough for this turn; what follows waits."""
        end = self  # a name for what may have changed: of `self.head` a type checker believes what was put there
        for _ in range(MOST_A_TURN):
            try:
                found = self._heads.next(data)
            except BadHead as bad:
                self._refuse(bad)
                return
            if found is None:
                self.deadline_ms = min(self.deadline_ms, self._sweep.now_ms + HEAD_MS)
                return
            head, data = found
            self.head = head
            length = head.content_length
            if length and length <= len(data):  # the common read: a whole request
                self._body, self.deadline_ms = READ, NEVER
                body, data = data[:length], data[length:]
                self._handler.on_whole(self, head, body)
            else:
                data = self._begin(head, data)
            if not data or not self._open:
                return
            if end.head is head or self._is_full:
                self._hold(data)
                return
        self._hold(data)
        self._sweep.cork.call_soon(self._go_on)

    def _go_on(self) -> None:
        """Serve what waits, unless a call is in flight or the client does not read its answers."""
        if self._waiting and self.head is None and self._open and not self._is_full:
            self.resume()
            data = bytes(self._waiting)
            self._waiting.clear()
            self._serve(data)

    def _begin(self, head: RequestHead, data: bytes) -> bytes:
        self._body, self.is_early, self._came_bytes = request_body(head), bool(data), 0
        self.deadline_ms = NEVER if self._body.done else self._sweep.now_ms + BODY_MS
        self._handler.on_request(self, head)
        if not self._body.done:
            return self._take_body(head, data) if data and self.head is head else b""
        if self.head is head:
            self._handler.on_body_end(self)
        return data

    def _take_body(self, head: RequestHead, data: bytes) -> bytes:
        """Give the handler what is body of `data`; the rest comes back."""
        try:
            payload = self._body.feed(data)
        except BadBody as bad:
            self._break(BadHead(400, bad.reason, bad.sentence, bad.field))
            return b""
        if payload:
            self._handler.on_body(self, payload)
        if not self._body.done:
            return b""
        if self.head is head:
            self.deadline_ms = self._limit()
            self._handler.on_body_end(self)
        return self._body.leftover

    def _hold(self, data: bytes) -> None:
        if self.head is not None and not self._body.done:  # a tunnel was opened meanwhile
            self._take_body(self.head, data)
            return
        self._waiting += data
        if len(self._waiting) >= MAX_WAITING_BYTES:
            self.pause()

    def eof_received(self) -> None:
        """The client said its last byte: an open call is cancelled, the connection closed."""
        self._sweep.cork.flush()
        if self._out == UNTIL_CLOSE and self.head is not None and self.head.method != b"CONNECT":
            self._abort()  # else who only half-closed would read a clean end
        self._leave()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is no more; an open call is cancelled."""
        super().connection_lost(exc)
        self._leave()

    def _done(self) -> None:
        self.head = self.call = None
        self._begun, self._out = False, SILENT
        if not self._body.done:
            self._linger()
        elif not self._keep:
            self._close()
        else:
            if not self._is_full:  # else who does not read its answer has its limit already
                self.deadline_ms = self._sweep.now_ms + KEEP_ALIVE_MS
            if self._paused:
                self.resume()
            if self._waiting:
                self._go_on()

    def _leave(self) -> None:
        self._open = False
        self._out = SILENT
        if self.head is not None:
            self.head = None
            self._handler.on_gone(self)
            self.call = None

    def _refuse(self, bad: BadHead) -> None:
        """Answer what is not read, once and for all."""
        if bad.head is None:
            bad.head = self._heads.begun()
        self._send_refusal(bad, self._handler.on_refused(self, bad))

    def _break(self, bad: BadHead) -> None:
        """The call's own request is broken: it is gone; tell the client unless its answer has begun."""
        begun, bad.head = self._begun, self.head
        if begun:
            self._abort()
        self._leave()
        if not begun:
            self._refuse(bad)
