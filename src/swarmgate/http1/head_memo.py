"""
The heads of one connection: collected until they are whole, and read; the last one is the key to the next.

With every request of a kept connection a client sends the same lines; what differs is the length of the body. Such a
head needs no second judgement: it consists of bytes that passed, around digits where digits had passed. It is the same
object, too: one call is in flight per connection, and nobody reads a length but in `content_length`. A response's head
that comes again byte by byte is the same object as well.
"""

from typing import Final

from swarmgate.http1.head import RequestHead, ResponseHead, parse_request, parse_response
from swarmgate.http1.head_buffer import REQUEST_FIRST, RESPONSE_FIRST, HeadBuffer

LONGEST_KEPT: Final = 4 * 1024
_NAME: Final = b"\r\ncontent-length:"
_FIELD: Final = b"content-length"
_MOST_DIGITS: Final = 18


class RequestHeads(HeadBuffer):
    """Reads the heads of one connection: `next` does what `feed` and `parse_request` do, and less where it can."""

    __slots__ = ("_after", "_before", "_last")

    _last: RequestHead

    def __init__(self) -> None:
        super().__init__(REQUEST_FIRST)
        self._before = self._after = b""

    def next(self, data: bytes) -> tuple[RequestHead, bytes] | None:
        """
        (the head that became whole, the bytes after it), or None while its blank line is still to come.

        A head that differs from the one before in nothing but the body's length is that one, with this `content_length`;
        its lines stay as they came first. Raises BadHead.
        """
        before = self._before
        if before and not self._held and data.startswith(before):
            start, after = len(before), self._after
            end = data.find(b"\r", start, start + _MOST_DIGITS + 1)
            digits = data[start:end]  # where no CR is, `after` cannot follow
            if digits.isdigit() and data.startswith(after, end):
                head = self._last
                head.content_length = int(digits)
                return head, data[end + len(after) :]
        found = self.feed(data)
        if found is None:
            return None
        head = parse_request(found[0])
        self._learn(head)
        return head, found[1]

    def begun(self) -> RequestHead | None:
        """The lines so far of a head that will not become whole, not judged; None if not even the first one came."""
        end = self._held.rfind(b"\r\n")
        return RequestHead(bytes(self._held[:end]) + b"\r\n\r\n") if end > 0 else None

    def _learn(self, head: RequestHead) -> None:
        raw, length = head.raw, head.fields.get(_FIELD)
        if length is None or len(raw) > LONGEST_KEPT:
            self._before = b""
            return
        start = raw.index(length, raw.lower().index(_NAME) + len(_NAME))
        self._before, self._after = raw[:start], raw[start + len(length) :]
        self._last = head


class ResponseHeads(HeadBuffer):
    """Reads the heads of the responses on one connection: `next` does what `feed` and `parse_response` do."""

    __slots__ = ("_last", "_raw")

    _last: ResponseHead

    def __init__(self) -> None:
        super().__init__(RESPONSE_FIRST)
        self._raw = b""

    def next(self, data: bytes) -> tuple[ResponseHead, bytes] | None:
        """
        (the head that became whole, the bytes after it), or None while its blank line is still to come.

        Bytes that begin like the head before, up to its blank line, hold that head: it is the same object. Raises BadHead.
        """
        raw = self._raw
        if raw and not self._held and data.startswith(raw):
            return self._last, data[len(raw) :]
        found = self.feed(data)
        if found is None:
            return None
        raw, rest = found
        head = parse_response(raw)
        self._last, self._raw = head, raw if len(raw) <= LONGEST_KEPT else b""
        return head, rest
