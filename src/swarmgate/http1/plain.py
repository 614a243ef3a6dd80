"""
The fast yes before the walk over the refusals: nearly every head is plain.

Here live positive tests whose truth means that no row of refusals.py applies (a property test holds them to that); a head
that is not plain is no worse for it, it is only looked at row by row. Twenty calls of 0.1 us per head are saved so.
"""

from swarmgate.http1.refusals import AUTHORITY, CL, CONTROL_BYTES, MAX_HEADERS, METHODS, TE, TOKEN_BYTES, Lines

_NO_TEXT = CONTROL_BYTES + b"\r\n"


def is_plain_request(head: Lines) -> bool:
    """True only where no row of REQUEST_ROWS applies."""
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
    """True only where no row of RESPONSE_ROWS applies: nothing here looks at what a response has not."""
    raw, fields, length = head.raw, head.fields, head.fields.get(CL, b"0")
    lines = len(head.headers) + 2
    return (
        head.well_cut
        and head.version == b"HTTP/1.1"
        and len(raw.translate(None, _NO_TEXT)) == len(raw) - 2 * lines  # nothing but the CR LF that were cut at
        and lines <= MAX_HEADERS + 2
        and b"" not in fields
        and b"" not in fields.values()  # an empty value may have been a line without a colon
        and not b"".join(fields).translate(None, TOKEN_BYTES)
        and (len(fields) == len(head.headers) or _repeats_only_harmless(head))
        and (TE not in fields or (fields[TE] == b"chunked" and CL not in fields))
        and length.isdigit()
        and len(length) < 19
    )


def _repeats_only_harmless(head: Lines) -> bool:
    """Set-Cookie may stand twice; what decides about framing and target may not."""
    return all(value for _, value in head.headers) and not any(head.count(name) > 1 for name in (TE, CL, b"host"))
