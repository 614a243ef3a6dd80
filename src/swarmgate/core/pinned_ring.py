"""
A key ring held to the keys of its first account: what one account keeps (a file, a batch) no other one knows.

It is the same ring, seen through one scope: what is learned here holds there, and the other way round. While that account is
out there is no other to go to.
"""

from swarmgate.core.keys import KeyRing
from swarmgate.core.limits import EXACT
from swarmgate.core.outcome import Outcome, QuotaLeft
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Ring, Rung
from swarmgate.core.view import BudgetState, KeyView


class PinnedRing:
    """Those of a ring's keys that are counted together with its first one (`record.Ring`)."""

    __slots__ = ("_keys", "_ring")

    def __init__(self, ring: Ring, keys: tuple[str, ...]) -> None:
        self._ring = ring
        self._keys = keys

    def candidates(self, now_ms: int, _n: int = 1) -> tuple[str, ...]:
        """The first key that is not out: the others of its account would find the same quota."""
        views = self._ring.views(now_ms)
        return tuple([key for key in self._keys if views[key].state is BudgetState.READY][:1])

    def unused(self, _key: str, _asked_ms: int) -> bool:
        """It takes no turn, so nothing is given back."""
        return False

    def ready(self, now_ms: int) -> bool:
        """Whether `candidates` would find one."""
        return bool(self.candidates(now_ms))

    def back_at_ms(self, now_ms: int) -> int | None:
        """When there may be one again; None if only a person can bring one back."""
        views = self._ring.views(now_ms)
        back_ms = min(views[key].back_at_ms for key in self._keys)
        return None if back_ms >= EXACT else back_ms

    def why(self, now_ms: int) -> Reason:
        """Why there is none."""
        return self._ring.why(now_ms)

    def views(self, now_ms: int) -> dict[str, KeyView]:
        """Each of its keys as planners see it."""
        views = self._ring.views(now_ms)
        return {key: views[key] for key in self._keys}

    def observe(self, key: str, outcome: Outcome, sent_ms: int, now_ms: int) -> bool:
        """Learn what a send came to."""
        return self._ring.observe(key, outcome, sent_ms, now_ms)

    def begun(self, key: str, sent_ms: int, now_ms: int) -> bool:
        """Hear that an answer began."""
        return self._ring.begun(key, sent_ms, now_ms)

    def report(self, key: str, left: QuotaLeft, sent_ms: int, now_ms: int) -> None:
        """Hear what an answer says is left."""
        self._ring.report(key, left, sent_ms, now_ms)

    def revive(self) -> bool:
        """Bring back what only a person can."""
        return self._ring.revive()


def pinned(rung: Rung) -> Rung:
    """The rung with the keys of its first account alone; itself if it has no other."""
    if not isinstance(rung.ring, KeyRing):
        return rung
    first, *others = rung.ring.counts[0]
    if not others:
        return rung
    keys = first.keys
    routes = {key: rung.routes[key] for key in keys}
    return rung._replace(ring=PinnedRing(rung.ring, keys), routes=routes)
