"""
A simulated shared store: one book, several links, and everything that can happen to a server.

The server runs the real kernel; lag, freezing, outage, partition, flush, failover, eviction and clock steps are the
weather's. A link answers within 100 ms or says that the store is lost; what the server granted after that is released
when the late answer comes, and is never taken for another's (reliability ST-11).
"""

from collections.abc import Callable
from typing import Any

from swarmgate.core import kernel
from swarmgate.core.answers import Granted, Revised
from swarmgate.core.book import Book, Take, Used
from swarmgate.core.commands import Release, Renew, Settle
from swarmgate.core.events import StoreLost
from swarmgate.core.limits import Limits
from swarmgate.core.operations import Done, Operation, Reply, Revise, Withdraw, apply
from swarmgate.core.passage import touch
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call
from swarmgate.lab.faults import Fault, FaultKind
from swarmgate.lab.sim.replica import replica
from swarmgate.lab.sim.virtual_time import VirtualTime
from swarmgate.lab.sim.weather import Weather
from swarmgate.ports import Fire

ANSWER_MS = 100
ONE_WAY_MS = 1
Watch = Callable[[Book, Take, Callable[[], Reply]], Reply]  # decides, under eyes


class SimStore:
    """The server: a book, its own clock, and the limits that clients define again after a loss."""

    __slots__ = ("_replica", "_time", "_weather", "book", "known", "skew_ms", "watch")

    def __init__(self, time: VirtualTime, weather: Weather, watch: Watch, birth_ms: int = 0) -> None:
        self._time = time
        self._weather = weather
        self.watch = watch
        self._replica: Book | None = None
        self.known: dict[str, Limits] = {}
        self.skew_ms = 0
        self.book = Book(birth_ms)
        strikes: dict[FaultKind, Callable[[int], None]] = {
            "store_flush": self._flush,
            "store_failover": self._promote,
            "store_evict": self._evict,
            "clock_step": self._step,
        }
        for fault in weather.plan:
            if fault.kind in strikes:
                time.at(fault.at_ms, self._strike, fault, strikes[fault.kind])
            if fault.kind == "store_failover":
                time.at(max(0, fault.at_ms - fault.amount), self._copy)

    def now_ms(self) -> int:
        """The server's own clock."""
        return self._time.now_ms() + self.skew_ms

    def _strike(self, fault: Fault, act: Callable[[int], None]) -> None:
        self._weather.meet(fault.kind)
        act(fault.amount)

    def _flush(self, _amount: int) -> None:
        self.book = Book(self.now_ms())

    def _step(self, amount: int) -> None:
        self.skew_ms += amount

    def _evict(self, amount: int) -> None:
        names = sorted(self.book.cells)
        if names:
            del self.book.cells[names[(len(names) - 1) * amount // 1000]]

    def _copy(self) -> None:
        self._replica = replica(self.book)

    def _promote(self, _amount: int) -> None:
        """The replica is another process, so its connections begin with a birth: what it may lack counts as used."""
        if self._replica is None:
            return
        self.book, self._replica = self._replica, None
        self.book.birth_ms = kernel.advance(self.book, self.now_ms())
        for cell in self.book.cells.values():
            touch(cell, self.book.birth_ms)
            kernel.chill(cell, self.book.birth_ms)
        for name, limits in self.known.items():  # clients say what they know to be newer as they connect
            if limits.revision > 1:
                kernel.define(self.book, name, limits)

    def run(self, operation: Operation, forgot: Callable[[str], None] = lambda _budget: None) -> Reply:
        """The reply to one command that arrives now; its client defines what the server does not know, or `forgot`."""
        for name in _budgets(operation):
            if name not in self.book.cells and name in self.known:
                forgot(name)
                kernel.advance(self.book, self.now_ms())
                kernel.define(self.book, name, self.known[name])
        if isinstance(operation, Take):
            return self.watch(self.book, operation, lambda: apply(self.book, operation, self.now_ms()))
        return apply(self.book, operation, self.now_ms())

    def reachable_at_ms(self, gate: str) -> int | None:
        """When a command that a gate sends now is run: None = refused; what waits on the way runs when it may."""
        if self._weather.now("store_down", "store"):
            self._weather.meet("store_down")
            return None
        return max(self._held_ms("store_frozen", "store"), self._held_ms("store_cut", gate)) + ONE_WAY_MS

    def heard_at_ms(self, gate: str) -> int:
        """When the gate hears a reply that leaves now."""
        return self._held_ms("store_cut", gate) + ONE_WAY_MS + self._weather.more_ms("store_lag", "store")

    def _held_ms(self, kind: FaultKind, where: str) -> int:
        fault = self._weather.now(kind, where)
        if fault is None:
            return self._time.now_ms()
        self._weather.meet(fault.kind)
        return fault.ends_ms


def _budgets(operation: Operation) -> list[str]:
    if isinstance(operation, Take):
        return [name for demands in operation.alternatives for name, _, _ in demands]
    return [operation.budget] if isinstance(operation, Revise) else []


class StoreLink:
    """One gate's connection to the server (ports.BudgetStore)."""

    __slots__ = ("_gate", "_later", "_store", "_time", "debt_units", "fire", "forgot", "waiting")

    def __init__(self, store: SimStore, time: VirtualTime, gate: str) -> None:
        self._store = store
        self._time = time
        self._gate = gate
        self._later: Callable[..., None] = time.at
        self.fire: Fire
        self.forgot: Callable[[tuple[str, ...]], None] = lambda _budgets: None  # as in stores/valkey
        self.debt_units = 0
        self.waiting: dict[str, Call] = {}  # by lease: asked and not answered

    def bind(self, fire: Fire, later: Callable[..., None]) -> None:
        """Whom to answer, and how to plan what this gate does."""
        self.fire = fire
        self._later = later

    def take(self, call: Call, request: Take) -> None:
        """Ask the server; StoreLost after 100 ms, or at once if it refuses."""
        at_ms = self._store.reachable_at_ms(self._gate)
        if at_ms is None:
            self._later(self._time.now_ms() + ONE_WAY_MS, self.fire, call, StoreLost(Reason.GATE_STORE_LOST))
            return
        self.waiting[request.lease] = call
        self._time.at(at_ms, self._run_take, call, request)
        self._later(self._time.now_ms() + ANSWER_MS, self._overdue, call, request)

    def _run_take(self, call: Call, request: Take) -> None:
        answer = self._store.run(request, self._forgotten)
        self._later(self._store.heard_at_ms(self._gate), self._answered, call, request, answer)

    def _forgotten(self, budget: str) -> None:
        self._later(self._store.heard_at_ms(self._gate), self.forgot, (budget,))

    def _answered(self, call: Call, request: Take, answer: object) -> None:
        if self.waiting.pop(request.lease, None) is call:
            self.fire(call, answer)  # type: ignore[arg-type]
        elif isinstance(answer, Granted):
            self.release(request.lease, tuple(name for name, _, _ in request.alternatives[answer.chosen]))

    def _overdue(self, call: Call, request: Take) -> None:
        if self.waiting.get(request.lease) is call:
            del self.waiting[request.lease]
            self.fire(call, StoreLost(Reason.GATE_STORE_LOST))

    def _tell(self, operation: Operation, heard: Callable[[Any], None] = lambda _reply: None) -> None:
        """Have it run; a server that refuses never gets it: leases end by themselves."""
        at_ms = self._store.reachable_at_ms(self._gate)
        if at_ms is not None:
            self._time.at(at_ms, lambda: heard(self._store.run(operation)))

    def settle(self, lease: str, usage: tuple[Used, ...], *, last: bool) -> None:
        """Tell what was used."""
        self._tell(Settle(lease, usage, last), self._settled)

    def _settled(self, done: Done) -> None:
        self.debt_units += done.debt

    def release(self, lease: str, budgets: tuple[str, ...]) -> None:
        """End reservations of which nothing left."""
        self._tell(Release(lease, budgets))

    def renew(self, lease: str, budgets: tuple[str, ...], lease_ms: int) -> None:
        """Keep living reservations."""
        self._tell(Renew(lease, budgets, lease_ms))

    def leave(self, ticket: str, lines: tuple[str, ...]) -> None:
        """Give up a place in line."""
        self._tell(Withdraw(ticket, lines))

    def define(self, budget: str, limits: Limits) -> None:
        """What the server does not know is defined when it is needed."""
        self._store.known[budget] = limits

    def revise(self, budget: str, expected: int, limits: Limits, done: Callable[[Revised], None]) -> None:
        """Replace limits on the server."""

        def heard(answer: Revised) -> None:
            if answer.done:
                self._store.known[budget] = limits
            done(answer)

        self._tell(Revise(budget, expected, limits), heard)
