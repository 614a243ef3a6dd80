"""
Which faults are in force: the plan of a scenario, asked at the instant at which it matters.

Here is only the answering; what a fault does is done where it strikes (network, target, gate, store).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random

from swarmgate.core.record import Call, State
from swarmgate.lab.faults import Fault, FaultKind
from swarmgate.lab.sim.virtual_time import VirtualTime


class Weather:
    """The faults of one world; `pairs` counts in which states calls were that a fault struck."""

    __slots__ = ("_rng", "_time", "met", "pairs", "plan")

    def __init__(self, plan: Sequence[Fault], time: VirtualTime, rng: Random) -> None:
        self.plan = tuple(plan)
        self.met: dict[FaultKind, int] = {}
        self.pairs: Counter[tuple[FaultKind, State]] = Counter()
        self._time = time
        self._rng = rng

    def now(self, kind: FaultKind, where: str) -> Fault | None:
        """The fault of that kind that is in force there now."""
        now_ms = self._time.now_ms()
        for fault in self.plan:
            if fault.kind == kind and fault.where == where and fault.at_ms <= now_ms < fault.ends_ms:
                return fault
        return None

    def strikes(self, kind: FaultKind, where: str) -> bool:
        """Whether a fault that strikes `amount` per mille strikes this time."""
        fault = self.now(kind, where)
        if fault is None or self._rng.randrange(1000) >= fault.amount:
            return False
        self.meet(kind)
        return True

    def meet(self, kind: FaultKind) -> None:
        """Count that a fault changed something."""
        self.met[kind] = self.met.get(kind, 0) + 1

    def hit(self, kind: FaultKind, calls: Iterable[Call]) -> None:
        """A fault begins while these calls are in its reach."""
        self.pairs.update((kind, call.state) for call in calls)

    def more_ms(self, kind: FaultKind, where: str) -> int:
        """The delay that a fault adds now."""
        fault = self.now(kind, where)
        if fault is None:
            return 0
        self.meet(kind)
        return fault.amount

    def moves_at_ms(self, where: str) -> int:
        """When bytes move again on the way to or from a target: now, or at the end of a stall."""
        fault = self.now("stall", where)
        if fault is None:
            return self._time.now_ms()
        self.meet("stall")
        return fault.ends_ms
