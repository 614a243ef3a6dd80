"""
What is checked while a world runs: the admission bound, and the order of lines (design 2: P1, P5).

The bound is counted from what left, with arithmetic of its own. The order is judged after each grant: no better live
ticket of a touched line may have its earliest start moved by it, however many tickets stand there.
"""

from collections.abc import Iterable

from swarmgate.core import kernel
from swarmgate.core.answers import Denied, Granted
from swarmgate.core.book import Book, BudgetCell, Take
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.line import CLASS_STEP, UNCLAIMED_MS, Entry, Need, earliest
from swarmgate.core.record import Call
from swarmgate.lab.sim.policies import TargetPolicy
from swarmgate.lab.sim.virtual_time import VirtualTime
from swarmgate.ports import Clock, Fire
from swarmgate.stores.memory.store import MemoryStore

JUDGE_AT_MOST = 256


class Bound:
    """Whether what left of one budget kept burst + rate * T in every window so far, in whole scaled units."""

    __slots__ = ("burst", "excess", "least", "limits", "total")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.total = 0
        self.least: int | None = None
        self.excess = 0

    def count(self, now_ms: int, units: int) -> None:
        """Units left now."""
        drained = self.limits.quota * now_ms
        before = self.total - drained
        self.least = before if self.least is None else min(self.least, before)
        self.total += units * self.limits.window_ms
        over = self.total - drained - self.least - self.limits.burst * self.limits.window_ms
        self.excess = max(self.excess, over)


class Umpire:
    """Judges grants and departures of the gates it watches; `inversions` and `over_bound` must stay 0."""

    __slots__ = ("bounds", "earliest_ms", "inversions", "orders", "time")

    def __init__(self, time: VirtualTime, policies: Iterable[TargetPolicy]) -> None:
        self.time = time
        self.inversions = 0
        self.earliest_ms: dict[str, int] = {}
        self.orders = True
        self.bounds = {
            name: Bound(limits)
            for policy in policies
            for name, limits in policy.limits()
            if limits.kind is BudgetKind.LEVEL and not policy.hidden  # a learned limit has no one bound
        }

    @property
    def over_bound(self) -> int:
        """How many budgets were exceeded at admission, at any time."""
        return sum(bound.excess > 0 for bound in self.bounds.values())

    def sent(self, call: Call) -> None:
        """A request leaves: count what it took at once of budgets of requests."""
        if call.route is not None:
            for name, cost, _ in call.route.fixed:
                if name in self.bounds:
                    self.bounds[name].count(self.time.now_ms(), cost)

    def denied(self, call: Call, denied: Denied) -> None:
        """Remember when a call could first have started, if it had had no rival."""
        self.earliest_ms.setdefault(call.id, max(blocker.at_ms for blocker in denied.blockers))

    def judge(self, book: Book, request: Take, granted: Granted) -> None:
        """A grant must not have moved the earliest start of a better live ticket."""
        if not self.orders:
            return
        for name, cost, reserve in request.alternatives[granted.chosen]:
            cell = book.cells[name]
            for score, ticket in cell.line.order[:JUDGE_AT_MOST]:
                if score >= request.score:
                    break
                entry = cell.line.entries[ticket]
                if self._lives(entry) and ticket != request.ticket:
                    after_ms = self._start(cell, entry, (0, 0))
                    before_ms = self._start(cell, entry, (cost, reserve))
                    if before_ms is not None and (after_ms is None or after_ms > before_ms):
                        self.inversions += 1
                        self.time.trace("inversion", name, ticket, request.ticket)

    def _lives(self, entry: Entry) -> bool:
        now_ms = self.time.now_ms()
        return entry.expires_ms > now_ms and entry.due_ms + UNCLAIMED_MS >= now_ms and not entry.event

    def _start(self, cell: BudgetCell, entry: Entry, less: Need) -> int | None:
        """
        When the ticket could start, as if `less` had not been taken from `cell`.

        Of interchangeable budgets it will take the one, at the instant, that its last denial told, while that lies ahead.
        """
        cell.level -= less[0] * cell.scale
        cell.pending -= less[1]
        here_ms = earliest(cell, entry.score // CLASS_STEP, entry.need, self.time.now_ms())
        cell.level += less[0] * cell.scale
        cell.pending += less[1]
        if cell.limits.line and cell.name != entry.at and entry.ready_ms > self.time.now_ms():
            return entry.ready_ms
        return None if here_ms is None else max(here_ms, entry.ready_ms)


class JudgedStore(MemoryStore):
    """The store of one process under the umpire's eyes."""

    __slots__ = ("_now_ms", "_umpire")

    def __init__(self, clock: Clock, fire: Fire, umpire: Umpire) -> None:
        super().__init__(clock, fire)
        self._now_ms = clock.now_ms
        self._umpire = umpire

    def take(self, call: Call, request: Take) -> None:
        """Decide as ever, and have it judged."""
        answer = kernel.take(self.book, request, self._now_ms())
        if isinstance(answer, Denied):
            self._umpire.denied(call, answer)
        else:
            self._umpire.judge(self.book, request, answer)
        self.fire(call, answer)
