"""
A simulated shared store: one book, several links, and everything that can happen to a server.

The server runs the real kernel; lag, freezing, outage, flush and clock steps are the weather's. A link answers within
100 ms or says that the store is lost; what the server granted after that is released when the late answer comes, and is
never taken for another's (reliability ST-11).
"""

from collections.abc import Callable
from functools import partial

from swarmgate.core import kernel
from swarmgate.core.answers import Granted, Revised
from swarmgate.core.book import Book, Take, Used
from swarmgate.core.events import StoreLost
from swarmgate.core.limits import Limits
from swarmgate.core.line import leave
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call
from swarmgate.lab.sim.virtual_time import VirtualTime
from swarmgate.lab.sim.weather import Weather
from swarmgate.ports import Fire

ANSWER_MS = 100
ONE_WAY_MS = 1


class SimStore:
    """The server: a book, its own clock, and the limits that clients define again after a loss."""

    __slots__ = ("_time", "_weather", "book", "born", "known", "skew_ms")

    def __init__(self, time: VirtualTime, weather: Weather, known: dict[str, Limits]) -> None:
        self._time = time
        self._weather = weather
        self.known = known
        self.skew_ms = 0
        self.born = 0
        self.book = Book(0)
        for fault in weather.plan:
            if fault.kind == "store_flush":
                time.at(fault.at_ms, self._flush)
            elif fault.kind == "clock_step":
                time.at(fault.at_ms, self._step, fault.amount)

    def now_ms(self) -> int:
        """The server's own clock."""
        return self._time.now_ms() + self.skew_ms

    def _flush(self) -> None:
        self._weather.meet("store_flush")
        self.born += 1
        self.book = Book(self.now_ms())

    def _step(self, amount_ms: int) -> None:
        self._weather.meet("clock_step")
        self.skew_ms += amount_ms

    def defined(self, names: list[str]) -> None:
        """Clients define what the server does not know."""
        kernel.advance(self.book, self.now_ms())
        for name in names:
            if name not in self.book.cells:
                kernel.define(self.book, name, self.known[name])

    def reachable_at_ms(self) -> int | None:
        """When a command sent now is run: None = refused; a frozen server runs it when it thaws."""
        if self._weather.now("store_down", "store"):
            self._weather.meet("store_down")
            return None
        frozen = self._weather.now("store_frozen", "store")
        if frozen is not None:
            self._weather.meet("store_frozen")
            return frozen.ends_ms
        return self._time.now_ms() + ONE_WAY_MS


class StoreLink:
    """One gate's connection to the server (ports.BudgetStore)."""

    __slots__ = ("_later", "_store", "_time", "_weather", "debt_units", "fire", "waiting")

    def __init__(self, store: SimStore, time: VirtualTime, weather: Weather) -> None:
        self._store = store
        self._time = time
        self._weather = weather
        self._later: Callable[..., None] = time.at
        self.fire: Fire
        self.debt_units = 0
        self.waiting: dict[str, Call] = {}  # by lease: asked and not answered

    def bind(self, fire: Fire, later: Callable[..., None]) -> None:
        """Whom to answer, and how to plan what this gate does."""
        self.fire = fire
        self._later = later

    def take(self, call: Call, request: Take) -> None:
        """Ask the server; StoreLost after 100 ms, or at once if it refuses."""
        at_ms = self._store.reachable_at_ms()
        if at_ms is None:
            self._later(self._time.now_ms() + ONE_WAY_MS, self.fire, call, StoreLost(Reason.GATE_STORE_LOST))
            return
        self.waiting[request.lease] = call
        self._time.at(at_ms, self._run_take, call, request)
        self._later(self._time.now_ms() + ANSWER_MS, self._overdue, call, request)

    def _run_take(self, call: Call, request: Take) -> None:
        budgets = [name for demands in request.alternatives for name, _, _ in demands]
        self._store.defined(budgets)
        answer = kernel.take(self._store.book, request, self._store.now_ms())
        lag_ms = self._weather.more_ms("store_lag", "store")
        self._later(self._time.now_ms() + ONE_WAY_MS + lag_ms, self._answered, call, request, answer)

    def _answered(self, call: Call, request: Take, answer: object) -> None:
        if self.waiting.pop(request.lease, None) is call:
            self.fire(call, answer)  # type: ignore[arg-type]
        elif isinstance(answer, Granted):
            self.release(request.lease, tuple(name for name, _, _ in request.alternatives[answer.chosen]))

    def _overdue(self, call: Call, request: Take) -> None:
        if self.waiting.get(request.lease) is call:
            del self.waiting[request.lease]
            self.fire(call, StoreLost(Reason.GATE_STORE_LOST))

    def _run(self, act: Callable[[], object]) -> None:
        """Run a command that nobody waits for; a server that refuses never gets it: leases end by themselves."""
        at_ms = self._store.reachable_at_ms()
        if at_ms is not None:
            self._time.at(at_ms, act)

    def settle(self, lease: str, usage: tuple[Used, ...], *, last: bool) -> None:
        """Tell what was used."""
        self._run(partial(self._settle, lease, usage, last=last))

    def _settle(self, lease: str, usage: tuple[Used, ...], *, last: bool) -> None:
        self.debt_units += kernel.settle(self._store.book, lease, usage, self._store.now_ms(), last=last)[1]

    def release(self, lease: str, budgets: tuple[str, ...]) -> None:
        """End reservations of which nothing left."""
        self._run(lambda: kernel.release(self._store.book, lease, budgets, self._store.now_ms()))

    def renew(self, lease: str, budgets: tuple[str, ...], lease_ms: int) -> None:
        """Keep living reservations."""
        self._run(lambda: kernel.renew(self._store.book, lease, budgets, lease_ms, self._store.now_ms()))

    def leave(self, ticket: str, lines: tuple[str, ...]) -> None:
        """Give up a place in line."""
        self._run(partial(self._leave, ticket, lines))

    def _leave(self, ticket: str, lines: tuple[str, ...]) -> None:
        for name in lines:
            leave(self._store.book.line(name), ticket)

    def define(self, budget: str, limits: Limits) -> None:
        """What the server does not know is defined when it is needed."""
        self._store.known[budget] = limits

    def revise(self, budget: str, expected: int, limits: Limits, done: Callable[[Revised], None]) -> None:
        """Replace limits on the server."""
        self._run(partial(self._revise, budget, expected, limits, done))

    def _revise(self, budget: str, expected: int, limits: Limits, done: Callable[[Revised], None]) -> None:
        self._store.defined([budget])
        answer = kernel.revise(self._store.book, budget, expected, limits, self._store.now_ms())
        if answer.done:
            self._store.known[budget] = limits
        done(answer)
