"""
A running gate: its parts tied together, its port, its upkeep, its end.

Here lives no rule. What is called a few times a second is called from one place; what an operator stops ends in order:
no new calls, then those that are open, then the connections.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Final, NamedTuple

from swarmgate.core.book import Book
from swarmgate.core.caps import Caps
from swarmgate.core.commands import Answer, End
from swarmgate.core.compiler import Published
from swarmgate.core.events import GivenUp
from swarmgate.core.ladders import Ladders
from swarmgate.core.limits import Limits
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call
from swarmgate.core.waiting import Room
from swarmgate.engine.alarm import LoopTimer
from swarmgate.engine.clock import LoopClock, unix_ms, unix_s
from swarmgate.engine.pump import Pump
from swarmgate.engine.teacher import Teacher
from swarmgate.facts.prices import PriceBook
from swarmgate.gate import answers, model_names, passing
from swarmgate.gate.cap_desk import CapDesk
from swarmgate.gate.compress import Ceiling
from swarmgate.gate.dead_letters import DeadLetters
from swarmgate.gate.delivery import Deliveries
from swarmgate.gate.desk import MOST_OPEN, Desk
from swarmgate.gate.egress.opening import EgressDoors, Surroundings
from swarmgate.gate.egress.plan import EgressPlan
from swarmgate.gate.exchange import Callers, Exchanges
from swarmgate.gate.front import Front, authorities
from swarmgate.gate.hop import OUR_NAME
from swarmgate.gate.keeper import Keeper
from swarmgate.gate.live_streams import LiveStreams
from swarmgate.gate.model_names import ModelNames
from swarmgate.gate.model_route import PATHS, ModelRoutes
from swarmgate.gate.once import Ask, Once
from swarmgate.gate.operate import Operator
from swarmgate.gate.passing import PassRoutes
from swarmgate.gate.patient import Patient
from swarmgate.gate.resolve import OperatorResolver
from swarmgate.gate.served import ServedFields
from swarmgate.gate.target import ModelTarget
from swarmgate.gate.till import Till
from swarmgate.gate.view.hosts import UrlFinder
from swarmgate.gate.view.surface import PREFIX as VIEWS
from swarmgate.gate.view.window import Window
from swarmgate.http1.client_end import ClientEnd
from swarmgate.http1.cork import Cork
from swarmgate.http1.dial import Dialler
from swarmgate.http1.listen import Listening, listen
from swarmgate.http1.render import response_head
from swarmgate.http1.sweep import Sweep
from swarmgate.http1.tls import NO_TLS, Contexts
from swarmgate.http1.upstreams import Upstreams
from swarmgate.ports import BudgetStore, Clock, Fire, Journal, NearStore
from swarmgate.stores.letters.shelf import Shelf

UPKEEP_MS: Final = 250
DRAIN_S: Final = 30.0
WRITES_END_WITHIN_S: Final = 2.0  # what became of keyed writes is told before the gate is gone
CONNECTIONS: Final = 20_000
NO_PRICES: Final = PriceBook()
_REACHED: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  nothing is bound here


class Plan(NamedTuple):
    """
    What a gate serves: ladders by model, targets by name, budgets by name, and which of them share a line.

    `published` has the limit that each budget keeps, as its owner states it; places on the way have none. `caps` are what
    callers may use, whatever they call; `ceilings` the longest prompts in tokens, by task type. `warm` reads what is large and
    needed by few calls: it runs beside the loop once the gate listens.
    """

    ladders: Ladders
    targets: Mapping[str, ModelTarget]
    budgets: Mapping[str, Limits]
    lines: Mapping[str, str]
    published: Mapping[str, Published]
    caps: Caps | None = None
    ceilings: Mapping[str, Ceiling] = {}
    egress: EgressPlan | None = None  # without one there are no doors to other hosts
    prices: PriceBook = NO_PRICES
    connections: int = CONNECTIONS  # that callers may have open
    warm: Callable[[], None] | None = None
    identity: tuple[str, ...] = ()  # the words that every call must say of who causes it


class Upkeep:
    """What is due a few times a second."""

    def __init__(self, sweep: Sweep, duties: tuple[Callable[[], None], ...]) -> None:
        self._sweep = sweep
        self._duties = duties
        self.deadline_ms = sweep.now_ms + UPKEEP_MS
        sweep.watch(self)

    def on_deadline(self) -> None:
        """Do it, and again later."""
        self.deadline_ms = self._sweep.now_ms + UPKEEP_MS
        for duty in self._duties:
            duty()


class Door(ClientEnd):
    """A client connection that its gate can close; `open_doors` holds those that are open, at most so many."""

    __slots__ = ("_most", "_open_doors")

    def __init__(self, front: Front, sweep: Sweep, open_doors: "set[Door]", most: int) -> None:
        super().__init__(front, sweep)
        self._open_doors = open_doors
        self._most = most

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody came in; one too many is told so before it has said anything."""
        super().connection_made(transport)
        if len(self._open_doors) >= self._most:
            self._transport.write(_full())
            self._close()
        self._open_doors.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed."""
        super().connection_lost(exc)
        self._open_doors.discard(self)

    def make_last(self) -> None:
        """Let a client know with the answer in flight that no other will follow: a close under a request resets it."""
        if self.head is not None:
            self.head.keep_alive = False

    def shut(self) -> None:
        """Close it once what was written has left."""
        self._close()


@cache
def _full() -> bytes:
    reply = answers.refusal(Reason.GATE_BUSY, "No more connections fit.")
    return response_head(reply.status, reply.headers, length=len(reply.body), close=True) + reply.body


class Gate:
    """
    One data plane on one loop: `start`, then `stop`.

    `store_of` makes the budget store from a clock and the pump's `fire`; `failed` is told of a bug in one call.
    `address` is where it is reached from this machine, once it listens.
    """

    address = ("", 0)

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        plan: Plan,
        store_of: Callable[[Clock, Fire], BudgetStore],
        journal: Journal,
        failed: Callable[[Call, Exception], None],
        tls: Contexts = NO_TLS,
    ) -> None:
        self._loop = loop
        self._server: Listening | None = None
        self.plan = plan
        self.clock = clock = LoopClock(loop)
        self.sweep = Sweep(loop, Cork(loop.call_soon))
        timer = LoopTimer(loop, clock, lambda: None)
        self._failed = failed
        self._buggy: set[Call] = set()  # ended by a bug, since the last upkeep
        self.pump = pump = Pump(clock, timer, Room(), self._bug)
        timer.ring = pump.ring
        pump.room.line_of.update(plan.lines)
        self.store = store_of(clock, pump.fire)
        for name, limits in plan.budgets.items():
            self.store.define(name, limits)
        pins = plan.egress.settings.pins if plan.egress is not None else {}
        locate = OperatorResolver(loop, self.sweep, tls.targets, pins).locate
        dialler = Dialler(loop, small_reads=tls.callers is not None)
        self.upstreams = Upstreams(loop, self.sweep, locate, dialler=dialler)
        self.exchanges = exchanges = Exchanges(
            self.upstreams, pump.fire, (clock.now_ms, unix_s), Deliveries(loop, pump.fire), Till(plan.prices)
        )
        self.callers = callers = Callers()
        self.journal = journal
        self.teacher = Teacher(journal, self.store, clock)
        pump.attach(self.store, exchanges, callers, self.teacher)
        self.doors: set[Door] = set()
        self._drained = asyncio.Event()
        self.tls = tls
        self._open(plan)

    def _open(self, plan: Plan) -> None:
        """The surfaces, and what is due for them a few times a second."""
        pump = self.pump
        self.ladders = plan.ladders
        self.targets = dict(plan.targets)
        # an operator may change it; hosts that are called come and go in it
        self.published = published = dict(plan.published)
        near = self.store.book if isinstance(self.store, NearStore) else None  # a shared store shows nobody its budgets
        served = ServedFields(published) if near is None else ServedFields(published, near.cells.get)
        self.desk = Desk(pump, self.exchanges, self.targets, served)
        self.desk.crowd.fill(min(MOST_OPEN, plan.connections))
        self.cap_callers()
        self.desk.asked_for = plan.identity
        self.desk.streams = LiveStreams(self.store, published, f"gate {OUR_NAME.decode()}: live streams")
        self.front = Front()
        self.models = self._open_models(plan)
        self.egress = self._open_egress(plan.egress)
        self.window: Window | None = None
        self.operator: Operator | None = None
        duties = [self.exchanges.sweep, pump.sweep, Patient(pump, self.clock).look, self._look_whether_drained]
        duties += [self.desk.look_after_lost, self.desk.look_around]
        if self.egress is not None:
            duties.append(self.egress.tidy)
        if near is not None:
            duties.append(self._open_views(plan, near, published, served.forget))
        self._upkeep = Upkeep(self.sweep, tuple(duties))

    def _open_models(self, plan: Plan) -> ModelRoutes:
        """Serve the paths of model calls: those that are read, the list of models, and all others unread."""
        models, names = (
            ModelRoutes(self.desk, plan.ladders, plan.ceilings),
            ModelNames(plan.ladders, unix_s(), self.desk.scope),
        )
        self.front.exact.update(dict.fromkeys(PATHS, models))
        self.front.exact[model_names.PATH] = names
        self.front.serve_below(model_names.ONE, names)
        self.front.serve_below(passing.PREFIX, PassRoutes(self.desk, plan.ladders))
        return models

    def _open_egress(self, plan: EgressPlan | None) -> EgressDoors | None:
        """Open the doors to other hosts, if there are any."""
        if plan is None:
            return None
        dialler = self.upstreams.dialler  # one for all: so few handshakes are in progress per loop
        around = Surroundings(self._loop, self.sweep, dialler, self.clock, self.store, self.tls.targets, self.published)
        egress = EgressDoors(plan, around, self.desk, self.teacher)
        egress.open(self.front)
        return egress

    def _open_views(
        self, plan: Plan, book: Book, published: dict[str, Published], forget: Callable[[], None]
    ) -> Callable[[], None]:
        """Let the gate be looked at and operated; what is to be done a few times a second for that."""

        def changed(budget: str, limit: Published) -> None:
            forget()
            if self.egress is not None:
                self.egress.restate(budget, limit)

        self.window = window = Window(book, self.clock, plan.ladders, published)
        self.operator = Operator(book, self.pump, window.directory, self.teacher.held, changed)
        if plan.egress is not None and self.egress is not None:
            self.operator.meet = self.egress.meet
            window.directory.also(self.egress.hosts.rungs)
            window.budgets.watching = self.egress.desk.shadow.seen
            met = self.egress.hosts.met
            window.budgets.knows, window.budgets.has_met = met.knows, met.has_met
            urls = UrlFinder(self.egress.hosts, self.clock)
            window.finder.by_url, window.budgets.of_url = urls.find, urls.budgets
        views = window.surface(self._loop, self.desk, self.callers.ended, plan.prices)
        self.front.serve_below(VIEWS, views)
        return window.look

    def cap_callers(self) -> None:
        """Let the caps of callers count, where there are any: of the configuration, or of a key that is in use."""
        caps, keeper = self.plan.caps, self.desk.keeper
        is_capped = caps is not None and (caps.counts or (keeper is not None and keeper.has_caps))
        self.desk.caps = CapDesk(caps, self.store, self.published) if caps is not None and is_capped else None

    def ask_for_keys(self, *, required: bool) -> Keeper:
        """From now on agents' keys count; who may replace them is given the keeper."""
        self.front.keeper = self.desk.keeper = keeper = Keeper(unix_ms, required=required)
        if self.window is not None:
            self.window.events.admits = keeper.admits
        return keeper

    def keep_letters(self, shelf: Shelf, *, bodies: bool) -> None:
        """Put requests that are given up on this shelf."""
        self.callers.letters = DeadLetters(self._loop, shelf, unix_ms, bodies=bodies)

    def keep_writes(self, run: str, ask: Ask, *, answers: bool = True) -> None:
        """Let keyed writes go once the control process, which `ask` reaches, has them on file."""
        self.desk.once = self.callers.once = Once(self._loop, run, ask, answers=answers)

    @property
    def is_stopping(self) -> bool:
        """Whether new calls are turned away."""
        return self.desk.is_stopping

    async def start(self, host: str, port: int) -> int:
        """Listen; the port that was bound. Errors: OSError."""
        self.sweep.start()
        self._server = await listen(self._loop, self._door, host, port, self.tls.callers)
        self.front.own = authorities(host, self._server.port)
        if self.plan.warm is not None:
            self._loop.run_in_executor(None, self.plan.warm)
        self.address = (_REACHED.get(host, host), self._server.port)
        return self._server.port

    def _door(self) -> Door:
        return Door(self.front, self.sweep, self.doors, self.plan.connections)

    async def stop(self, drain_s: float = DRAIN_S) -> int:
        """End in order; the number of calls that were still open when the time for it was over."""
        self.desk.is_stopping = self.front.is_closing = True
        for door in self.doors:
            door.make_last()
        if self._server is not None:
            self._server.close()
        self._drained.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(drain_s):
                await self._drained.wait()
        left = list(self.pump.open)
        for call in left:
            self.exchanges.hear_out(call)
            self.pump.fire(call, GivenUp(Reason.GATE_STOPPING))
        if self.callers.once is not None:
            await self.callers.once.finish(WRITES_END_WITHIN_S)
        if self.window is not None:
            self.window.events.close()
        for door in list(self.doors):
            door.shut()
        self.upstreams.close()
        if self.egress is not None:
            self.egress.close()
        self.sweep.stop()
        return len(left)

    def _bug(self, call: Call, error: Exception) -> None:
        """A bug in one call ends it as the table says; a second one, in the telling, ends it by force."""
        self._failed(call, error)
        if call.end is None and call not in self._buggy:
            self._buggy.add(call)
            self.pump.fire(call, GivenUp(Reason.GATE_BUG))
            return
        self.pump.open.pop(call, None)
        self.exchanges.abort(call)
        if call.client is not None:
            self.pump.client.answer(call, Answer(End.FAILED, Reason.GATE_BUG))

    def _look_whether_drained(self) -> None:
        self._buggy.clear()
        if self.desk.is_stopping and not self.pump.open:
            self._drained.set()
