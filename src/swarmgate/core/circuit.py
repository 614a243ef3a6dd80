"""
The breaker of one target: when most sends fail, stop sending, and let one probe find out when to resume.

It is separate from budgets: a budget says how much a target takes, a breaker whether it is there at all. A 429 proves
that it is (outcome.breaks is False), so refusals neither open nor close anything. Results of sends from before the
last change of state belong to the past and are ignored.
"""

from enum import StrEnum
from typing import Final

from swarmgate.core.outcome import Kind, Outcome
from swarmgate.core.recent import RecentCount

SECONDS: Final = 10
FEWEST_RESULTS: Final = 20  # below this a share says nothing
FAILED_PERCENT: Final = 50
FIRST_OPEN_MS: Final = 5_000
LONGEST_OPEN_MS: Final = 60_000
PROBE_LOST_MS: Final = 10_000  # a probe whose result never came no longer holds the next one back

ALIVE: Final = frozenset({Kind.OK, Kind.CALLER_ERROR})  # answers of a target that is well


class Circuit(StrEnum):
    """CLOSED lets everything through, OPEN nothing, HALF_OPEN one probe at a time."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Rest:
    """When a circuit opens, for how long, and what ends that; changed only by who counts for it."""

    __slots__ = ("_changed_ms", "_open_ms", "_probe_until_ms", "_until_ms", "state")

    def __init__(self) -> None:
        self.state = Circuit.CLOSED
        self._changed_ms = -1
        self._until_ms = 0
        self._open_ms = 0
        self._probe_until_ms = 0

    def admits(self, now_ms: int) -> bool:
        """Whether a send may leave now; True in HALF_OPEN hands out the probe."""
        if self.state is Circuit.CLOSED:
            return True
        if self.state is Circuit.OPEN:
            if now_ms < self._until_ms:
                return False
            self._change(Circuit.HALF_OPEN, self._until_ms)
        if now_ms < self._probe_until_ms:
            return False
        self._probe_until_ms = now_ms + PROBE_LOST_MS
        return True

    def is_open(self, now_ms: int) -> bool:
        """Whether not even a probe may leave yet; hands out none."""
        return self.state is Circuit.OPEN and now_ms < self._until_ms

    def unused(self, asked_ms: int) -> bool:
        """What was admitted at that instant did not leave; True if it was the probe, which is free again."""
        mine = self._probe_until_ms == asked_ms + PROBE_LOST_MS
        if mine:
            self._probe_until_ms = asked_ms
        return mine

    def opens_at_ms(self, now_ms: int) -> int:
        """The earliest instant at which `admits` may be True again."""
        waits = {Circuit.CLOSED: now_ms, Circuit.OPEN: self._until_ms, Circuit.HALF_OPEN: self._probe_until_ms}
        return max(now_ms, waits[self.state])

    def counts(self, sent_ms: int) -> bool:
        """Whether what was sent then says how the target is now: it is closed, and was when that left."""
        return self.state is Circuit.CLOSED and sent_ms >= self._changed_ms

    def begin(self, now_ms: int) -> None:
        """Most sends failed: open for the first time."""
        self._open_ms = FIRST_OPEN_MS
        self._open(now_ms)

    def probed(self, outcome: Outcome, sent_ms: int, now_ms: int) -> bool:
        """What a send came to while this is not closed; True if the state changed by it."""
        if self.state is Circuit.CLOSED or sent_ms < self._changed_ms:
            return False
        if self.state is Circuit.OPEN:
            if sent_ms < self._until_ms:
                return False
            self._change(
                Circuit.HALF_OPEN, self._until_ms
            )  # sent unasked, where nothing else serves: as good as a probe
        self._probe_until_ms = 0
        if outcome.kind in ALIVE:
            self._change(Circuit.CLOSED, now_ms)
            return True
        if outcome.breaks:
            self._open_ms = min(LONGEST_OPEN_MS, 2 * self._open_ms)
            self._open(now_ms)
            return True
        return False  # a refusal: there, but busy; the next send is the next probe

    def _open(self, now_ms: int) -> None:
        self._until_ms = now_ms + self._open_ms
        self._change(Circuit.OPEN, now_ms)

    def _change(self, state: Circuit, now_ms: int) -> None:
        self.state = state
        self._changed_ms = now_ms
        self._probe_until_ms = 0


class Breaker(Rest):
    """The live state of one target's circuit; changed only here."""

    __slots__ = ("_alive", "_failed")

    def __init__(self) -> None:
        super().__init__()
        self._forget()

    def observe(self, outcome: Outcome, sent_ms: int, now_ms: int) -> bool:
        """Count what a send came to; True if the state changed by it."""
        if self.state is not Circuit.CLOSED:
            return self.probed(outcome, sent_ms, now_ms)
        if sent_ms < self._changed_ms:
            return False
        if outcome.kind in ALIVE:
            self._alive.add(now_ms)
        elif outcome.breaks:
            self._failed.add(now_ms)
            failed = self._failed.total
            results = failed + self._alive.at(now_ms)
            if results >= FEWEST_RESULTS and failed * 100 >= results * FAILED_PERCENT:
                self._forget()
                self.begin(now_ms)
                return True
        return False

    def _forget(self) -> None:
        self._alive = RecentCount(SECONDS)
        self._failed = RecentCount(SECONDS)
