"""
What is checked while a world runs, take by take (design 2: P1, P3, P5, P6); every counter must stay 0.

The bound is counted from what was admitted, with arithmetic of its own. A denial must leave every budget as it was, a
grant change its own alternative only. No better live ticket of a touched line may have its earliest start moved by a
grant, however many tickets stand there. And who was told an instant would be admitted then, if nobody else came.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from swarmgate.core import kernel
from swarmgate.core.answers import BlockKind, Denied, Granted
from swarmgate.core.book import Book, BudgetCell, Lease, Take
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.line import CLASS_STEP, UNCLAIMED_MS, Entry, Line, Need, earliest
from swarmgate.core.operations import Reply
from swarmgate.core.record import Call
from swarmgate.lab.sim.policies import TargetPolicy
from swarmgate.lab.sim.virtual_time import VirtualTime
from swarmgate.ports import Clock, Fire
from swarmgate.stores.memory.store import MemoryStore

JUDGE_AT_MOST = 256
EVERY_PROMISE = 7  # one promised instant of so many is tried on a copy


class Bound:
    """Whether what left of one budget kept burst + rate * T in every window so far, in whole scaled units."""

    __slots__ = ("excess", "least", "limits", "total")

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


class _Fill(NamedTuple):
    """What a budget held before a take."""

    cell: BudgetCell
    level: int
    pending: int
    at_ms: int
    due_ms: int

    def at(self, now_ms: int) -> tuple[int, int]:
        """The same, drained until `now_ms`."""
        return max(0, self.level - self.cell.drain * (now_ms - self.at_ms)), self.pending


def _fill(cell: BudgetCell) -> _Fill:
    return _Fill(cell, cell.level, cell.pending, cell.at_ms, cell.due_ms)


class Umpire:
    """Judges what the watched books decide; `broken` counts by promise, `forgiven` faults may add one burst each."""

    __slots__ = ("_bounds", "_over", "_promises", "broken", "earliest_ms", "forgiven", "orders", "time")

    def __init__(self, time: VirtualTime, policies: Iterable[TargetPolicy], forgiven: int = 0) -> None:
        self.time = time
        self.broken: Counter[str] = Counter()
        self.earliest_ms: dict[str, int] = {}
        self.orders = True
        self.forgiven = forgiven
        self._over: set[str] = set()
        self._promises = 0
        self._bounds = {
            name: Bound(limits)
            for policy in policies
            for name, limits in policy.limits()
            if limits.kind is BudgetKind.LEVEL and not policy.hidden  # a learned limit has no one bound
        }

    @property
    def inversions(self) -> int:
        """How many better tickets were delayed."""
        return self.broken["P5"]

    @property
    def over_bound(self) -> int:
        """How many budgets were exceeded at admission, at any time."""
        return len(self._over)

    def revised(self, name: str, limits: Limits) -> None:
        """From now on the new bound holds; until now the old one did (reliability RB-13)."""
        if name in self._bounds:
            self._bounds[name] = Bound(limits)

    def denied(self, call: Call, denied: Denied) -> None:
        """Remember when a call could first have started, if it had had no rival."""
        self.earliest_ms.setdefault(call.id, max(blocker.at_ms for blocker in denied.blockers))

    def watch(self, book: Book, request: Take, decide: Callable[[], Reply]) -> Reply:
        """Let a take be decided, and judge it."""
        names = {name for demands in request.alternatives for name, _, _ in demands}
        before = [_fill(book.cells[name]) for name in names if name in book.cells]
        places = _places(before, request)
        reply = decide()
        if isinstance(reply, Granted):
            self._whole(before, request, reply)
            self._count(request, reply)
            if self.orders:
                self._order(book, request, reply, places)
        elif isinstance(reply, Denied):
            self._whole(before, request, reply)
            self._promised(book, request, reply)
        return reply

    def _whole(self, before: list[_Fill], request: Take, reply: Granted | Denied) -> None:
        """All or nothing; where something lapsed or was forgotten meanwhile, the kernel's own tests must do."""
        taken = {}
        if isinstance(reply, Granted):
            taken = {name: (cost, reserve) for name, cost, reserve in request.alternatives[reply.chosen]}
        for fill in before:
            cell, now_ms = fill.cell, reply.now_ms
            if fill.due_ms > now_ms and not cell.slices:
                level, pending = fill.at(now_ms)
                cost, reserve = taken.get(cell.name, (0, 0))
                if _fill(cell).at(now_ms) != (level + cost * cell.scale, pending + reserve):
                    self.broken["P3"] += 1
                    self.time.trace("not whole", cell.name, request.ticket)

    def _count(self, request: Take, granted: Granted) -> None:
        for name, cost, _ in request.alternatives[granted.chosen]:
            bound = self._bounds.get(name)
            if bound is not None and cost:
                bound.count(self.time.now_ms(), cost)
                if bound.excess > self.forgiven * bound.limits.burst * bound.limits.window_ms:
                    self._over.add(name)

    def _promised(self, book: Book, request: Take, denied: Denied) -> None:
        """Who waits for time alone and repeats at that instant is admitted, if nobody else came."""
        self._promises += denied.kind is BlockKind.TIME
        if denied.kind is not BlockKind.TIME or self._promises % EVERY_PROMISE:
            return
        names = {name for demands in request.alternatives for name, _, _ in demands}
        alone = Book(book.birth_ms)
        alone.now_ms = denied.now_ms
        alone.cells = {name: _copy(book.cells[name]) for name in names}
        repeat = request._replace(standing=(), score=denied.score, waits=False)
        if not isinstance(kernel.take(alone, repeat, denied.not_before_ms), Granted):
            self.broken["P6"] += 1
            self.time.trace("broken promise", request.ticket)

    def _order(self, book: Book, request: Take, granted: Granted, places: dict[str, int]) -> None:
        """A grant must not have moved the earliest start of a better live ticket."""
        now_ms = granted.now_ms
        for name, cost, reserve in request.alternatives[granted.chosen]:
            cell = book.cells[name]
            for score, ticket in cell.line.order[:JUDGE_AT_MOST]:
                if score >= places.get(name, request.score):
                    break
                entry = cell.line.entries[ticket]
                if _lives(entry, now_ms) and not _stands_aside(entry, cell):
                    after_ms = _start(cell, entry, (0, 0), now_ms)
                    before_ms = _start(cell, entry, (cost, reserve), now_ms)
                    if before_ms is not None and (after_ms is None or after_ms > before_ms):
                        self.broken["P5"] += 1
                        self.time.trace("inversion", name, ticket, request.ticket)


def _places(fills: list[_Fill], request: Take) -> dict[str, int]:
    """Where the ticket stands, by budget, though its caller may not know: an answer was lost, or it is about to leave."""
    entries = [(fill.cell.name, fill.cell.line.entries.get(request.ticket)) for fill in fills]
    return {name: entry.score for name, entry in entries if entry is not None}


def _lives(entry: Entry, now_ms: int) -> bool:
    return entry.expires_ms > now_ms and entry.due_ms + UNCLAIMED_MS >= now_ms and entry.kind is not BlockKind.EVENT


def _stands_aside(entry: Entry, cell: BudgetCell) -> bool:
    """
    Whether nobody has to wait for it here: it is held up at an earlier tier, and nobody knows until when.

    Nobody knows either, of places, when the one comes back that it would have to share.
    """
    tier = cell.limits.tier
    return entry.stands_aside(tier) or (entry.is_aside(tier) and cell.limits.kind is BudgetKind.LEASES)


def _start(cell: BudgetCell, entry: Entry, less: Need, now_ms: int) -> int | None:
    """
    When the ticket could start, as if `less` had not been taken from `cell`.

    Of interchangeable budgets it will take the one, at the instant, that its last denial told, while that lies ahead.
    """
    if cell.limits.line and cell.name != entry.at and entry.ready_ms > now_ms:
        return entry.ready_ms
    cell.level -= less[0] * cell.scale
    cell.pending -= less[1]
    here_ms = earliest(cell, entry.score // CLASS_STEP, entry.need, now_ms)
    cell.level += less[0] * cell.scale
    cell.pending += less[1]
    return None if here_ms is None else max(here_ms, entry.ready_ms)


def _copy(cell: BudgetCell) -> BudgetCell:
    """The budget alone, without anybody in its line."""
    copy = BudgetCell(cell.name, cell.limits, Line(cell.line.name), cell.at_ms)
    copy.level, copy.pending, copy.due_ms = cell.level, cell.pending, cell.due_ms
    copy.slices = None if cell.slices is None else dict(cell.slices)
    for key, held in cell.leases.items():
        lease = copy.leases[key] = Lease()
        lease.amount, lease.expires_ms, lease.firm = held.amount, held.expires_ms, held.firm
    return copy


class JudgedStore(MemoryStore):
    """The store of one process under the umpire's eyes."""

    __slots__ = ("_now_ms", "_umpire")

    def __init__(self, clock: Clock, fire: Fire, umpire: Umpire, book: Book | None) -> None:
        super().__init__(clock, fire, book)
        self._now_ms = clock.now_ms
        self._umpire = umpire

    def take(self, call: Call, request: Take) -> None:
        """Decide as ever, and have it judged."""
        answer = self._umpire.watch(self.book, request, lambda: kernel.take(self.book, request, self._now_ms()))
        if isinstance(answer, Denied):
            self._umpire.denied(call, answer)
        if isinstance(answer, Granted | Denied):
            self.fire(call, answer)
