"""
Virtual time: a clock and the queue of everything that will happen, in one order for one seed.

Two events at one instant happen in the order in which they were planned. The trace hash is fed by whoever does
something that another run must repeat; equal hashes of equal seeds prove that a run can be replayed.
"""

from collections.abc import Callable
from hashlib import blake2b
from heapq import heappop, heappush
from typing import Any, Protocol


class VirtualTime:
    """The clock of one world (ports.Clock), its plans, and the hash of what happened."""

    __slots__ = ("_hash", "_now_ms", "_plans", "_turn", "events")

    def __init__(self) -> None:
        self._now_ms = 0
        self._turn = 0
        self._plans: list[tuple[int, int, Callable[..., object], tuple[Any, ...]]] = []
        self._hash = blake2b(digest_size=16)
        self.events = 0

    def now_ms(self) -> int:
        """Virtual milliseconds since the world began."""
        return self._now_ms

    def at(self, at_ms: int, act: Callable[..., object], *arguments: Any) -> None:
        """Plan `act(*arguments)` at an instant, now if it has passed."""
        self._turn += 1
        heappush(self._plans, (max(at_ms, self._now_ms), self._turn, act, arguments))

    def run(self, until_ms: int, *, idle: Callable[[], bool] | None = None) -> None:
        """Let everything happen that is planned before `until_ms`; stop early once `idle` says so."""
        plans = self._plans
        while plans and plans[0][0] < until_ms:
            self._now_ms, _, act, arguments = heappop(plans)
            self.events += 1
            act(*arguments)
            if idle is not None and idle():
                return
        self._now_ms = max(self._now_ms, until_ms)

    def trace(self, *what: object) -> None:
        """Add to the hash of what happened."""
        self._hash.update(repr((self._now_ms, *what)).encode())

    @property
    def trace_hash(self) -> str:
        """Equal for two runs of one seed."""
        return self._hash.hexdigest()


class Plans(Protocol):
    """Whatever plans acts: a world, or one process in it."""

    def at(self, at_ms: int, act: Callable[..., object], *arguments: Any) -> None:
        """Plan an act."""
        ...


class VirtualTimer:
    """One alarm on virtual time (ports.Timer); an alarm that was replaced rings no more."""

    __slots__ = ("_at_ms", "_ring", "_time")

    def __init__(self, time: Plans, ring: Callable[[], None]) -> None:
        self._time = time
        self._ring = ring
        self._at_ms: int | None = None

    def arm(self, at_ms: int | None) -> None:
        """Ring at `at_ms`."""
        self._at_ms = at_ms
        if at_ms is not None:
            self._time.at(at_ms, self._rung, at_ms)

    def _rung(self, at_ms: int) -> None:
        if at_ms == self._at_ms:
            self._at_ms = None
            self._ring()
