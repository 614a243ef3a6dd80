"""
The pump: runs the commands that the core's table returns; ports answer by firing again.

It has no rule, no coroutine and no timer of a call. Gate and simulator run this same pump (design 2: P13). Events that
are fired while it runs wait in order, so an adapter may answer at once without deepening the stack.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from mypy_extensions import mypyc_attr

from swarmgate.core.answers import Revised
from swarmgate.core.book import Take
from swarmgate.core.call import step
from swarmgate.core.commands import (
    Abort,
    Answer,
    Connect,
    Intent,
    Leave,
    Lose,
    Note,
    Park,
    Relay,
    Release,
    Renew,
    Send,
    Settle,
)
from swarmgate.core.events import ARRIVED, DEADLINE_PASSED, WOKEN, Event
from swarmgate.core.limits import Limits
from swarmgate.core.record import Call
from swarmgate.core.waiting import Room
from swarmgate.ports import BudgetStore, Client, Clock, Journal, Timer, Transport


@mypyc_attr(allow_interpreted_subclasses=True)
class Pump:
    """
    Everything that can be done to calls, behind one method: `fire`.

    `open` holds every call that has not ended. `failed` is told of a bug in one call; the others go on.
    """

    __slots__ = (
        "_armed_ms",
        "_clock",
        "_do",
        "_events",
        "_plain",
        "_running",
        "_timer",
        "client",
        "failed",
        "journal",
        "open",
        "room",
        "store",
        "transport",
    )

    def __init__(self, clock: Clock, timer: Timer, room: Room, failed: Callable[[Call, Exception], None]) -> None:
        self._clock = clock
        self._timer = timer
        self._armed_ms: int | None = None
        self._events: deque[tuple[Call, Event]] = deque()
        self._running = False
        self.room = room
        self.failed = failed
        self.open: dict[Call, None] = {}  # in order of arrival

    def attach(self, store: BudgetStore, transport: Transport, client: Client, journal: Journal) -> None:
        """Bind the adapters; they in turn were given `fire`."""
        self.store = store
        self.transport = transport
        self.client = client
        self.journal = journal
        self._plain: dict[type, Callable[[Call], None]] = {
            Connect: transport.connect,
            Park: transport.park,
            Send: transport.send,
            Abort: transport.abort,
            Relay: client.relay,
        }
        self._do: dict[type, Callable[[Call, Any], None]] = {
            Take: store.take,
            Settle: lambda _, told: store.settle(told[0], told[1], last=told[2]),
            Release: lambda _, told: store.release(told.lease, told.budgets),
            Renew: lambda _, told: store.renew(told.lease, told.budgets, told.lease_ms),
            Leave: lambda call, told: store.leave(call.ticket, told.lines),
            Intent: journal.intent,
            Note: journal.note,
            Lose: journal.lost,
            Answer: self._answer,
        }

    def arrive(self, call: Call) -> None:
        """A new call; it ends exactly once."""
        self.open[call] = None
        self.fire(call, ARRIVED)

    def fire(self, call: Call, event: Event) -> None:
        """Tell the core what happened and do what it asks, and everything that follows at once, at one instant, or that of the newest call."""
        events = self._events
        if self._running:
            events.append((call, event))
            return
        self._running = True
        now_ms = self._clock.now_ms()
        plain, do, room = self._plain, self._do, self.room
        try:
            while True:
                try:
                    for command in step(call, event, now_ms):
                        kind = type(command)
                        if kind in plain:
                            plain[kind](call)
                        else:
                            do[kind](call, command)
                except Exception as bug:  # noqa: BLE001  a bug in one call must not stop the others; it is reported
                    self.failed(call, bug)
                if room.ready:
                    events.extend([(waiting, WOKEN) for waiting in room.ready])
                    room.ready.clear()
                if not events:
                    break
                call, event = events.popleft()
                if event is ARRIVED:  # it was made after the clock was read
                    now_ms = self._clock.now_ms()
        finally:
            self._running = False
            if room.sleeping or self._armed_ms is not None:
                self._arm()

    def wake_ready(self) -> None:
        """Wake whoever was called up from outside: limits changed."""
        ready, self.room.ready = self.room.ready, []
        for call in ready:
            self.fire(call, WOKEN)

    def _answer(self, call: Call, answer: Answer) -> None:
        self.open.pop(call, None)
        self.journal.end(call, answer)
        self.client.answer(call, answer)

    def _arm(self) -> None:
        next_ms = self.room.next_ms()
        if next_ms != self._armed_ms:
            self._armed_ms = next_ms
            self._timer.arm(next_ms)

    def ring(self) -> None:
        """The alarm rang: everybody who is due asks again."""
        self._armed_ms = None
        for call in self.room.due(self._clock.now_ms()):
            self.fire(call, WOKEN)
        self._arm()

    def revise(self, budget: str, expected: int, limits: Limits, done: Callable[[Revised], None]) -> None:
        """Have the store replace limits if their revision is still `expected`; who waits for them asks again at once."""

        def heard(answer: Revised) -> None:
            done(answer)
            if answer.done or answer.revision == limits.revision:  # another process was first
                self.reconsider((budget,))

        self.store.revise(budget, expected, limits, heard)

    def reconsider(self, budgets: tuple[str, ...]) -> None:
        """What was told of these budgets no longer counts: the first of each line asks again."""
        self.room.revised(budgets)
        self.wake_ready()

    def sweep(self) -> None:
        """Look at every open call's deadlines; called a few times a second."""
        now_ms = self._clock.now_ms()
        late = [call for call in self.open if call.deadline_ms <= now_ms or 0 < call.alarm_ms <= now_ms]
        for call in late:
            self.fire(call, DEADLINE_PASSED if call.deadline_ms <= now_ms else WOKEN)
