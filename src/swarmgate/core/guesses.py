"""
Who guesses keys is slowed down, by where it comes from; who has a good key never is (reliability AZ-09).

Wrong keys of one source are answered ten at once and one a second after that. Keys have 256 random bits, so that nobody finds one
at any pace; what is bounded here is what guessing costs the gate, its log and its figures. A good key is let in whatever
others from the same address do: a thousand agents share one, and an operator must not be locked out by any of them.
"""

from collections import OrderedDict
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

EACH_MS: Final = 1_000
AT_ONCE: Final = 10
MOST_SOURCES: Final = 4_096  # beyond it, the one that has guessed least lately is forgotten
_NETWORK_BITS: Final = 64  # of IPv6: what one site has is one source


class Guess(NamedTuple):
    """`wait_ms` 0 = tell it that the key is wrong; else it guesses too fast, and that `begins` with this one."""

    wait_ms: int = 0
    begins: bool = False


class Guesses:
    """Wrong keys by source."""

    def __init__(self) -> None:
        self._paid_ms: OrderedDict[str, int] = OrderedDict()  # until when what each source has guessed is paid for
        self._told: set[str] = set()  # sources that guess too fast, since they began to

    def wrong(self, source: str, now_ms: int) -> Guess:
        """A wrong key came from this address."""
        source = source_of(source)
        before_ms = self._paid_ms.pop(source, now_ms)
        if before_ms <= now_ms:
            self._told.discard(source)
        paid_ms = max(before_ms, now_ms) + EACH_MS
        over_ms = paid_ms - now_ms - AT_ONCE * EACH_MS
        begins = over_ms > 0 and source not in self._told
        self._paid_ms[source] = paid_ms if over_ms <= 0 else before_ms
        if begins:
            self._told.add(source)
        while len(self._paid_ms) > MOST_SOURCES:
            self._told.discard(self._paid_ms.popitem(last=False)[0])
        return Guess(max(0, over_ms), begins)


def source_of(address: str) -> str:
    """Whom an address stands for; what is none stands for itself."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(IPv6Address(int(parsed) >> _NETWORK_BITS << _NETWORK_BITS))
