"""
What happens while the shared store is lost: each budget's declared mode (design 2: P10).

`local-share` (default) decides in this process with the budget's share, from cold, and reports as debt what it granted
and its buckets still hold when the store is back; lines and classes across processes are suspended. `closed` admits
nothing, `open` everything. A share that cannot hold the call is closed. The rule of shares is pure (`share_of`); here
it is only driven. While every process is cut off, shares and store together keep the budget's bound; a process that is
cut off alone adds its share of the rate to it (reliability ST-02).
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Final

from swarmgate.core import kernel
from swarmgate.core.answers import Denied, Granted, Revised
from swarmgate.core.book import Book, BudgetCell, Demand, Take, Used
from swarmgate.core.events import Event, StoreLost
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.passage import touch
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call
from swarmgate.core.shares import share_of
from swarmgate.ports import BudgetStore, Clock, Fire

PROBE_MS: Final = 250
CROWDED: Final = StoreLost(Reason.GATE_STORE_CROWDED)  # the store lives; who is told asks again


class OutageMode(StrEnum):
    """What a budget does without its store."""

    LOCAL_SHARE = "local-share"
    CLOSED = "closed"
    OPEN = "open"


class Guard:
    """
    A budget store that always decides within 100 ms; `lost` says loudly that it decides alone.

    `limits` and `modes` name every budget; `gates` is how many processes share the store. `back` is told of budgets of
    which what callers were told no longer counts: at a return those that this process has decided alone, and all when
    the store's clock has jumped forward, since whoever sleeps until an instant would sleep through it.
    """

    __slots__ = (
        "_ahead_ms",
        "_asked",
        "_clock",
        "_local",
        "_probe_ms",
        "_remote",
        "back",
        "fire",
        "gates",
        "limits",
        "local_grants",
        "losses",
        "lost",
        "modes",
        "reported_units",
    )

    def __init__(self, remote: BudgetStore, clock: Clock, gates: int) -> None:
        self._remote = remote
        self._clock = clock
        self._asked: dict[str, Take] = {}
        self._ahead_ms: int | None = None  # the store's clock before ours
        self._local = Book(clock.now_ms())
        self._probe_ms = 0
        self.fire: Fire
        self.back: Callable[[tuple[str, ...]], None] = lambda _budgets: None
        self.gates = gates
        self.limits: dict[str, Limits] = {}
        self.modes: dict[str, OutageMode] = {}
        self.lost = False
        self.losses = self.local_grants = self.reported_units = 0

    def take(self, call: Call, request: Take) -> None:
        """Ask the store, or decide alone while it is lost."""
        now_ms = self._clock.now_ms()
        if self.lost and now_ms < self._probe_ms:
            self._alone(call, request, now_ms)
            return
        self._probe_ms = now_ms + PROBE_MS
        self._asked[call.id] = request
        self._remote.take(call, request)

    def heard(self, call: Call, event: Event) -> None:
        """The store's answer, or its silence."""
        request = self._asked.pop(call.id)
        now_ms = self._clock.now_ms()
        if event == CROWDED and not self.lost:
            self.fire(call, event)
            return
        if isinstance(event, StoreLost):
            self._probe_ms = now_ms + PROBE_MS
            if not self.lost:
                self.lost = True
                self.losses += 1
                self._local = Book(now_ms)
            self._alone(call, request, now_ms)
            return
        if self.lost:
            self._returned(now_ms)
        if isinstance(event, Granted | Denied):
            ahead_ms, self._ahead_ms = self._ahead_ms, event.now_ms - now_ms
            if ahead_ms is not None and self._ahead_ms - ahead_ms > kernel.CLOCK_STEP_MS:
                self.back(tuple(self.limits))
        self.fire(call, event)

    def _alone(self, call: Call, request: Take, now_ms: int) -> None:
        possible: list[tuple[int, tuple[Demand, ...]]] = []
        for index, demands in enumerate(request.alternatives):
            own = self._own_demands(demands)
            if own is not None:
                possible.append((index, own))
        if not possible:
            self.fire(call, StoreLost(Reason.GATE_STORE_LOST))
            return
        answer = kernel.take(
            self._local,
            request._replace(alternatives=tuple(demands for _, demands in possible), waits=False, standing=()),
            now_ms,
        )
        chosen = possible[answer.chosen][0]
        if isinstance(answer, Granted):
            self.local_grants += 1
            if request.standing:
                self._remote.leave(request.ticket, request.standing)
            self.fire(call, answer._replace(chosen=chosen))
        else:
            self.fire(call, answer._replace(chosen=chosen, score=request.score, lines=request.standing))

    def _own_demands(self, demands: tuple[Demand, ...]) -> tuple[Demand, ...] | None:
        """What the local book is asked for; None if a budget is closed without its store."""
        own = []
        for name, cost, reserve in demands:
            mode = self.modes.get(name, OutageMode.LOCAL_SHARE)
            share = share_of(self.limits[name], self.gates, cost + reserve)
            if mode is OutageMode.CLOSED or (mode is OutageMode.LOCAL_SHARE and share is None):
                return None
            if mode is OutageMode.LOCAL_SHARE and share is not None:
                kernel.define(self._local, name, share)
                own.append((name, cost, reserve))
        return tuple(own)

    def _returned(self, now_ms: int) -> None:
        """
        The store is back: what the shares still hold becomes debt there, and reservations in them count as used.

        Places that are in use are told under the names of their leases, so that the store holds them until they end.
        """
        self.lost = False
        usage = []
        for name, cell in self._local.cells.items():
            touch(cell, now_ms)
            if cell.limits.kind is BudgetKind.LEASES:
                self._told(cell)
                continue
            held = self._held(cell, now_ms)
            if held:
                usage.append((name, 0, held))
                self.reported_units += held
        if usage:
            self._remote.settle(f"debt-{self.losses}", tuple(usage), last=True)
        self.back(tuple(self._local.cells))

    def _told(self, cell: BudgetCell) -> None:
        for key, held in cell.leases.items():
            if key != kernel.COLD:
                self._remote.settle(key, ((cell.name, 0, held.amount),), last=False)
                self.reported_units += held.amount
                if held.firm:  # it has ended here and its hold runs; a whole one there is no shorter
                    self._remote.settle(key, ((cell.name, 0, 0),), last=True)

    def _held(self, cell: BudgetCell, now_ms: int) -> int:
        """Units that a bucket's share granted and still holds; what it began with, being cold, was used by nobody."""
        cold = max(0, cell.limits.burst * cell.scale - cell.drain * (now_ms - self._local.birth_ms))
        return -(-(cell.level - cold) // cell.scale) + cell.pending

    def _own(self, lease: str, budgets: Iterable[str]) -> bool:
        """Whether the lease is held here. After the return nothing is: it was told, as used or as a place in use."""
        cells = self._local.cells
        return self.lost and any(name in cells and lease in cells[name].leases for name in budgets)

    def settle(self, lease: str, usage: tuple[Used, ...], *, last: bool) -> None:
        """Tell whoever granted the lease."""
        if self._own(lease, (told[0] for told in usage)):
            kernel.settle(self._local, lease, usage, self._clock.now_ms(), last=last)
        else:
            self._remote.settle(lease, usage, last=last)

    def release(self, lease: str, budgets: tuple[str, ...]) -> None:
        """End reservations where they were granted."""
        if self._own(lease, budgets):
            kernel.release(self._local, lease, budgets, self._clock.now_ms())
        else:
            self._remote.release(lease, budgets)

    def renew(self, lease: str, budgets: tuple[str, ...], lease_ms: int) -> None:
        """Keep reservations where they were granted."""
        if self._own(lease, budgets):
            kernel.renew(self._local, lease, budgets, lease_ms, self._clock.now_ms())
        else:
            self._remote.renew(lease, budgets, lease_ms)

    def leave(self, ticket: str, lines: tuple[str, ...]) -> None:
        """Give up a place in the shared lines."""
        self._remote.leave(ticket, lines)

    def define(self, budget: str, limits: Limits) -> None:
        """Make the budget known to both."""
        self.limits[budget] = limits
        self._remote.define(budget, limits)

    def revise(self, budget: str, expected: int, limits: Limits, done: Callable[[Revised], None]) -> None:
        """Limits change in the shared store only; a share follows at the next loss."""

        def heard(answer: Revised) -> None:
            if answer.done or answer.revision == limits.revision:  # another process was first
                self.limits[budget] = limits
            done(answer)

        self._remote.revise(budget, expected, limits, heard)
