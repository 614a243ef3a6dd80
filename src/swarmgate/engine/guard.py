"""
What happens while the shared store is lost: each budget's declared mode (design 2: P10).

`local-share` (default) decides in this process with the budget's share, from cold, and reports what its buckets still
hold as debt when the store is back; lines and classes across processes are suspended. `closed` admits nothing, `open`
everything. A share that cannot hold the call is closed. The rule of shares is pure (`share_of`); here it is only driven.
"""

from collections.abc import Callable
from enum import StrEnum

from swarmgate.core import kernel
from swarmgate.core.answers import Granted, Revised
from swarmgate.core.book import Book, Demand, Take, Usage
from swarmgate.core.events import Event, StoreLost
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.passage import touch
from swarmgate.core.record import Call
from swarmgate.core.shares import share_of
from swarmgate.ports import BudgetStore, Clock, Fire

PROBE_MS = 250


class OutageMode(StrEnum):
    """What a budget does without its store."""

    LOCAL_SHARE = "local-share"
    CLOSED = "closed"
    OPEN = "open"


class Guard:
    """
    A budget store that always decides within 100 ms; `lost` says loudly that it decides alone.

    `limits` and `modes` name every budget; `gates` is how many processes share the store.
    """

    __slots__ = (
        "_asked",
        "_clock",
        "_local",
        "_own",
        "_probe_ms",
        "_remote",
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
        self._own: set[str] = set()
        self._local = Book(clock.now_ms())
        self._probe_ms = 0
        self.fire: Fire
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
        request = self._asked.pop(call.id, None)
        now_ms = self._clock.now_ms()
        if isinstance(event, StoreLost) and request is not None:
            if not self.lost:
                self.lost = True
                self.losses += 1
                self._local = Book(now_ms)
            self._probe_ms = now_ms + PROBE_MS
            self._alone(call, request, now_ms)
            return
        if self.lost:
            self._returned(now_ms)
        self.fire(call, event)

    def _alone(self, call: Call, request: Take, now_ms: int) -> None:
        possible: list[tuple[int, tuple[Demand, ...]]] = []
        for index, demands in enumerate(request.alternatives):
            own = self._own_demands(demands)
            if own is not None:
                possible.append((index, own))
        if not possible:
            self.fire(call, StoreLost("gate_store_lost"))
            return
        answer = kernel.take(
            self._local,
            request._replace(alternatives=tuple(demands for _, demands in possible), waits=False, standing=()),
            now_ms,
        )
        chosen = possible[answer.chosen][0]
        if isinstance(answer, Granted):
            self.local_grants += 1
            self._own.add(request.lease)
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
        """The store is back: what the local buckets still hold becomes debt there."""
        self.lost = False
        usage = []
        for name, cell in self._local.cells.items():
            touch(cell, now_ms)
            held = -(-cell.level // cell.scale) + cell.pending
            if held and cell.limits.kind is not BudgetKind.LEASES:
                usage.append(Usage(name, 0, held))
                self.reported_units += held
        if usage:
            self._remote.settle(f"debt-{self.losses}", tuple(usage), last=True)

    def settle(self, lease: str, usage: tuple[Usage, ...], *, last: bool) -> None:
        """Tell whoever granted the lease."""
        if lease in self._own:
            kernel.settle(self._local, lease, usage, self._clock.now_ms(), last=last)
            if last:
                self._own.discard(lease)
        else:
            self._remote.settle(lease, usage, last=last)

    def release(self, lease: str, budgets: tuple[str, ...]) -> None:
        """End reservations where they were granted."""
        if lease in self._own:
            self._own.discard(lease)
            kernel.release(self._local, lease, budgets, self._clock.now_ms())
        else:
            self._remote.release(lease, budgets)

    def renew(self, lease: str, budgets: tuple[str, ...], lease_ms: int) -> None:
        """Keep reservations where they were granted."""
        if lease in self._own:
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
            if answer.done:
                self.limits[budget] = limits
            done(answer)

        self._remote.revise(budget, expected, limits, heard)
