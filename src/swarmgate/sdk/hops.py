"""
Redirects that a deferred call has walked: its repeat goes on at the hop that was deferred, and asks no host twice.

Without this a page that moved within one host could not be fetched where the host takes one request at a time: each
repeat would spend on the first hop what the second one waits for.
"""

from contextvars import ContextVar
from typing import NamedTuple

MOST_HOPS = 64
READS = frozenset({"GET", "HEAD"})
_OF_BODY = frozenset({b"content-length", b"content-encoding", b"transfer-encoding"})

Fields = list[tuple[bytes, bytes]]


class Hop(NamedTuple):
    """A redirect as the gate gave it, without its body."""

    status: int
    fields: Fields


class Walk:
    """The hops of one call that comes back until it is admitted: `known` from attempts before, each is walked once in each."""

    __slots__ = ("_known", "_walked")

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Hop] = {}
        self._walked: dict[tuple[str, str], Hop] = {}

    def again(self) -> None:
        """The call was deferred, and begins anew."""
        self._known, self._walked = self._walked, {}

    def recall(self, method: str, url: str) -> Hop | None:
        """What an attempt before was told here, the first time that it is asked."""
        found = self._known.pop((method, url), None)
        return None if found is None else self._kept(method, url, found)

    def note(self, method: str, url: str, status: int, fields: Fields) -> None:
        """A host answered; only where it sends a reader elsewhere is that kept."""
        if 300 <= status < 400 and method in READS and any(name.lower() == b"location" for name, _ in fields):
            self._kept(method, url, Hop(status, [field for field in fields if field[0].lower() not in _OF_BODY]))

    def _kept(self, method: str, url: str, hop: Hop) -> Hop:
        if len(self._walked) < MOST_HOPS:
            self._walked[method, url] = hop
        return hop


walking: ContextVar[Walk | None] = ContextVar("swarmgate.walk", default=None)
