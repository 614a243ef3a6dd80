"""
Whether one host may be called at all now: the pause that it asked for, and its circuit breaker.

It stands where a model's key ring stands (`record.Ring`), with one nameless key: nobody's credential is ejected, the
host rests. A pause is the host's hint, else 1, 2, 4 ... 60 s; refusals of sends from before the last pause are one
event with it. The breaker is separate: a refusal proves that the host is there (design 4: Learning).
"""

from typing import Final

from swarmgate.core.backoff import longer_pause_ms
from swarmgate.core.circuit import ALIVE, Breaker, Circuit
from swarmgate.core.outcome import Kind, Outcome, QuotaLeft
from swarmgate.core.reasons import Reason
from swarmgate.core.view import STALLED_MS, BudgetState, KeyView

ONLY_KEY: Final = ""

_REFUSALS: Final = frozenset({Kind.RATE, Kind.DAILY})


class TargetRing:
    """The live state of one host; changed only here. `refused_since_ms` 0 = what was sent last was accepted."""

    __slots__ = ("_breaker", "_decided_ms", "_own_pause_ms", "paused_until_ms", "refused_since_ms")

    def __init__(self) -> None:
        self._breaker = Breaker()
        self._decided_ms = -1
        self._own_pause_ms = 0
        self.paused_until_ms = 0
        self.refused_since_ms = 0

    @property
    def circuit(self) -> Circuit:
        """The breaker's state."""
        return self._breaker.state

    def candidates(self, now_ms: int, _n: int = 1) -> tuple[str, ...]:
        """The only key if something may be sent now; in a half-open circuit that is its probe."""
        if now_ms < self.paused_until_ms or not self._breaker.admits(now_ms):
            return ()
        return (ONLY_KEY,)

    def unused(self, _key: str, asked_ms: int) -> bool:
        """What was let through at that instant was not sent; True if it was the probe of a half-open circuit."""
        return self._breaker.unused(asked_ms)

    def ready(self, now_ms: int) -> bool:
        """Whether `candidates` would let something through now; takes no probe."""
        return self.back_at_ms(now_ms) <= now_ms

    def back_at_ms(self, now_ms: int) -> int:
        """When something may be sent again."""
        return max(now_ms, self.paused_until_ms, self._breaker.opens_at_ms(now_ms))

    def observe(self, _key: str, outcome: Outcome, sent_ms: int, now_ms: int) -> bool:
        """Learn what a send came to; True if who waits for this host should ask again."""
        before = self._breaker.state
        changed = self._breaker.observe(outcome, sent_ms, now_ms)
        if outcome.kind in ALIVE:
            if sent_ms > self._decided_ms:
                self._own_pause_ms = self.refused_since_ms = 0
        elif outcome.kind in _REFUSALS:
            self._refused(outcome.hint_ms, sent_ms, now_ms)
        elif outcome.hint_ms:
            self.pause(now_ms + outcome.hint_ms)
        return changed and before is not Circuit.CLOSED

    def begun(self, _key: str, _sent_ms: int, _now_ms: int) -> bool:
        """A host is judged by how its answers end."""
        return False

    def report(self, _key: str, left: QuotaLeft, sent_ms: int, _now_ms: int) -> None:
        """Hear what an answer says is left: nothing means a rest until the reset."""
        if not left.remaining and sent_ms > self._decided_ms:
            self.pause(left.reset_at_ms)

    def revive(self) -> bool:
        """A person knows better than what the host asked for, or how it failed: try it at once."""
        was_out = bool(self.paused_until_ms) or self._breaker.state is not Circuit.CLOSED
        self._breaker = Breaker()
        self._decided_ms = -1
        self._own_pause_ms = self.paused_until_ms = self.refused_since_ms = 0
        return was_out

    def pause(self, until_ms: int) -> None:
        """Let nothing through before `until_ms`; a pause only gets longer."""
        self.paused_until_ms = max(self.paused_until_ms, until_ms)

    def why(self, now_ms: int) -> Reason:
        """Why nothing is let through."""
        if self.state(now_ms) is BudgetState.STALLED:
            return Reason.TARGET_STALLED
        return Reason.TARGET_BACKOFF if now_ms < self.paused_until_ms else Reason.TARGET_BROKEN

    def state(self, now_ms: int) -> BudgetState:
        """What a scheduler does with this host: stalled = refused for long, or paused for long."""
        refused_ms = now_ms - self.refused_since_ms if self.refused_since_ms else 0
        if max(refused_ms, self.back_at_ms(now_ms) - now_ms) >= STALLED_MS:
            return BudgetState.STALLED
        return BudgetState.READY if self.ready(now_ms) else BudgetState.BACKOFF

    def views(self, now_ms: int) -> dict[str, KeyView]:
        """The host as planners see it; takes no probe."""
        return {ONLY_KEY: KeyView(self.state(now_ms), self.back_at_ms(now_ms))}

    def _refused(self, hint_ms: int | None, sent_ms: int, now_ms: int) -> None:
        self.refused_since_ms = self.refused_since_ms or now_ms
        if sent_ms > self._decided_ms:
            self._decided_ms = now_ms
            if not hint_ms:
                self._own_pause_ms = longer_pause_ms(self._own_pause_ms)
                self.pause(now_ms + self._own_pause_ms)
        self.pause(now_ms + (hint_ms or 0))
