"""
What goes out: request heads to targets, response heads to clients, chunks, and our own errors.

Here live lists of (lower-case name, value) turned into bytes; nothing is sent. What a hop added stays on that hop
(RFC 9110 7.6.1), also what its Connection field names. One count of CR, LF and NUL over the whole head proves that no value
brought its own: cheaper than a look at each value, and it cannot be forgotten for one.
"""

import json
from collections.abc import Container, Iterable, Sequence
from http import HTTPStatus
from typing import Final

from swarmgate.http1.head import Head, Header

HOP_BY_HOP: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authentication-info",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
REPLACED: Final = HOP_BY_HOP | {b"host", b"content-length", b"expect"}
HARMLESS_WISHES: Final = frozenset({None, b"keep-alive", b"Keep-Alive", b"close"})
_CHUNKED: Final = (b"transfer-encoding", b"chunked")
_STARTS: Final = {status.value: b"HTTP/1.1 %d %b" % (status, status.phrase.encode()) for status in HTTPStatus}
LAST_CHUNK: Final = b"0\r\n\r\n"
SHORT_BYTES: Final = 2_048
SIZE_LINES: Final = [b"%x\r\n" % size for size in range(SHORT_BYTES)]  # what precedes a chunk of so many bytes
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
TUNNEL_OPEN: Final = b"HTTP/1.1 200 Connection established\r\n"  # its fields and the blank line follow


class BadField(ValueError):
    """A head that would carry CR, LF or NUL inside a field: `field` names it, `reason` is `injection`."""

    def __init__(self, field: str) -> None:
        super().__init__(f"{field}: holds CR, LF or NUL; it would start a line of its own and is not sent")
        self.field, self.reason = field, "injection"


def passed_on(head: Head, drop: Container[bytes] = ()) -> list[Header]:
    """The end-to-end fields of a head, without framing, host, expect, what Connection names, and `drop`."""
    wish = head.fields.get(b"connection")
    if wish in HARMLESS_WISHES:
        return [field for field in head.headers if field[0] not in REPLACED and field[0] not in drop]
    named = {token.strip() for token in (wish or b"").lower().split(b",")}
    return [f for f in head.headers if f[0] not in REPLACED and f[0] not in named and f[0] not in drop]


def request_head(
    method: bytes,
    target: bytes,
    host: bytes,
    headers: Iterable[Header],
    *,
    length: int | None = None,
    chunked: bool = False,
) -> bytes:
    """A request head for a target: host first, then `headers`, then the framing; raises BadField."""
    fields = [(b"host", host), *headers]
    if chunked:
        fields.append(_CHUNKED)
    elif length is not None:
        fields.append((b"content-length", b"%d" % length))
    return _lines(b"%b %b HTTP/1.1" % (method, target), fields) + b"\r\n"


def response_head(
    status: int,
    headers: Sequence[Header],
    *,
    length: int | None = None,
    chunked: bool = False,
    close: bool = False,
    ready: bytes = b"",
) -> bytes:
    """
    A response head for a client; with neither `length` nor `chunked` it states no body; raises BadField.

    `ready` are further lines, each with its end, of which whoever made them knows that no value begins a line.
    """
    lines = _lines(_STARTS.get(status) or b"HTTP/1.1 %d " % status, headers)
    if chunked:
        ready += b"transfer-encoding: chunked\r\n"
    elif length is not None:
        ready += b"content-length: %d\r\n" % length
    return b"%b%bconnection: close\r\n\r\n" % (lines, ready) if close else b"%b%b\r\n" % (lines, ready)


def header_lines(headers: Sequence[Header]) -> bytes:
    """Lines of a head, each with its end; raises BadField."""
    return _lines(b"", headers).removeprefix(b"\r\n")


def error_body(status: int, reason: str, sentence: str) -> tuple[list[Header], bytes]:
    """Headers and JSON body of an answer of ours, in the shape the SDKs read: `{"error": {message, type, param, code}}`."""
    kind = "gate_error" if status >= 500 else "invalid_request_error"
    body = json.dumps({"error": {"message": sentence, "type": kind, "param": None, "code": reason}}).encode()
    return [(b"content-type", b"application/json")], body


def _lines(start: bytes, fields: Sequence[Header]) -> bytes:
    raw = b"\r\n".join([start, *map(b": ".join, fields), b""])
    if len(raw) - len(raw.translate(None, b"\r\n\0")) != 2 * len(fields) + 2:
        raise BadField(_culprit(start, fields))
    return raw


def _culprit(start: bytes, fields: Sequence[Header]) -> str:
    if any(byte in start for byte in b"\r\n\0"):
        return "start line"
    guilty = next(name for name, value in fields if any(byte in name + value for byte in b"\r\n\0"))
    return guilty.decode("ascii", "replace").replace("\r", "?").replace("\n", "?").replace("\0", "?")


def frame(payload: bytes) -> bytes:
    """The payload as one chunk; nothing for an empty payload, which would end the body."""
    return b"%x\r\n%b\r\n" % (len(payload), payload) if payload else b""
