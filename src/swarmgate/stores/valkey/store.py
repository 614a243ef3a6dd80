"""
Budgets shared by many gates: the kernel in Lua on Valkey >= 8 or Redis >= 7 (ports.BudgetStore).

One script is in flight at a time; what arrives meanwhile is the next one, so nobody waits for a window, and a busy store
is asked less often for each. A take is answered within 100 ms, by its decision or by `StoreLost`, and is never sent
twice. A take that would stand too long before it can be sent is told at once that there is a crowd
(`GATE_STORE_CROWDED`): the server is not lost, and a queue that nobody waits out would only lose it. What nobody waits for (settle, release, leave) is kept for the next connection: a settlement that is lost would
count too little, one that is told twice counts at most too much.
"""

import asyncio
from collections.abc import Callable, Sequence

from swarmgate.core.answers import Denied, Granted, Revised
from swarmgate.core.book import Take, Used
from swarmgate.core.commands import Release, Renew, Settle
from swarmgate.core.events import StoreLost
from swarmgate.core.limits import Limits
from swarmgate.core.operations import Define, Done, Operation, Reply, Revise, Undefined, Withdraw
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call
from swarmgate.ports import Fire
from swarmgate.stores.valkey.client import Link
from swarmgate.stores.valkey.flight import Flight, Query, Queue
from swarmgate.stores.valkey.replies import Answered, BadAnswer, Elsewhere, decode
from swarmgate.stores.valkey.trouble import StoreTrouble
from swarmgate.stores.valkey.wire import meta_key

ANSWER_S = 0.08  # of the 100 ms that a take may last; the rest is the loop's
STAND_S = 0.04  # the longest that a take may stand in our own queue: the rest is the server's
USUAL_OPERATION_S = 0.00025
FEWEST_MEASURED = 16  # operations: what fewer take together says little of one
CONNECT_S = 0.5
IDLE_S = 1.0  # a connection that says nothing is asked whether it lives
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 1.0


class ValkeyStore:
    """
    The budget store of one deployment on one of `servers` (URLs; those of a cluster in any order).

    `trouble` says why nothing can be decided now (None = it can). Counted: `losses` of the server, `births` of its
    state, `clock_steps` back, `debt_units` beyond their reservations, `dropped` operations that nobody waited for,
    `crowded` takes that were told so. `forgot` is told of budgets that the server turned out not to know: what callers
    were told of them no longer counts.
    """

    def __init__(self, servers: Sequence[str], deployment: str, fire: Fire) -> None:
        self._link = Link(servers)
        self._deployment = deployment
        self._key = meta_key(deployment)
        self._limits: dict[str, Limits] = {}
        self._defining: set[str] = set()  # on their way: a crowd that finds a budget unknown defines it once
        self._queue = Queue()
        self._flight: Flight | None = None
        self._wake = asyncio.Event()
        self._tried = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.fire = fire
        self.forgot: Callable[[tuple[str, ...]], None] = lambda _budgets: None
        self.trouble: Reason | None = Reason.GATE_STORE_CLOSED
        self._operation_s = USUAL_OPERATION_S
        self.birth_ms = self.births = self.clock_steps = self.losses = self.debt_units = self.crowded = 0

    @property
    def dropped(self) -> int:
        """Operations that nobody waited for and that were given up, since too many waited for the server."""
        return self._queue.dropped

    async def open(self) -> None:
        """Try to reach the server; it goes on trying until `close`, and `trouble` tells whether it did."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="swarmgate valkey store")
        await self._tried.wait()

    async def close(self) -> None:
        """Leave the server; whoever still waits is told that the store is lost."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._link.drop()
        self._lose(Reason.GATE_STORE_CLOSED)

    def take(self, call: Call, request: Take) -> None:
        """
        Ask for one alternative, whole.

        Errors: KeyError names a budget that was never defined here; BadOperation a field that cannot cross the wire.
        """
        for demands in request.alternatives:
            for demand in demands:
                if demand[0] not in self._limits:
                    raise KeyError(demand[0])
        self._send(Query(request, self._now_s(), call))

    def settle(self, lease: str, usage: tuple[Used, ...], *, last: bool) -> None:
        """Tell what was used; units beyond the reservation are counted as debt."""
        self._send(Query(Settle(lease, usage, last), self._now_s()))

    def release(self, lease: str, budgets: tuple[str, ...]) -> None:
        """End reservations of which nothing left."""
        self._send(Query(Release(lease, budgets), self._now_s()))

    def renew(self, lease: str, budgets: tuple[str, ...], lease_ms: int) -> None:
        """Keep living reservations for `lease_ms` more."""
        self._send(Query(Renew(lease, budgets, lease_ms), self._now_s()))

    def leave(self, ticket: str, lines: tuple[str, ...]) -> None:
        """Give up a place in line."""
        self._send(Query(Withdraw(ticket, lines), self._now_s()))

    def define(self, budget: str, limits: Limits) -> None:
        """Make the budget known; the server is told when it does not know it, after a loss too, and of a newer revision."""
        known = self._limits.get(budget)
        if known is None or limits.revision > known.revision:
            self._limits[budget] = limits
            self._queue.line_of.setdefault(budget, limits.line or budget)
            if known is not None and self.trouble is None:
                self._send(Query(Define(budget, limits), self._now_s()))

    def revise(self, budget: str, expected: int, limits: Limits, done: Callable[[Revised], None]) -> None:
        """Replace limits if their revision is still `expected`; not done with revision 0 if the server is lost."""
        self._send(Query(Revise(budget, expected, limits), self._now_s(), done=done))

    def _now_s(self) -> float:
        return asyncio.get_running_loop().time()

    def _send(self, asked: Query) -> None:
        if self.trouble is not None:
            self._give_up(asked, self.trouble)
        elif asked.call is not None and self._stands_s() > STAND_S:
            self.crowded += 1
            self._give_up(asked, Reason.GATE_STORE_CROWDED)
        elif self._queue.add(asked):
            self._wake.set()
        else:
            self._give_up(asked, Reason.GATE_STORE_FULL)

    def _stands_s(self) -> float:
        """How long what is added now stands before it is sent, as the last batches went."""
        ahead = self._queue.waiting + (len(self._flight.asked) if self._flight is not None else 0)
        return ahead * self._operation_s

    def _measure(self, flight: Flight) -> None:
        if len(flight.asked) >= FEWEST_MEASURED:
            took_s = (self._now_s() - flight.sent_s) / len(flight.asked)
            self._operation_s += (took_s - self._operation_s) / 4

    async def _run(self) -> None:
        pause_s = 0.0
        while True:
            try:
                await self._link.connect(self._key, CONNECT_S)
                self._found()
                while True:
                    await self._turn()
                    pause_s = 0.0
            except StoreTrouble as error:
                self._lose(error.trouble)
            except Exception as bug:  # noqa: BLE001  nobody may be left without an answer
                self._report(bug)
                self._lose(Reason.GATE_STORE_BROKEN)
            await asyncio.sleep(pause_s)
            pause_s = min(LONGEST_PAUSE_S, max(FIRST_PAUSE_S, 2 * pause_s))

    async def _turn(self) -> None:
        """One answer; the next script leaves before it is told, so that server and callers work at the same time."""
        flight = self._flight
        if flight is None:
            flight = await self._start(await self._next())
        answer = await self._link.answer(self._left_s(flight))
        try:
            answered = decode(flight.batch, answer)
        except BadAnswer as error:
            raise StoreTrouble(Reason.GATE_STORE_BROKEN, error) from error
        self._flight = None
        self._measure(flight)
        following = self._queue.pop(self._now_s())
        try:
            if following is not None:
                await self._start(following)
        finally:
            self._tell(flight, answered)

    async def _start(self, flight: Flight) -> Flight:
        self._flight = flight
        flight.sent_s = self._now_s()
        batch = flight.batch
        argument = batch.argument(self._link.run)
        await self._link.start(batch.keys(self._deployment), argument, self._left_s(flight))
        return flight

    def _left_s(self, flight: Flight) -> float:
        return max(0.0, min(ANSWER_S, flight.since_s + ANSWER_S - self._now_s()))

    async def _next(self) -> Flight:
        while (flight := self._queue.pop(self._now_s())) is None:
            self._wake.clear()
            try:
                async with asyncio.timeout(IDLE_S):
                    await self._wake.wait()
            except TimeoutError:
                await self._link.check(self._key, ANSWER_S)
        return flight

    def _tell(self, flight: Flight, answered: Answered) -> None:
        self.clock_steps = answered.clock_steps
        if answered.birth_ms != self.birth_ms:
            self.birth_ms = answered.birth_ms
            self.births += 1
        for asked, reply in zip(flight.asked, answered.replies, strict=True):
            self._guard(self._told, asked, reply)

    def _told(self, asked: Query, reply: Reply | Elsewhere) -> None:
        match reply:
            case Granted() | Denied() if asked.call is not None:
                self.fire(asked.call, reply)
            case Done(_, debt):
                self.debt_units += debt
                self._defining -= _budgets_of(asked.operation)
            case Elsewhere(_, budget, line):
                self._queue.line_of[budget] = line
                self._send(asked)
            case Undefined():
                self._again(asked)
            case Revised():
                self._revised(asked, reply)

    def _again(self, asked: Query) -> None:
        """The server does not know a budget: define all of this operation's, and ask once more."""
        budgets = _budgets_of(asked.operation)
        if asked.again or not self._limits.keys() >= budgets:
            self._give_up(asked, Reason.GATE_STORE_BROKEN)
            return
        for budget in budgets - self._defining:
            self._defining.add(budget)
            self._send(Query(Define(budget, self._limits[budget]), asked.since_s))
        self._send(asked._replace(again=True))
        self._guard(self.forgot, tuple(budgets))

    def _revised(self, asked: Query, reply: Revised) -> None:
        operation = asked.operation
        if not isinstance(operation, Revise) or asked.done is None:
            return
        if reply.revision == 0 and not asked.again and operation.budget in self._limits:
            self._again(asked)
            return
        if reply.done:
            self._limits[operation.budget] = operation.limits
        self._guard(asked.done, reply)

    def _found(self) -> None:
        self.trouble = None
        self._tried.set()
        self._queue.keep(Release("birth", ()))  # if this is one, it begins now, not with the first call
        for budget, limits in self._limits.items():
            if limits.revision > 1:  # a replica that took over may have missed it
                self._queue.keep(Define(budget, limits))

    def _lose(self, trouble: Reason) -> None:
        """Nothing is decided: tell everybody at once; what was sent may have been done."""
        self.losses += self.trouble is None and trouble is not Reason.GATE_STORE_CLOSED
        self.trouble = trouble
        self._defining.clear()
        flight, self._flight = self._flight, None
        for asked in flight.asked if flight else ():
            if isinstance(asked.operation, Take):
                self._queue.keep(Release(asked.operation.lease, tuple(_budgets_of(asked.operation))))
            self._give_up(asked, trouble)
        for asked in self._queue.drain():
            self._give_up(asked, trouble)
        self._tried.set()

    def _give_up(self, asked: Query, trouble: Reason) -> None:
        if asked.call is not None:
            self._guard(self.fire, asked.call, StoreLost(trouble))
        elif asked.done is not None:
            self._guard(asked.done, Revised(0, done=False, revision=0))
        elif not isinstance(asked.operation, Define | Renew):
            self._queue.keep(asked.operation)

    def _guard(self, tell: Callable[..., None], *what: object) -> None:
        """A bug of whom we tell must not stop the others."""
        try:
            tell(*what)
        except Exception as bug:  # noqa: BLE001  see above
            self._report(bug)

    def _report(self, bug: Exception) -> None:
        asyncio.get_running_loop().call_exception_handler({"message": "in the budget store", "exception": bug})


def _budgets_of(operation: Operation) -> set[str]:
    if isinstance(operation, Take):
        return {demand[0] for demands in operation.alternatives for demand in demands}
    return {operation.budget} if isinstance(operation, Define | Revise) else set()
