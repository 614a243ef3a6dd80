"""
A response as it comes: heads until the final one, then its body.

Here lives the order of what a target sends for one request, without sockets: interim responses (1xx) are skipped, but
not without end; one that switches protocols was never asked for, because Upgrade is not passed on.
"""

import re
from typing import Final

from swarmgate.http1.faults import Fault
from swarmgate.http1.framing import CHUNKED, NO_BODY_STATUS, READ, BodyReader, by_length, no_body, until_close
from swarmgate.http1.head import ResponseHead
from swarmgate.http1.head_memo import ResponseHeads
from swarmgate.http1.refusals import BadHead
from swarmgate.http1.sweep import NEVER

MAX_INTERIM: Final = 16
_TIMEOUT: Final = re.compile(rb"(?i)\btimeout=([0-9]{1,6})")


class BrokenResponse(ValueError):
    """What came is no response to the request: `fault` says why, `field` and `reason` for the log."""

    def __init__(self, fault: Fault, field: str = "head", detail: str = "") -> None:
        super().__init__(f"{field}: {fault.sentence}{detail and ': '}{detail}")
        self.fault, self.field, self.reason = fault, field, fault.code


class ResponseReader:
    """Reads one response after another: `begin(method)`, `feed_head` until `head` is there, then `body.feed`."""

    __slots__ = ("_heads", "_interim", "_method", "body", "head", "wants_head")

    def __init__(self) -> None:
        self._heads = ResponseHeads()
        self._method = b""
        self._interim = 0
        self.head: ResponseHead | None = None
        self.wants_head = False
        self.body = no_body()

    def begin(self, method: bytes) -> None:
        """A request with this method was sent; HEAD has no body whatever the response's fields say."""
        self._method, self._interim, self.head, self.wants_head = method, 0, None, True

    def begin_tunnel(self) -> None:
        """No head will come: every byte is payload."""
        self.head, self.wants_head, self.body = None, False, until_close()

    def feed_head(self, data: bytes) -> bytes:
        """
        Bytes of heads: the rest that belongs to the body once `head` is there, else nothing.

        Raises BrokenResponse.
        """
        try:
            found = self._heads.next(data)
        except BadHead as bad:
            raise BrokenResponse(Fault.BAD_HEAD, bad.field, bad.sentence) from None
        if found is None:
            return b""
        head, rest = found
        status = head.status
        if status < 200:
            return self._pass_over(status, rest)
        self.head, self.wants_head = head, False
        if head.content_length == len(rest) and self._method != b"HEAD" and status not in NO_BODY_STATUS:
            self.body = READ  # the common read: a whole response
        else:
            self.body = response_body(head, self._method)
        return rest

    def _pass_over(self, status: int, rest: bytes) -> bytes:
        """An interim response, and what followed it."""
        self._interim += 1
        if status == 101:
            raise BrokenResponse(Fault.UNASKED_UPGRADE)
        if self._interim > MAX_INTERIM:
            raise BrokenResponse(Fault.TOO_MANY_INTERIM)
        return self.feed_head(rest)

    @property
    def ended_cleanly(self) -> bool:
        """Whether the connection may be used again: whole, nothing behind it, no close announced."""
        return self.head is not None and self.head.keep_alive and self.body.done and not self.body.leftover


def keep_ms(head: ResponseHead) -> int:
    """How long the target keeps the connection, by its `Keep-Alive: timeout=`, a second off for the way."""
    hint = _TIMEOUT.search(head.fields.get(b"keep-alive", b""))
    return NEVER if hint is None else max(0, int(hint[1]) - 1) * 1000


def response_body(head: ResponseHead, method: bytes) -> BodyReader:
    """The reader for a response's body; HEAD, 204 and 304 have none whatever their fields say (RFC 9112 6.3)."""
    length = head.content_length
    if method == b"HEAD" or head.status in NO_BODY_STATUS or length == 0:
        return no_body()
    if head.chunked:
        return BodyReader(CHUNKED)
    return until_close() if length is None else by_length(length)
