"""
The breaker of one rung: a circuit for each size of prompts (core/prompt_size.py), since a long one may be late where a short one is not.

Whoever is served says that shorter prompts would be; whoever was late for its size says that longer ones would be. What failed
in another way says nothing of sizes, so a target that is down is broken for all of them at once. A size rests if half of at least
twenty results failed, of all that say something of it; and if half of its own were late, however well shorter ones are served.
"""

from swarmgate.core.circuit import ALIVE, FAILED_PERCENT, FEWEST_RESULTS, SECONDS, Circuit, Rest
from swarmgate.core.outcome import Kind, Outcome
from swarmgate.core.prompt_size import PROMPT_SIZES
from swarmgate.core.recent import RecentCount


class RungBreaker:
    """The live state of one rung's circuits, `by_size` of the prompt; changed only here."""

    __slots__ = ("_alive", "_are_closed", "_failed", "_late", "by_size")

    def __init__(self) -> None:
        self.by_size = [Rest() for _ in range(PROMPT_SIZES)]
        self._are_closed = True
        self._alive = [RecentCount(SECONDS) for _ in range(PROMPT_SIZES)]  # by the size that was served
        self._failed = [RecentCount(SECONDS) for _ in range(PROMPT_SIZES)]  # by the size of which it says something
        self._late = [RecentCount(SECONDS) for _ in range(PROMPT_SIZES)]  # by the size that was late

    def observe(self, outcome: Outcome, size: int, sent_ms: int, now_ms: int) -> None:
        """Count what a send of a prompt of that size came to."""
        if outcome.kind in ALIVE:
            self._alive[size].add(now_ms)
            if not self._are_closed:
                self._served(outcome, size, sent_ms, now_ms)
        elif not outcome.breaks:
            if not self._are_closed:
                self.by_size[size].probed(outcome, sent_ms, now_ms)
        else:
            is_late = outcome.kind is Kind.CONTENT_TIMEOUT
            if is_late and self.by_size[size].counts(sent_ms):
                self._late[size].add(now_ms)
            for other in range(size if is_late else 0, PROMPT_SIZES):
                if self.by_size[other].counts(sent_ms):
                    self._count(other, now_ms)
                elif other == size:
                    self.by_size[size].probed(outcome, sent_ms, now_ms)

    def _served(self, outcome: Outcome, size: int, sent_ms: int, now_ms: int) -> None:
        """What rests has its probe, be it a longer prompt."""
        for smaller in self.by_size[: size + 1]:
            smaller.probed(outcome, sent_ms, now_ms)
        self._are_closed = all(rest.state is Circuit.CLOSED for rest in self.by_size)

    def _count(self, size: int, now_ms: int) -> None:
        """One more failure that says something of that size."""
        failed, late = self._failed[size], self._late[size]
        failed.add(now_ms)
        alive = [count.at(now_ms) for count in self._alive]
        if _is_broken(failed.total, sum(alive)) or _is_broken(late.at(now_ms), sum(alive[size:])):
            self._failed[size], self._late[size] = RecentCount(SECONDS), RecentCount(SECONDS)
            self.by_size[size].begin(now_ms)
            self._are_closed = False


def _is_broken(failed: int, alive: int) -> bool:
    results = failed + alive
    return results >= FEWEST_RESULTS and failed * 100 >= results * FAILED_PERCENT
