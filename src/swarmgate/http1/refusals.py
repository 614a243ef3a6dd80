"""
The table of what a message head may not be, and the one error that says so.

Here live rules over bytes already cut into lines; no reading, no sockets. llhttp is lenient by design where proxies
must not be (RFC 9112 11.2: two readers that disagree about one message smuggle a second). A row applies to a head
as it came; the first row that applies is the answer. plain.py is the fast yes before this walk.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

TE, CL = b"transfer-encoding", b"content-length"
MAX_HEADERS: Final = 100
MAX_LENGTH: Final = 2**63
METHODS: Final = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"CONNECT"})

TOKEN_BYTES: Final = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
CONTROL_BYTES: Final = bytes(set(range(32)) - {9, 10, 13}) + b"\x7f"  # RFC 9110 5.5: never inside a head
_DIGITS: Final = re.compile(rb"[0-9]{1,19}")
AUTHORITY: Final = re.compile(
    rb"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9\-._~%!$&'()*+,;=]+)(?::[0-9]{0,5})?"
)  # RFC 3986 3.2.2
_ABSOLUTE: Final = re.compile(rb"(?i:(https?)://)([^/?]*)")
TARGET: Final = re.compile(rb"[!-~]+")
_DEFAULT_PORT: Final = {b"http": b":80", b"https": b":443"}


class Lines(Protocol):
    """What a row sees: a head cut into lines, not yet believed."""

    raw: bytes
    method: bytes
    target: bytes
    version: bytes
    headers: list[tuple[bytes, bytes]]
    fields: dict[bytes, bytes]
    well_cut: bool

    def count(self, name: bytes) -> int:
        """How many header lines bear this lower-case name."""


class BadHead(ValueError):
    """
    A head that is not read: `status` to answer with, `reason` = the row's name, `field` it is about, `sentence`.

    `head` is what is known of it all the same, None if there is nothing: of no use but to tell who sent it.
    """

    def __init__(self, status: int, reason: str, sentence: str, field: str = "head", head: Lines | None = None) -> None:
        super().__init__(f"{field}: {sentence}")
        self.status, self.reason, self.sentence, self.field = status, reason, sentence, field
        self.head = head


class Row(NamedTuple):
    """One refusal: its name is the reason code, `status` what a client is answered (502 stands in upstream)."""

    name: str
    field: str
    applies: Callable[[Lines], bool]
    status: int
    sentence: str


def authority_of(head: Lines) -> bytes | None:
    """The authority named in the target (absolute form, CONNECT), or None (origin form, `*`)."""
    if head.method == b"CONNECT":
        return head.target
    absolute = _ABSOLUTE.match(head.target)
    return absolute[2] if absolute else None


def _same_host(head: Lines) -> bool:
    authority, host = authority_of(head), head.fields.get(b"host")
    if authority is None or host is None:
        return True
    absolute = _ABSOLUTE.match(head.target)
    port = _DEFAULT_PORT[absolute[1].lower()] if absolute else b":443"
    return authority.lower().removesuffix(port) == host.lower().removesuffix(port)


def _form_fits(head: Lines) -> bool:
    if head.method == b"CONNECT":
        return b":" in head.target and b"/" not in head.target and b"?" not in head.target
    if head.target == b"*":
        return head.method == b"OPTIONS"
    return head.target.startswith(b"/") or bool(_ABSOLUTE.match(head.target))


def _bad_name(head: Lines) -> bool:
    return any(not name or name.translate(None, TOKEN_BYTES) for name, _ in head.headers)


def _colonless(head: Lines) -> bool:
    return any(b":" not in line for line in head.raw[:-4].split(b"\r\n")[1:])


def _bad_length(head: Lines) -> bool:
    length = head.fields.get(b"content-length")
    return length is not None and not _DIGITS.fullmatch(length)


def _bad_authority(head: Lines) -> bool:
    authority, host = authority_of(head), head.fields.get(b"host")
    return any(text and not AUTHORITY.fullmatch(text) for text in (authority, host)) or authority == b""


# fmt: off
# One row, one line: the formatter would spread each over seven.
LINES: Final = (
    Row("bare_lf", "head", lambda h: h.raw.count(b"\n") > h.raw.count(b"\r\n"), 400, "a line ends in LF without CR"),
    Row("bare_cr", "head", lambda h: h.raw.count(b"\r") > h.raw.count(b"\r\n"), 400, "a CR stands without LF"),
    Row("control_byte", "head", lambda h: len(h.raw.translate(None, CONTROL_BYTES)) < len(h.raw), 400, "NUL or another control byte"),
    Row("obs_fold", "head", lambda h: b"\n " in h.raw or b"\n\t" in h.raw, 400, "a header value is folded over two lines"),
    Row("space_before_colon", "head", lambda h: any(n.endswith((b" ", b"\t")) for n, _ in h.headers), 400, "space between a header name and its colon"),
    Row("bad_name", "head", _bad_name, 400, "a header name is empty or no token of ASCII"),
    Row("too_many_headers", "head", lambda h: len(h.headers) > MAX_HEADERS, 431, f"more than {MAX_HEADERS} header lines"),
    Row("malformed", "head", lambda h: not h.well_cut or _colonless(h), 400, "start line or header lines do not read as HTTP/1.1"),
)

FRAMING: Final = (
    Row("te_repeated", "transfer-encoding", lambda h: h.count(TE) > 1, 400, "stands more than once"),
    Row("te_in_http_1_0", "transfer-encoding", lambda h: TE in h.fields and h.version == b"HTTP/1.0", 400, "does not exist in HTTP/1.0"),
    Row("te_and_cl", "transfer-encoding", lambda h: TE in h.fields and CL in h.fields, 400, "stands beside content-length"),
    Row("te_not_chunked", "transfer-encoding", lambda h: h.fields.get(TE, b"chunked").lower() != b"chunked", 501, "is not exactly chunked"),
    Row("cl_repeated", "content-length", lambda h: h.count(CL) > 1, 400, "stands more than once"),
    Row("cl_not_digits", "content-length", _bad_length, 400, "is not plain digits"),
    Row("cl_too_large", "content-length", lambda h: int(h.fields.get(CL, b"0")) >= MAX_LENGTH, 413, "is 2^63 or more"),
)

START: Final = (
    Row("http_0_9", "version", lambda h: not h.version, 400, "HTTP/0.9 is not spoken"),
    Row("version", "version", lambda h: h.version not in {b"HTTP/1.1", b"HTTP/1.0"}, 505, "only HTTP/1.1 and HTTP/1.0 are spoken"),
    Row("method_unknown", "method", lambda h: h.method not in METHODS, 501, "is none of GET HEAD POST PUT PATCH DELETE OPTIONS CONNECT"),
    Row("target_fragment", "target", lambda h: b"#" in h.target, 400, "carries a fragment"),
    Row("target_userinfo", "target", lambda h: b"@" in (authority_of(h) or b""), 400, "carries userinfo"),
    Row("target_bytes", "target", lambda h: not TARGET.fullmatch(h.target), 400, "holds bytes that are not visible ASCII"),
    Row("target_form", "target", lambda h: not _form_fits(h), 400, "is neither a path, an http(s) URL, nor what the method allows"),
)

HOST: Final = (
    Row("host_missing", "host", lambda h: b"host" not in h.fields and h.version == b"HTTP/1.1", 400, "is required in HTTP/1.1"),
    Row("host_repeated", "host", lambda h: h.count(b"host") > 1, 400, "stands more than once"),
    Row("bad_authority", "host", _bad_authority, 400, "is no host with an optional port, or the target's is not"),
    Row("host_mismatch", "host", lambda h: not _same_host(h), 400, "differs from the authority in the target"),
)

WISHES: Final = (
    Row("connect_body", "content-length", lambda h: h.method == b"CONNECT" and (CL in h.fields or TE in h.fields), 400, "has no meaning with CONNECT"),
    Row("expect", "expect", lambda h: h.fields.get(b"expect", b"100-continue").lower() != b"100-continue", 417, "is not 100-continue"),
)

# fmt: on

REQUEST_ROWS: Final = (*START[:1], *LINES, *START[1:], *FRAMING, *HOST, *WISHES)
RESPONSE_ROWS: Final = (*START[1:2], *LINES, *FRAMING)  # without a version nothing else is worth a look


def refuse(head: Lines, rows: tuple[Row, ...], complaint: str | None) -> None:
    """Raise BadHead for the first row that applies, else for llhttp's complaint; do nothing when there is neither."""
    for row in rows:
        if row.applies(head):
            raise BadHead(row.status, row.name, row.sentence, row.field, head)
    if complaint:
        raise BadHead(400, "malformed", complaint, head=head)
