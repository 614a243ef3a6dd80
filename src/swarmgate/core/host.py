"""
One spelling for each host, whatever the caller wrote (RFC 3986 3.2.2, UTS-46, WHATWG URL "host parsing").

Order matters and is fixed: percent-decode once, map by UTS-46 without transitional processing, strip one trailing
dot, check the labels, and only then look for an IPv4 address, because mapping makes digits of ① and dots of 。
What comes out is what is keyed, resolved and dialled; a normal host is its own normal form.
"""

import re
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final
from urllib.parse import unquote_to_bytes

import idna

from swarmgate.core.target_errors import BadTarget

LONGEST_NAME: Final = 253  # RFC 1035 3.1, without the root's dot
LONGEST_LABEL: Final = 63
LONGEST_SPELLING: Final = 1024  # each octet of a name percent-encoded, and then some; bounds the work on a hostile host

_NAME: Final = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_NUMBER: Final = re.compile(r"0x[0-9a-f]*|[0-9]+")
_BRACKETED: Final = re.compile(r"\[([0-9a-f:.]+)(?:%25[a-z0-9._~-]+)?\]", re.IGNORECASE | re.ASCII)


def normal_host(text: str) -> str:
    """
    The one spelling of a host as it stands in a URL: lower-case A-labels, dotted IPv4, or RFC 5952 IPv6 unbracketed.

    `_` is allowed (service names have it); IPv4-mapped IPv6 becomes the IPv4 address; a zone id is dropped, since it
    names an interface of this machine and not a target. Errors: `BadTarget`.
    """
    if len(text) > LONGEST_SPELLING:
        raise BadTarget("caller_host_name")
    if text.startswith("["):
        return _ipv6(text)
    plain = text.isascii() and "%" not in text
    host = text.lower() if plain else text
    if not plain or "xn--" in host:
        host = _a_labels(host)
    host = host.removesuffix(".")
    if not host:
        raise BadTarget("caller_host_empty")
    if len(host) > LONGEST_NAME or not _NAME.fullmatch(host):
        raise BadTarget("caller_host_name")
    last = host.rpartition(".")[2]
    return _ipv4(host) if _NUMBER.fullmatch(last) else host


def is_address(host: str) -> bool:
    """Whether a normal host is an IP address and not a name."""
    return ":" in host or host.rpartition(".")[2].isdigit()


@lru_cache(maxsize=1024)
def _a_labels(text: str) -> str:
    """Percent-decoded, UTS-46 mapped, each international label as its A-label; ASCII labels are left to the caller."""
    try:
        mapped = idna.uts46_remap(unquote_to_bytes(text).decode(), std3_rules=False)
    except ValueError as error:  # IDNAError and both Unicode errors
        raise BadTarget("caller_host_idna") from error
    labels = mapped.split(".")
    # encoding only lengthens, and the checks of context look at pairs of characters: bound them first
    if max(map(len, labels)) > LONGEST_LABEL:
        raise BadTarget("caller_host_name")
    try:
        return ".".join(map(_a_label, labels))
    except ValueError as error:
        raise BadTarget("caller_host_idna") from error


def _a_label(label: str) -> str:
    if not label.isascii():
        return idna.alabel(label).decode()
    # the encoding of what it decodes to, or one name would have two spellings (RFC 5891 5.3)
    return idna.alabel(idna.ulabel(label)).decode() if label.startswith("xn--") else label


def _ipv4(host: str) -> str:
    """
    Every spelling that inet_aton and browsers take for an IPv4 address, as four decimal numbers.

    One to four parts, decimal, octal (leading 0) or hexadecimal (0x); the last part fills the remaining bytes. Python's
    `ipaddress` refuses `127.1`, `0177.0.0.1`, `2130706433`; the C library dials them (WHATWG URL "IPv4 parser").
    """
    parts = host.split(".")
    if len(parts) > 4 or not all(map(_NUMBER.fullmatch, parts)):
        raise BadTarget("caller_host_ipv4")
    try:
        *heads, last = map(_number, parts)
    except ValueError as error:  # 08 and 09 are no octal numbers
        raise BadTarget("caller_host_ipv4") from error
    if any(head > 255 for head in heads) or last >= 256 ** (4 - len(heads)):
        raise BadTarget("caller_host_ipv4")
    return str(IPv4Address(last + sum(head << (24 - 8 * place) for place, head in enumerate(heads))))


def _number(text: str) -> int:
    if text.startswith("0x"):
        return int(text[2:] or "0", 16)
    return int(text, 8 if text.startswith("0") else 10)


@lru_cache(maxsize=1024)
def _ipv6(text: str) -> str:
    match = _BRACKETED.fullmatch(text)
    try:
        address = IPv6Address(match[1] if match else "")
    except AddressValueError as error:
        raise BadTarget("caller_host_ipv6") from error
    return str(address.ipv4_mapped or address)
