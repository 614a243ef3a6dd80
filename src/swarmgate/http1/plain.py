"""
The fast yes before the walk over the refusals: nearly every head is plain.

Here live positive tests; where they hold and llhttp has no complaint, no row of refusals.py applies (tests hold them to
that, and fail with a more lenient llhttp). A head that is not plain is no worse for it, it is only looked at
row by row. Twenty calls of 0.1 us per head are saved so.
"""

from typing import Final

from swarmgate.http1.refusals import AUTHORITY, CL, CONTROL_BYTES, MAX_HEADERS, METHODS, TE, Lines

_NO_TEXT: Final = CONTROL_BYTES + b"\r\n"


def is_plain_request(head: Lines) -> bool:
    """True, and llhttp content, only where no row of REQUEST_ROWS applies."""
    target, host = head.target, head.fields.get(b"host")
    return (
        is_plain_response(head)
        and head.method in METHODS
        and head.method != b"CONNECT"
        and target.startswith(b"/")
        and b"#" not in target
        and target.isascii()
        and host is not None
        and AUTHORITY.fullmatch(host) is not None
        and b"expect" not in head.fields
    )


def is_plain_response(head: Lines) -> bool:
    """True, and llhttp content, only where no row of RESPONSE_ROWS applies."""
    raw, fields, lines = head.raw, head.fields, len(head.headers) + 2
    length = fields.get(CL)
    return (
        head.well_cut
        and head.version == b"HTTP/1.1"
        and lines <= MAX_HEADERS + 2
        and b"" not in fields
        and len(raw.translate(None, _NO_TEXT)) == len(raw) - 2 * lines  # nothing but the CR LF that were cut at
        and (length is None or (length.isdigit() and len(length) < 19))
        and (TE not in fields or (fields[TE] == b"chunked" and length is None))
        and (lines == len(fields) + 2 or _repeats_only_harmless(head))
    )


def _repeats_only_harmless(head: Lines) -> bool:
    """Set-Cookie may stand twice; what decides about framing and target may not."""
    return not any(head.count(name) > 1 for name in (TE, CL, b"host"))
