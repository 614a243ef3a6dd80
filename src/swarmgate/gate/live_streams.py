"""
How many streams may run at once: beyond that, new ones wait in line instead of starving those that run.

One loop serves so many streams on time and no more (benchmarks/README.md). The cap is a budget like any other, so better
calls go first and a deferral names it; it is only of this process, and nothing of it outlives the process.
"""

from typing import Final

from swarmgate.core.caps import ANY_TARGET
from swarmgate.core.compiler import Published, Unit
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.record import Call, Route
from swarmgate.ports import BudgetStore

MOST_LIVE: Final = 2_000  # at the 25 chunks a second of a usual model; half as many at twice the rate
MOST_KNOWN: Final = 4_096
_Caps = dict[str, Route]


class LiveStreams:
    """The cap of one gate; `admit` makes a call take from it."""

    __slots__ = ("_alone", "_known", "_route")

    def __init__(self, store: BudgetStore, published: dict[str, Published], name: str, most: int = MOST_LIVE) -> None:
        store.define(name, Limits(BudgetKind.LEASES, burst=most))
        published[name] = Published(most, unit=Unit.CONCURRENT)
        self._route = Route("", ((name, 0, 1),), whole=(name,))
        self._alone = {ANY_TARGET: self._route}
        self._known: dict[int, tuple[_Caps, _Caps]] = {}  # by the identity of a caller's own caps

    def admit(self, call: Call) -> None:
        """Let the call take one place, besides what its caller's caps take."""
        caps = call.caps
        if caps is None:
            call.caps = self._alone
            return
        known = self._known.get(id(caps))
        if known is None or known[0] is not caps:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = (caps, {target: route.plus(self._route) for target, route in caps.items()})
            self._known[id(caps)] = known
        call.caps = known[1]
