"""
Message heads: bytes up to the blank line in, a typed head out, or BadHead.

Two readers must agree: llhttp (httptools) judges the grammar of exactly these bytes, and the lines cut here are checked
against our own table (refusals.py). A parser object per message costs 0.5 us and cannot leak state into the next; fed a
head only, llhttp waits for the body, so one could not be used again. It gets no callbacks: two Python calls per header
line cost as much time as cutting the lines ourselves, and most of the calls that one request may cost.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import repeat
from typing import Any, Final

import httptools

from swarmgate.http1.plain import is_plain_request, is_plain_response
from swarmgate.http1.refusals import CL, MAX_HEADERS, REQUEST_ROWS, RESPONSE_ROWS, TE, Row, refuse

Header = tuple[bytes, bytes]


class _Silent:
    """A protocol object without callbacks: llhttp only judges."""


_SILENT: Final = _Silent()


class Head:
    """
    What both heads share: `headers` in order (lower-case name, value), `fields` by name, framing, keep-alive.

    `notes` is for what readers work out from these lines alone; the heads of a connection that say the same share it
    (head_memo.py).
    """

    __slots__ = (
        "chunked",
        "content_length",
        "fields",
        "headers",
        "keep_alive",
        "method",
        "notes",
        "raw",
        "target",
        "version",
        "well_cut",
    )

    method: bytes
    target: bytes
    version: bytes
    well_cut: bool
    content_length: int | None
    chunked: bool
    keep_alive: bool

    def __init__(self, raw: bytes) -> None:
        start, *lines = raw[:-4].split(b"\r\n", MAX_HEADERS + 1)  # a bomb of lines is not even cut
        self.raw = raw
        headers: list[Header] = [
            (name.lower(), value.strip()) for name, _, value in map(bytes.partition, lines, repeat(b":"))
        ]
        self.headers = headers
        self.notes: dict[str, Any] = {}
        self.fields = fields = dict(headers)
        if len(fields) != len(headers):
            self._combine()
        self._read_start(start)

    def _combine(self) -> None:
        """Repeated lines become one field, values joined by commas (RFC 9110 5.3)."""
        seen: dict[bytes, list[bytes]] = {}
        for name, value in self.headers:
            seen.setdefault(name, []).append(value)
        self.fields = {name: b", ".join(values) for name, values in seen.items()}

    def _read_start(self, line: bytes) -> None:
        raise NotImplementedError

    def count(self, name: bytes) -> int:
        """How many header lines bear this lower-case name."""
        return sum(1 for header in self.headers if header[0] == name)

    def get(self, name: bytes) -> bytes | None:
        """The field's value by lower-case name (repeated lines joined by a comma), or None."""
        return self.fields.get(name)


def _says_close(wish: bytes) -> bool:
    return b"close" in wish and b"close" in [token.strip() for token in wish.split(b",")]


class RequestHead(Head):
    """A request's head that passed every refusal: `method`, `target` as sent, `expect_continue`."""

    __slots__ = ()

    def _read_start(self, line: bytes) -> None:
        parts = line.split(b" ")
        self.well_cut = len(parts) == 3
        self.method, self.target = parts[0], parts[1] if len(parts) > 1 else b""
        self.version = b" ".join(parts[2:])

    @property
    def expect_continue(self) -> bool:
        """Whether the client waits for `100 Continue` before it sends its body."""
        return b"expect" in self.fields and self.version == b"HTTP/1.1"


class ResponseHead(Head):
    """A response's head: `status` (100..999), `reason` phrase."""

    __slots__ = ("reason", "status")

    def _read_start(self, line: bytes) -> None:
        self.method = self.target = b""
        self.version, self.well_cut, self.status, self.reason = _status_line(line)


@lru_cache(maxsize=64)
def _status_line(line: bytes) -> tuple[bytes, bool, int, bytes]:
    """(version, whether it is cut as it should be, status, reason); there are few, and each comes with every answer."""
    version, _, rest = line.partition(b" ")
    status, _, reason = rest.partition(b" ")
    well_cut = len(status) == 3 and status.isdigit() and status >= b"100"
    return version, well_cut, int(status) if well_cut else 0, reason


def parse_request(raw: bytes) -> RequestHead:
    """
    The request head in `raw`, which ends with its blank line.

    Raises BadHead with the status to answer; every refusal is a row of refusals.REQUEST_ROWS or llhttp's.
    """
    head = RequestHead(raw)
    _believe(head, httptools.HttpRequestParser(_SILENT), is_plain_request, REQUEST_ROWS)
    return head


def parse_response(raw: bytes) -> ResponseHead:
    """
    The response head in `raw`, which ends with its blank line; of a 101, which nobody here accepts, only the status.

    Raises BadHead (the status is for the log; a client is answered 502).
    """
    head = ResponseHead(raw)
    if head.status != 101:  # there llhttp stops
        _believe(head, httptools.HttpResponseParser(_SILENT), is_plain_response, RESPONSE_ROWS)
    return head


def _believe(
    head: Head,
    parser: httptools.HttpRequestParser | httptools.HttpResponseParser,
    is_plain: Callable[[Head], bool],
    rows: tuple[Row, ...],
) -> None:
    """Hear llhttp and the table; then say what the fields mean."""
    complaint = None
    try:
        parser.feed_data(head.raw)
    except httptools.HttpParserUpgrade:
        pass  # neither Upgrade nor CONNECT changes how a head reads
    except httptools.HttpParserError as error:
        complaint = f"is not read by llhttp: {error}"
    if complaint or not is_plain(head):
        refuse(head, rows, complaint)
    fields = head.fields
    length, wish = fields.get(CL), fields.get(b"connection")
    head.content_length = None if length is None else int(length)
    head.chunked = TE in fields
    head.keep_alive = head.version == b"HTTP/1.1" and (wish is None or not _says_close(wish.lower()))
