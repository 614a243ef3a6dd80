"""
How one client connection is answered.

Here lives the outgoing half of client_end.py: which head, which framing (chunks to HTTP/1.1, until close to HTTP/1.0),
what has no body, and what a client may not take for whole. After the client has gone, everything here does nothing.
"""

import contextlib
import socket
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from mypy_extensions import mypyc_attr

from swarmgate.http1.cork import LONG_BYTES, MOST_HELD
from swarmgate.http1.framing import NO_BODY_STATUS, no_body, until_close
from swarmgate.http1.goodbye import Leaving
from swarmgate.http1.handler import Handler
from swarmgate.http1.head import Header, RequestHead
from swarmgate.http1.render import CONTINUE, LAST_CHUNK, SHORT_BYTES, SIZE_LINES, response_head
from swarmgate.http1.sweep import NEVER, Sweep

if TYPE_CHECKING:
    from swarmgate.http1.client_end import ClientEnd

Fields = Sequence[Header]
# How payload goes out.
SILENT: Final = 0
SIZED: Final = 1
UNTIL_CLOSE: Final = 2
CHUNKED: Final = 3
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER 0: close with RST


@mypyc_attr(allow_interpreted_subclasses=True)
class Answering(Leaving):
    """
    Answers the call in flight: `respond`, or `start_stream`, `write_chunk`*, `finish` or `cut`.

    `head` is that call's or None; `call` belongs to the handler, which may keep its record there.
    """

    __slots__ = (
        "_begun",
        "_body",
        "_handler",
        "_keep",
        "_left",
        "_out",
        "call",
        "head",
    )

    def __init__(self, handler: Handler, sweep: Sweep) -> None:
        super().__init__(sweep)
        self._handler = handler
        self._body = no_body()
        self._keep = True  # after this answer, too
        self._begun, self._out, self._left = False, SILENT, 0  # left: bytes of the promised length still to be written
        self.head: RequestHead | None = None
        self.call: Any = None

    def respond(self, status: int, headers: Fields, body: bytes = b"", ready: bytes = b"") -> None:
        """The whole answer at once, `ready` as of render.response_head; a HEAD request, 204 and 304 get no body."""
        head = self.head
        if head is None:
            return
        if (
            status == 200
            and not headers
            and head.keep_alive
            and self._open
            and self._body.done
            and head.method == b"POST"
            and not self._begun
        ):  # the common answer: what is below comes to the same
            raw = b"HTTP/1.1 200 OK\r\n%bcontent-length: %d\r\n\r\n%b" % (ready, len(body), body)
            self._keep = True
        else:
            raw = self._answer_head(status, headers, len(body), ready)
            if self._out != SILENT:
                raw += body
        self._sweep.cork.write(self._transport, raw)
        self._done()

    def start_stream(self, status: int, headers: Fields, length: int | None = None, ready: bytes = b"") -> None:
        """The head of an answer whose body follows: exactly `length` bytes, else chunks (to HTTP/1.0 until close)."""
        if self.head is not None:
            self._sweep.cork.write(self._transport, self._answer_head(status, headers, length, ready))

    def write_chunk(self, payload: bytes) -> None:
        """Payload of the body: one chunk on the wire per call."""
        if self._out == CHUNKED:
            if payload:  # render.frame and Cork.write, here without their calls
                cork = self._sweep.cork
                size = len(payload)
                line = SIZE_LINES[size] if size < SHORT_BYTES else b"%x\r\n" % size
                cork.held.append((self._transport, b"%b%b\r\n" % (line, payload)))
                if size >= LONG_BYTES or len(cork.held) >= MOST_HELD:
                    cork.flush()
                elif len(cork.held) == 1:
                    cork.call_soon(cork.flush)
        elif self._out != SILENT:
            self._left -= len(payload)
            self._sweep.cork.write(self._transport, payload)

    def finish(self) -> None:
        """The body is complete; the next request may begin, unless another length was promised than written."""
        if self.head is None:
            return
        if self._out == SIZED and self._left:
            self.cut()
            return
        if self._out == CHUNKED:
            self._sweep.cork.write(self._transport, LAST_CHUNK)
        self._done()

    def cut(self) -> None:
        """End an answer that cannot be completed so that the client cannot take it for whole; the call is over."""
        if self.head is None:
            return
        self.head = self.call = None
        self._begun = False
        self._sweep.cork.flush()
        if self._out == UNTIL_CLOSE:  # missing bytes or a missing last chunk speak for themselves
            self._abort()
        else:
            self._close()
        self._out = SILENT

    def _abort(self) -> None:
        """End at once; by a reset where a clean end would let a part of an answer pass for the whole."""
        if self._out == UNTIL_CLOSE or self._transport.get_write_buffer_size():
            with contextlib.suppress(OSError):  # closed already
                self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()
        self.deadline_ms = NEVER

    def want_body(self) -> None:
        """Tell a client that asked (`Expect: 100-continue`) to send its body; others do so unasked."""
        if self.head is not None and self.head.expect_continue and not self._begun and not self._body.done:
            self._sweep.cork.write(self._transport, CONTINUE)

    def pause_writing(self) -> None:
        """The client reads too slowly; it has a limit for that."""
        self._begin_pace()
        if self.head is not None:
            self._handler.on_pause(cast("ClientEnd", self))

    def resume_writing(self) -> None:
        """The client caught up."""
        was_full, self._is_full = self._is_full, False
        if self._open:
            self.deadline_ms = self._limit()
        elif was_full:
            self.deadline_ms = self._limit_to_leave()
        if self.head is not None:
            self._handler.on_resume(cast("ClientEnd", self))
        else:
            self._go_on()

    def _give_up(self) -> None:
        """Cut a reader that stalls, or a goodbye that takes too long; one that is only slow is looked at again."""
        if self._is_full and not self._has_stalled():
            self.deadline_ms = self._next_look_ms()
        else:
            self._abort()

    def _start_tunnel(self, answer: bytes) -> None:
        self._begun, self._out, self._body = True, UNTIL_CLOSE, until_close()
        self._sweep.cork.write(self._transport, answer)

    def _answer_head(self, status: int, headers: Fields, length: int | None, ready: bytes) -> bytes:
        head = self.head
        if head is None or self._begun:
            raise RuntimeError("a call is answered once")
        bare = status in NO_BODY_STATUS
        chunked = length is None and not bare and head.version == b"HTTP/1.1"
        keep = self._open and head.keep_alive and self._body.done and (chunked or bare or length is not None)
        keep = keep and head.method != b"CONNECT"  # what follows was meant for a tunnel, and is no request to us
        length = None if bare else length
        raw = response_head(status, headers, length=length, chunked=chunked, close=not keep, ready=ready)
        self._begun, self._keep, self._left = True, keep, length or 0
        if bare or head.method == b"HEAD":
            self._out = SILENT
        else:
            self._out = CHUNKED if chunked else UNTIL_CLOSE if length is None else SIZED
        return raw

    def _done(self) -> None:
        raise NotImplementedError

    def _go_on(self) -> None:
        raise NotImplementedError
