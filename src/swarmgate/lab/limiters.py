"""
The limiters that targets really have, as stand-ins: what a gate is judged by, so no line of them comes from the core.

Five kinds answer one question, "does this arrival pass, and if not, when would it?". Four count an amount over time
(requests or tokens): a fixed window forgets at its boundaries, a sliding log remembers each arrival for one window, a
token bucket and GCRA let a burst through and drain at a constant rate. The fifth caps what is in progress. All time is
the target's own, in integer ms, and never runs backwards; fractions are avoided by scaling, so every verdict is exact.
"""

from collections import deque
from typing import NamedTuple, Protocol

from swarmgate.lab.errors import LabError, at_least


class Judgement(NamedTuple):
    """
    What the target answers an arrival.

    `wait_ms` of a refusal is the shortest wait after which the same arrival would pass if nobody else came; None if time
    alone never lets it pass. It is 0 when `ok`.
    """

    ok: bool
    wait_ms: int | None


PASSED = Judgement(ok=True, wait_ms=0)
NEVER_BY_WAITING = Judgement(ok=False, wait_ms=None)


class Limiter(Protocol):
    """One limit of one quota scope at a target."""

    def arrive(self, now_ms: int, cost: int = 1) -> Judgement:
        """The verdict on a request of `cost` units; what passes is counted, what is refused is not."""

    def depart(self, now_ms: int, cost: int = 0) -> None:
        """The answer of a request that had passed has ended; `cost` is what it added (output tokens), counted unasked."""


class _TargetTime:
    """The newest instant seen: an earlier one is a mistake of the simulated world, not of the gate under test."""

    __slots__ = ("_now_ms",)

    def __init__(self) -> None:
        self._now_ms = 0

    def _advance(self, now_ms: int, cost: int, smallest_cost: int) -> None:
        if now_ms < self._now_ms:
            raise LabError("now_ms", f"{now_ms} lies before {self._now_ms}, which this target has already seen")
        at_least("cost", cost, smallest_cost)
        self._now_ms = now_ms


class FixedWindow(_TargetTime):
    """At most `limit` units between two boundaries; the boundaries lie at `phase_ms` + k * `window_ms`."""

    __slots__ = ("_index", "_limit", "_phase_ms", "_used", "_window_ms")

    def __init__(self, limit: int, window_ms: int, phase_ms: int = 0) -> None:
        super().__init__()
        self._limit = at_least("limit", limit, 1)
        self._window_ms = at_least("window_ms", window_ms, 1)
        self._phase_ms = at_least("phase_ms", phase_ms, 0)
        self._index = 0
        self._used = 0

    def arrive(self, now_ms: int, cost: int = 1) -> Judgement:
        """Passes while the current window has room; else waits for the first boundary after which it fits."""
        self._turn(now_ms, cost, 1)
        if self._used + cost <= self._limit:
            self._used += cost
            return PASSED
        if cost > self._limit:
            return NEVER_BY_WAITING
        return Judgement(ok=False, wait_ms=(self._index + 1) * self._window_ms + self._phase_ms - now_ms)

    def depart(self, now_ms: int, cost: int = 0) -> None:
        """Counts `cost` in the window in which the answer ends."""
        self._turn(now_ms, cost, 0)
        self._used += cost

    def _turn(self, now_ms: int, cost: int, smallest_cost: int) -> None:
        self._advance(now_ms, cost, smallest_cost)
        index = (now_ms - self._phase_ms) // self._window_ms
        if index != self._index:
            self._index = index
            self._used = 0


class SlidingLog(_TargetTime):
    """At most `limit` units in any half-open span of `window_ms`: what came at t counts until just before t + window."""

    __slots__ = ("_limit", "_log", "_used", "_window_ms")

    def __init__(self, limit: int, window_ms: int) -> None:
        super().__init__()
        self._limit = at_least("limit", limit, 1)
        self._window_ms = at_least("window_ms", window_ms, 1)
        self._log: deque[tuple[int, int]] = deque()
        self._used = 0

    def arrive(self, now_ms: int, cost: int = 1) -> Judgement:
        """Passes while the last window has room; else waits until enough of the oldest has left it."""
        self._forget(now_ms, cost, 1)
        if self._used + cost <= self._limit:
            self._remember(now_ms, cost)
            return PASSED
        if cost > self._limit:
            return NEVER_BY_WAITING
        return Judgement(ok=False, wait_ms=self._freed_at_ms(self._used + cost - self._limit) - now_ms)

    def depart(self, now_ms: int, cost: int = 0) -> None:
        """Counts `cost` at the instant at which the answer ends."""
        self._forget(now_ms, cost, 0)
        if cost:
            self._remember(now_ms, cost)

    def _forget(self, now_ms: int, cost: int, smallest_cost: int) -> None:
        self._advance(now_ms, cost, smallest_cost)
        log = self._log
        while log and log[0][0] <= now_ms - self._window_ms:
            self._used -= log.popleft()[1]

    def _remember(self, now_ms: int, cost: int) -> None:
        self._log.append((now_ms, cost))
        self._used += cost

    def _freed_at_ms(self, missing: int) -> int:
        at_ms = self._now_ms
        for came_ms, cost in self._log:
            if missing <= 0:
                break
            missing -= cost
            at_ms = came_ms + self._window_ms
        return at_ms


class TokenBucket(_TargetTime):
    """A bucket of `burst` units, full at first, refilled at `limit` units per `window_ms`."""

    __slots__ = ("_burst", "_limit", "_tokens", "_window_ms")

    def __init__(self, limit: int, window_ms: int, burst: int) -> None:
        super().__init__()
        self._limit = at_least("limit", limit, 1)
        self._window_ms = at_least("window_ms", window_ms, 1)
        self._burst = at_least("burst", burst, 1) * window_ms
        self._tokens = self._burst  # counted in units * window_ms: a refill of dt is then dt * limit, with no fraction

    def arrive(self, now_ms: int, cost: int = 1) -> Judgement:
        """Passes if the bucket holds `cost`; else waits until it does."""
        self._refill(now_ms, cost, 1)
        missing = cost * self._window_ms - self._tokens
        if missing <= 0:
            self._tokens = -missing
            return PASSED
        if cost * self._window_ms > self._burst:
            return NEVER_BY_WAITING
        return Judgement(ok=False, wait_ms=-(-missing // self._limit))

    def depart(self, now_ms: int, cost: int = 0) -> None:
        """Takes `cost` out of the bucket, below zero if need be."""
        self._refill(now_ms, cost, 0)
        self._tokens -= cost * self._window_ms

    def _refill(self, now_ms: int, cost: int, smallest_cost: int) -> None:
        passed_ms = now_ms - self._now_ms
        self._advance(now_ms, cost, smallest_cost)
        self._tokens = min(self._burst, self._tokens + passed_ms * self._limit)


class Gcra(_TargetTime):
    """
    The generic cell rate algorithm (ITU-T I.371): a theoretical arrival time may run ahead of the clock.

    Each unit moves it by window/limit ms; it may lead by `tolerance` units, so that many pass at once after a rest.
    """

    __slots__ = ("_due", "_limit", "_tolerance", "_window_ms")

    def __init__(self, limit: int, window_ms: int, tolerance: int) -> None:
        super().__init__()
        self._limit = at_least("limit", limit, 1)
        self._window_ms = at_least("window_ms", window_ms, 1)
        self._tolerance = at_least("tolerance", tolerance, 1) * window_ms
        self._due = 0  # the theoretical arrival time in ms * limit: one unit is then window_ms, with no fraction

    def arrive(self, now_ms: int, cost: int = 1) -> Judgement:
        """Passes if the theoretical arrival time stays within the tolerance; else waits until it would."""
        self._advance(now_ms, cost, 1)
        due = max(self._due, now_ms * self._limit) + cost * self._window_ms
        early = due - self._tolerance - now_ms * self._limit
        if early <= 0:
            self._due = due
            return PASSED
        if cost * self._window_ms > self._tolerance:
            return NEVER_BY_WAITING
        return Judgement(ok=False, wait_ms=-(-early // self._limit))

    def depart(self, now_ms: int, cost: int = 0) -> None:
        """Moves the theoretical arrival time by `cost` units, beyond the tolerance if need be."""
        self._advance(now_ms, cost, 0)
        self._due = max(self._due, now_ms * self._limit) + cost * self._window_ms


class ConcurrencyCap(_TargetTime):
    """At most `limit` requests in progress, whatever they cost."""

    __slots__ = ("_busy", "_limit")

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = at_least("limit", limit, 1)
        self._busy = 0

    def arrive(self, now_ms: int, cost: int = 1) -> Judgement:
        """Passes while a place is free; a refusal names no wait, for an event frees the place and not the time."""
        self._advance(now_ms, cost, 1)
        if self._busy >= self._limit:
            return NEVER_BY_WAITING
        self._busy += 1
        return PASSED

    def depart(self, now_ms: int, cost: int = 0) -> None:
        """Frees one place; LabError if none is taken."""
        self._advance(now_ms, cost, 0)
        if not self._busy:
            raise LabError("depart", "nothing is in progress: only what had passed may depart")
        self._busy -= 1
