"""
The last request head of a connection, as the key to its next one.

With every request of a kept connection a client sends the same lines; what differs is the length of the body. Such a
head needs no second judgement: it consists of bytes that passed, around digits where digits had passed.
"""

from swarmgate.http1.head import RequestHead, parse_request

LONGEST_KEPT = 4 * 1024
_NAME = b"\r\ncontent-length:"
_FIELD = b"content-length"


class HeadMemo:
    """Reads the heads of one connection: `read` does what `parse_request` does, and less where it can."""

    __slots__ = ("_after", "_before", "_last", "_place")

    _last: RequestHead
    _place: int

    def __init__(self) -> None:
        self._before = self._after = b""

    def read(self, raw: bytes) -> RequestHead:
        """The request head in `raw`, which ends with its blank line. Raises BadHead."""
        before, after = self._before, self._after
        if before and raw.startswith(before) and raw.endswith(after):
            digits = raw[len(before) : len(raw) - len(after)]
            if digits.isdigit() and len(digits) < 19:
                return self._again(raw, digits)
        head = parse_request(raw)
        self._learn(head)
        return head

    def _again(self, raw: bytes, digits: bytes) -> RequestHead:
        last = self._last
        head = RequestHead.__new__(RequestHead)
        head.raw = raw
        head.method, head.target, head.version = last.method, last.target, last.version
        head.well_cut, head.chunked, head.keep_alive = True, False, last.keep_alive
        head.headers = last.headers.copy()
        head.headers[self._place] = (_FIELD, digits)
        head.fields = last.fields | {_FIELD: digits}
        head.content_length = int(digits)
        head.notes = last.notes
        return head

    def _learn(self, head: RequestHead) -> None:
        raw, length = head.raw, head.fields.get(_FIELD)
        if length is None or len(raw) > LONGEST_KEPT:
            self._before = b""
            return
        start = raw.index(length, raw.lower().index(_NAME) + len(_NAME))
        self._before, self._after = raw[:start], raw[start + len(length) :]
        self._place = head.headers.index((_FIELD, length))
        self._last = head
