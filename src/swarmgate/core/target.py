"""
The normal identity of an external resource: what budgets are kept by, what is resolved, dialled and sent.

A URL is read once, here; nothing downstream parses the string again (parser differentials: CVE-2019-9636,
CVE-2023-24329, CVE-2024-11168). All spellings of one origin give one key, and no two origins give the same.
"""

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from swarmgate.core.host import normal_host
from swarmgate.core.path_class import NO_CLASS
from swarmgate.core.target_errors import BadTarget
from swarmgate.core.url_path import ascii_only, path_to_judge, path_to_send

LONGEST_ORIGIN_FORM: Final = 8_000  # octets that every recipient should take (RFC 9110 4.1)
LONGEST_URL: Final = LONGEST_ORIGIN_FORM + 2_048  # and any spelling of the rest
DEFAULT_PORTS: Final = {"http": 80, "https": 443}

# urlsplit removes TAB, CR and LF and other parsers keep them; backslash is a slash to some
_FORBIDDEN: Final = re.compile(r"[\x00-\x20\x7f-\x9f\\\ud800-\udfff]|%00")
_URL: Final = re.compile(r"(https?)://([^/?#]*)([^?#]*)(\?[^#]*)?(?:#.*)?", re.IGNORECASE | re.ASCII)
_USERINFO: Final = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:%-]*")


class Target(NamedTuple):
    """A normalised external resource (HTTP *origin* and path class); `host` is a normal host, IPv6 without brackets."""

    scheme: str
    host: str
    port: int
    path_class: str = NO_CLASS

    @property
    def authority(self) -> str:
        """`host` or `host:port`, the default port elided, as a Host header carries it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS.get(self.scheme, 0) else f"{host}:{self.port}"

    @property
    def key(self) -> str:
        """`scheme://authority`, with `#class` when the request has one; equal exactly for equal targets."""
        origin = f"{self.scheme}://{self.authority}"
        return f"{origin}#{self.path_class}" if self.path_class else origin

    @property
    def origin(self) -> "Target":
        """The same target without its path class: a request is charged to both."""
        return Target(self.scheme, self.host, self.port)


@dataclass(frozen=True, slots=True, repr=False)
class Credential:
    """Userinfo of a URL as written; never shown, never part of a key."""

    userinfo: str

    def __repr__(self) -> str:
        return "Credential(***)"


class ParsedUrl(NamedTuple):
    """
    A URL read once: its target, the decoded path that patterns judged, and the origin-form to send.

    The query stays as written. `repr` shows neither query nor credential: both carry keys.
    """

    target: Target
    path: str
    origin_form: str
    credential: Credential | None

    @property
    def url(self) -> str:
        """The normal form of the whole URL, without credential and fragment; reading it again gives the same."""
        return f"{self.target.scheme}://{self.target.authority}{self.origin_form}"

    def __repr__(self) -> str:
        return f"ParsedUrl({self.target.key} {self.path!r})"


def parse_target(url: str) -> ParsedUrl:
    """
    The identity of an absolute http(s) URL, without a class; a fragment is dropped. Errors: `BadTarget`.

    Order of work: refuse what parsers read differently, split once, normal host, port, path.
    """
    if len(url) > LONGEST_URL:
        raise BadTarget("caller_url_too_long")
    if _FORBIDDEN.search(url):
        raise BadTarget("caller_url_character")
    match = _URL.fullmatch(url)
    if not match:
        raise BadTarget("caller_scheme")
    scheme, authority, raw_path, query = match.groups(default="")
    scheme = scheme.lower()
    credential = None
    if "@" in authority:
        userinfo, _, authority = authority.rpartition("@")
        credential = _credential(userinfo)
    host, port = _host_and_port(authority, DEFAULT_PORTS[scheme])
    sent = path_to_send(raw_path)
    origin_form = sent + ascii_only(query)
    if len(origin_form) > LONGEST_ORIGIN_FORM:
        raise BadTarget("caller_url_too_long")
    return ParsedUrl(Target(scheme, host, port), path_to_judge(sent), origin_form, credential)


def parse_authority(text: str) -> Target:
    """
    The target of `CONNECT host:port` (RFC 9110 9.3.6): both parts are needed and nothing may follow.

    What flows inside is not seen; a tunnel to port 80 shares the key of `http`, every other that of `https`.
    Errors: `BadTarget`.
    """
    spelled = _split_port(text)[1]
    if not spelled:
        raise BadTarget("caller_port_missing")
    host, port = _host_and_port(text, 0)
    return Target("http" if port == DEFAULT_PORTS["http"] else "https", host, port)


def _credential(userinfo: str) -> Credential:
    # an @ or a character that NFKC turns into one moves the host's border between parsers (CVE-2019-9636)
    if not _USERINFO.fullmatch(userinfo):
        raise BadTarget("caller_userinfo")
    return Credential(userinfo)


def _host_and_port(authority: str, default_port: int) -> tuple[str, int]:
    host, port = _split_port(authority)
    return normal_host(host), _port(port) if port else default_port


def _split_port(authority: str) -> tuple[str, str]:
    if not authority.startswith("["):
        host, _, port = authority.partition(":")
        return host, port
    host, _, rest = authority.rpartition("]")
    if rest and not rest.startswith(":"):
        raise BadTarget("caller_host_ipv6")
    return host + "]", rest[1:]


def _port(text: str) -> int:
    significant = text.lstrip("0")
    if not (text.isascii() and text.isdigit()) or not 0 < len(significant) <= 5 or int(significant) > 65_535:
        raise BadTarget("caller_port")
    return int(significant)
