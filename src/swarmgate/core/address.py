"""
Which addresses and names the swarm may reach: our own table of special ranges, and the IPv4 hidden inside IPv6.

`ipaddress.is_private` and `is_global` are not used: Python 3.11 calls 64:ff9b::a9fe:a9fe (NAT64 of the metadata
service), ::127.0.0.1, 224.0.0.1 and 192.88.99.1 public, and its tables changed between patches (CVE-2024-4032).
Ranges: IANA special-purpose registries for IPv4 and IPv6 (RFC 6890), read 2026-11; outside 2000::/3 nothing is public.
"""

from collections.abc import Callable
from enum import Enum
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

from swarmgate.core.host import is_address


class AddressClass(Enum):
    """What an address is; all but PUBLIC are denied unless the operator pinned them. The value is the reason."""

    PUBLIC = "a public address"
    LOOPBACK = "this machine itself"
    UNSPECIFIED = "no address; most systems connect it to themselves"
    PRIVATE = "a private network"
    LINK_LOCAL = "the local link"
    SHARED = "the carrier's or cloud's shared network"
    METADATA = "a cloud's metadata service, which hands out credentials"
    MULTICAST = "a group of machines"
    RESERVED = "reserved, unallocated, documentation or benchmarking"
    TRANSITION = "IPv4 inside an IPv6 transition range, which reaches whatever a relay decides"
    INTERNAL_NAME = "a name that only a private network resolves"
    MALFORMED = "not an IP address"

    @property
    def denied(self) -> bool:
        """Whether nothing may be dialled there without an operator's pin."""
        return self is not AddressClass.PUBLIC

    @property
    def reason(self) -> str:
        """The reason in words."""
        return self.value


# the first range that holds the address decides: the narrower and graver stand first
_RANGES: Final = {
    AddressClass.METADATA: (
        "169.254.169.254/32",  # AWS, Google, Azure, DigitalOcean, OpenStack, ...
        "169.254.169.253/32",  # AWS resolver
        "169.254.170.2/32",  # AWS ECS task credentials
        "169.254.170.23/32",  # AWS EKS pod identity
        "100.100.100.200/32",  # Alibaba
        "168.63.129.16/32",  # Azure host agent; a public range, yet always the local host
        "192.0.0.192/32",  # Oracle
        "fd00:ec2::254/128",  # AWS
        "fd00:ec2::253/128",
        "fd00:ec2::23/128",
        "fd20:ce::254/128",  # Google
    ),
    AddressClass.LOOPBACK: ("127.0.0.0/8", "::1/128"),
    AddressClass.UNSPECIFIED: ("0.0.0.0/8", "::/128"),
    AddressClass.PRIVATE: ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"),
    AddressClass.LINK_LOCAL: ("169.254.0.0/16", "fe80::/10"),
    AddressClass.SHARED: ("100.64.0.0/10",),
    AddressClass.MULTICAST: ("224.0.0.0/4", "ff00::/8"),
    AddressClass.TRANSITION: (
        "192.88.99.0/24",  # 6to4 relays (RFC 7526)
        "::/96",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2001::/32",
        "2002::/16",
    ),
    AddressClass.RESERVED: (
        "192.0.0.0/24",
        "192.0.2.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "240.0.0.0/4",
        "2001::/23",
        "2001:db8::/32",
        "3fff::/20",
        "::/3",
        "4000::/2",
        "8000::/1",
    ),
}

# where the IPv4 address stands: RFC 4291 2.5.5, RFC 6052 2.2, RFC 8215, RFC 3056 2, RFC 4380 4
_EMBEDDED: Final[tuple[tuple[str, tuple[Callable[[int], int], ...]], ...]] = (
    ("::/96", (lambda v: v,)),
    ("64:ff9b::/96", (lambda v: v,)),
    ("64:ff9b:1::/48", (lambda v: v, lambda v: v >> 64 << 16 | v >> 40 & 0xFFFF)),
    ("2001::/32", (lambda v: ~v, lambda v: v >> 64)),
    ("2002::/16", (lambda v: v >> 80,)),
)

# a name stands for itself and for everything below it
_INTERNAL_NAMES: Final = {
    "localhost": AddressClass.LOOPBACK,  # RFC 6761 6.3
    "localhost.localdomain": AddressClass.LOOPBACK,  # /etc/hosts of Red Hat and Debian, down to ip6-loopback
    "localhost6": AddressClass.LOOPBACK,
    "localhost6.localdomain6": AddressClass.LOOPBACK,
    "ip6-localhost": AddressClass.LOOPBACK,
    "ip6-loopback": AddressClass.LOOPBACK,
    "metadata": AddressClass.METADATA,
    "metadata.google.internal": AddressClass.METADATA,
    "metadata.goog": AddressClass.METADATA,
    "instance-data": AddressClass.METADATA,  # AWS
    "instance-data.ec2.internal": AddressClass.METADATA,
    "local": AddressClass.INTERNAL_NAME,  # RFC 6762; Kubernetes' cluster.local
    "svc": AddressClass.INTERNAL_NAME,  # Kubernetes' search path
    "internal": AddressClass.INTERNAL_NAME,  # reserved by ICANN in 2024
    "localdomain": AddressClass.INTERNAL_NAME,
    "localdomain6": AddressClass.INTERNAL_NAME,
    "home.arpa": AddressClass.INTERNAL_NAME,  # RFC 8375
    "intranet": AddressClass.INTERNAL_NAME,  # RFC 6762 appendix G, down to lan
    "private": AddressClass.INTERNAL_NAME,
    "corp": AddressClass.INTERNAL_NAME,
    "home": AddressClass.INTERNAL_NAME,
    "lan": AddressClass.INTERNAL_NAME,
}


def verdict(address: str | IPv4Address | IPv6Address) -> AddressClass:
    """
    The class of an address as a resolver gives it; never raises, what is no address is MALFORMED.

    IPv4-mapped IPv6 is judged as the IPv4 address. The other embeddings take the class of the address inside when that
    is denied, so that no spelling hides the metadata service, and are TRANSITION (denied too) otherwise.
    """
    if isinstance(address, str):
        try:
            address = ip_address(address)
        except ValueError:
            return AddressClass.MALFORMED
    if isinstance(address, IPv6Address):
        return _of_ipv6(address)
    return _first(_IPV4, int(address))


def host_verdict(host: str) -> AddressClass | None:
    """The class of a normal host as far as it is known without DNS; None = judge every address it resolves to."""
    if is_address(host):
        return verdict(host)
    name = host
    while name:
        if name in _INTERNAL_NAMES:
            return _INTERNAL_NAMES[name]
        name = name.partition(".")[2]
    return None


_Range = tuple[int, int, AddressClass]  # mask, network, class


def _ranges(version: int) -> tuple[_Range, ...]:
    nets = [(ip_network(text), kind) for kind, texts in _RANGES.items() for text in texts]
    return tuple((int(net.netmask), int(net.network_address), kind) for net, kind in nets if net.version == version)


_IPV4: Final = _ranges(4)
_IPV6: Final = _ranges(6)
_INSIDE: Final = tuple((ip_network(text), readers) for text, readers in _EMBEDDED)


def _first(ranges: tuple[_Range, ...], value: int) -> AddressClass:
    for mask, network, kind in ranges:
        if value & mask == network:
            return kind
    return AddressClass.PUBLIC


def _of_ipv6(address: IPv6Address) -> AddressClass:
    if address.ipv4_mapped:
        return _first(_IPV4, int(address.ipv4_mapped))
    kind = _first(_IPV6, int(address))
    if kind is not AddressClass.TRANSITION:
        return kind
    readers = next(readers for net, readers in _INSIDE if address in net)
    inside = {_first(_IPV4, read(int(address)) & 0xFFFF_FFFF) for read in readers}
    return next((one for one in _RANGES if one in inside), AddressClass.TRANSITION)
