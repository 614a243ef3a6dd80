"""
Answers of `/to/...` made to stay inside the gate: where a redirect leads, and to whom a cookie belongs.

The caller's client sees one origin, the gate. So a redirect leads back to a path here; if it leaves its origin, the path
carries a mark that says how many times that happened, and that credentials must not follow (RFC 9110 15.4: they were
meant for another origin). A cookie is bound to the path of its host here, or it would be sent to every host.
"""

import re
from contextlib import suppress
from typing import Final, NamedTuple
from urllib.parse import quote, urljoin

from swarmgate.core.target import ParsedUrl, Target, parse_target
from swarmgate.core.target_errors import BadTarget
from swarmgate.http1.head import Header

MOST_HOPS: Final = 5  # between origins; all of one chain are counted by chains.py
_SECRET: Final = re.compile(
    rb"authoriz|authent|(?:^|[-_])auth(?:$|[-_])|cookie|token|secret|passw|credential|session|signature"
    rb"|api[-_]?key|[-_]key$"
)
_NOT_SECRET: Final = frozenset({b"idempotency-key"})
_OTHER_SCHEME: Final = re.compile(rb"(?!https?:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_VISIBLE: Final = "".join(map(chr, range(0x21, 0x7F))).replace("\\", "")
_MARK: Final = re.compile(rb"\+([0-9]{1,2})(x?)(d?)/")
_COOKIE: Final = re.compile(rb";[ \t]*(domain|path|secure)\b[^;]*", re.IGNORECASE)
_COOKIE_PATH: Final = re.compile(rb";[ \t]*path=([^;]*)", re.IGNORECASE)
TO: Final = b"/to/"


class Trail(NamedTuple):
    """How a request came here through redirects: hops between origins, credentials to drop, a downgrade at the last."""

    hops: int = 0
    bare: bool = False
    downgraded: bool = False

    def mark(self) -> bytes:
        """The mark in a path; empty for a request that left no origin yet."""
        if self == START:
            return b""
        return b"+%d%b%b/" % (self.hops, b"x" if self.bare else b"", b"d" if self.downgraded else b"")


START: Final = Trail()


def read_trail(rest: bytes) -> tuple[Trail, bytes]:
    """The mark at the beginning of what stands behind `/to/`, and what stands behind the mark."""
    found = _MARK.match(rest)
    if found is None:
        return START, rest
    return Trail(int(found[1]), bool(found[2]), bool(found[3])), rest[found.end() :]


def is_credential(name: bytes) -> bool:
    """Whether a header (by its name, lower-case) carries what was meant for one origin alone; every API names its own."""
    return _SECRET.search(name) is not None and name not in _NOT_SECRET


def location(value: bytes, here: ParsedUrl, trail: Trail, prefix: bytes) -> bytes:
    """
    Where a redirect leads, as a path below `prefix` (which ends before `/to/`); what is no http URL stays as it is.

    Clients mend what they can (blanks, bytes beyond ASCII, a name that is none) and would go there by themselves. So what
    cannot be read here leads inside, too, where it is refused with its reason.
    """
    if _OTHER_SCHEME.match(value.strip()):
        return value
    spelled, fragment = joined(value, here)
    try:
        there = parse_target(spelled)
    except BadTarget:
        return prefix + TO + _unreadable(spelled, trail)
    mark = _next(trail, here.target, there.target).mark()
    origin = f"{there.target.scheme}/{there.target.authority}{there.origin_form}{fragment}".encode()
    return prefix + TO + mark + origin


def joined(value: bytes, here: ParsedUrl) -> tuple[str, str]:
    """Where a `Location` leads, spelled as clients would mend it, and its fragment with the mark before it."""
    spelled, sharp, fragment = quote(value.strip(), safe=_VISIBLE).partition("#")
    if spelled.startswith("//"):  # RFC 3986 5.2.2; some releases of Python alone refuse odd brackets here
        return f"{here.target.scheme}:{spelled}", sharp + fragment
    with suppress(ValueError):  # for brackets
        spelled = urljoin(here.url, spelled)
    return spelled, sharp + fragment


def cookie(value: bytes, target: Target, prefix: bytes) -> bytes:
    """A `Set-Cookie` whose cookie comes back for this host only, over the caller's plain connection."""
    path = _COOKIE_PATH.search(value)
    inside = path[1].strip() if path and path[1].strip().startswith(b"/") else b"/"
    origin = f"{target.scheme}/{target.authority}".encode()
    return _COOKIE.sub(b"", value) + b"; Path=" + prefix + TO + origin + (b"" if inside == b"/" else inside)


def kept_inside(headers: list[Header], here: ParsedUrl, trail: Trail, prefix: bytes) -> list[Header]:
    """An answer's headers with redirects and cookies that stay inside."""
    kept: list[Header] = []
    for name, value in headers:
        if name == b"location":
            kept.append((name, location(value, here, trail, prefix)))
        elif name == b"set-cookie":
            kept.append((name, cookie(value, here.target, prefix)))
        else:
            kept.append((name, value))
    return kept


def _unreadable(spelled: str, trail: Trail) -> bytes:
    scheme = b"https/" if spelled[:6].lower() == "https:" else b"http/"
    rest = spelled.partition("://")[2] or spelled.lstrip("/")
    return Trail(trail.hops + 1, bare=True).mark() + scheme + rest.encode()


def _next(trail: Trail, here: Target, there: Target) -> Trail:
    if there.origin == here.origin:
        return trail._replace(downgraded=False)
    downgraded = here.scheme == "https" and there.scheme == "http"
    upgraded = (here, there.origin) == (Target("http", there.host, 80), Target("https", here.host, 443))
    return Trail(trail.hops + 1, trail.bare or not upgraded, downgraded)
