"""
How a URL or a pattern over URLs is refused: typed errors and the closed table of reasons.

A caller's URL that cannot be read with one meaning is refused, never repaired: what two parsers read differently is
how budgets and address rules are evaded. No message repeats the URL, since it may carry credentials.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# reason -> (field, what happened and what to do)
TARGET_REASONS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "caller_url_too_long": ("url", "has more than 8000 octets after the host; move data into the body"),
        "caller_url_character": (
            "url",
            "holds a space, control character, backslash, lone surrogate or %00; percent-encode what may be",
        ),
        "caller_scheme": ("scheme", "must be http or https: https://HOST/PATH, or /to/https/HOST/PATH"),
        "caller_userinfo": ("userinfo", "holds a second @ or a raw reserved character; percent-encode it"),
        "caller_host_empty": ("host", "is empty; write scheme://host/path"),
        "caller_host_name": (
            "host",
            "is no name of at most 253 characters in labels of 1 to 63 letters, digits, hyphens and underscores",
        ),
        "caller_host_idna": ("host", "is not valid under UTS-46 and IDNA 2008; write its registered form"),
        "caller_host_ipv4": ("host", "ends in a number but is no IPv4 address; write four decimal numbers"),
        "caller_host_ipv6": ("host", "is no IPv6 address in brackets; write it as in RFC 5952"),
        "caller_port": ("port", "must be a number from 1 to 65535"),
        "caller_port_missing": ("port", "CONNECT takes host:port and nothing else; add the port"),
        "caller_path_ambiguous": ("path", "hides a dot segment behind an encoded slash or parameter; resolve it"),
    }
)


class BadTarget(ValueError):
    """
    A URL or authority of the caller that is refused before anything is resolved or sent.

    `reason` is a key of `TARGET_REASONS`; `field` is the part of the URL that it concerns.
    """

    def __init__(self, reason: str) -> None:
        field, sentence = TARGET_REASONS[reason]
        super().__init__(f"{field} {sentence} ({reason})")
        self.field = field
        self.reason = reason


class BadPattern(ValueError):
    """An operator's pattern, class or list of suffixes that cannot mean what it says; names field, value and rule."""

    def __init__(self, field: str, value: object, reason: str) -> None:
        super().__init__(f"{field} = {value!r}: {reason}")
        self.field = field
        self.value = value
        self.reason = reason
