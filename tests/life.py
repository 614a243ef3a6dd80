"""
One process with scripted adapters on virtual time: what the tests of a call's life share.

The adapters check their own contracts: a connection is asked for, ready, sent on, and given up exactly once.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from typing import NamedTuple

from swarmgate.core import kernel
from swarmgate.core.answers import Granted
from swarmgate.core.book import Book
from swarmgate.core.call import TABLE
from swarmgate.core.events import CONTENT, READY, Ended, Lost, LostKind, Progress, Ready, StoreLost
from swarmgate.core.keys import KeyRing, QuotaScope
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.line import leave
from swarmgate.core.outcome import Signal, classify
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call, Route, Rung, State, Step
from swarmgate.core.retry import RetryBudget
from swarmgate.core.waiting import Room
from swarmgate.engine.pump import Pump
from swarmgate.lab.sim.virtual_time import VirtualTime, VirtualTimer
from swarmgate.stores.memory.store import MemoryStore

LONG_AGO_MS = -(2**40)
SWEEP_MS = 250
LAPSES_MS = 10_001  # 5 s until it is due, 5 s until it is forgotten
ANSWER_MS = 100  # a store that says nothing for so long is lost


def answered(status=200, used=3, hint_ms=None, message=""):
    """The target's whole answer."""
    return Ended(classify(Signal(status=status, hint_ms=hint_ms, message=message)), used)


OK = answered()
FAILS = answered(500, 0)
REFUSES = answered(429, 0, hint_ms=2_000)
OVERLOADED = answered(529, 0)
BUSY = answered(429, 0, message="too many concurrent requests")
NOT_OURS = answered(400, 0)
KEY_DEAD = answered(401, 0)
RESET = Lost(LostKind.RESET, sent=True)
STALE = Lost(LostKind.STALE, sent=False)
BROKEN = Lost(LostKind.BROKEN, sent=True)
STREAM = ((20, CONTENT), (5_000, Progress(2)), (5_000, Progress(2)), (50, OK))


class Life(NamedTuple):
    """What becomes of each connect (ms, works) and each send ((ms, event), ...), in order; then all is well."""

    connects: tuple = ()
    sends: tuple = ()
    wire_ms: int = 5


class Exchange:
    """One connection as one call knows it."""

    def __init__(self, call):
        self.call = call
        self.state = "dialling"


class Wire:
    """ports.Transport by script. `sent` counts what left, by call; `seen` says whereto, in order."""

    def __init__(self, world):
        self.world = world
        self.lives = defaultdict(Life)
        self.connects = Counter()
        self.sends = Counter()
        self.exchanges = []
        self.seen = []

    def later(self, after_ms, act, *arguments):
        if after_ms:
            self.world.time.at(self.world.time.now_ms() + after_ms, act, *arguments)
        else:
            act(*arguments)

    def connect(self, call):
        assert not isinstance(call.wire, Exchange) or call.wire.state in {"returned", "aborted", "done", "failed"}
        call.wire = exchange = Exchange(call)
        self.exchanges.append(exchange)
        life, number = self.lives[call.id], self.connects[call.id]
        self.connects[call.id] += 1
        after_ms, works = life.connects[number] if number < len(life.connects) else (life.wire_ms, True)
        self.later(after_ms, self._connected, exchange, works)

    def _connected(self, exchange, works):
        if exchange.state == "dialling":
            exchange.state = "ready" if works else "failed"
            self.world.pump.fire(exchange.call, READY if works else Lost(LostKind.CONNECT, sent=False))

    def die(self, call):
        """The target closes a connection that is ready, before anything was sent on it."""
        assert call.wire.state == "ready"
        call.wire.state = "gone"
        self.world.pump.fire(call, STALE)

    def park(self, call):
        assert call.wire.state in {"ready", "gone"}
        call.wire.state = "returned"

    def send(self, call):
        exchange = call.wire
        if exchange.state == "gone":
            exchange.state = "done"
            self.world.pump.fire(call, STALE)
            return
        assert exchange.state == "ready"
        life, number = self.lives[call.id], self.sends[call.id]
        self.sends[call.id] += 1
        events = life.sends[number] if number < len(life.sends) else ((life.wire_ms, OK),)
        exchange.state = "sent"
        if STALE not in [event for _, event in events]:
            self.seen.append((call.id, call.rungs[call.rung].target, call.route.key, self.world.time.now_ms()))
        self._next(exchange, iter(events))

    def _next(self, exchange, events):
        following = next(events, None)
        if following is not None:
            self.later(following[0], self._happens, exchange, following[1], events)

    def _happens(self, exchange, event, events):
        if exchange.state == "sent":
            if isinstance(event, Ended | Lost):
                exchange.state = "done"
            self.world.pump.fire(exchange.call, event)
            self._next(exchange, events)

    def abort(self, call):
        if isinstance(call.wire, Exchange) and call.wire.state in {"dialling", "ready", "gone", "sent"}:
            call.wire.state = "aborted"


class NearStore(MemoryStore):
    """The store of this process; `taken` is what it was asked."""

    def __init__(self, *given):
        super().__init__(*given)
        self.taken = []

    def take(self, call, request):
        self.taken.append(request)
        super().take(call, request)


class FarStore:
    """
    ports.BudgetStore over a network: what it is told happens in order 1 ms later, what it answers comes `delays` later.

    An answer that takes longer than 100 ms is a lost store; a grant that comes too late is released, never told.
    """

    def __init__(self, time, fire, book, delays: Iterator[int], lost):
        self.time, self.fire, self.book, self.delays, self.lost = time, fire, book, delays, lost
        self.taken = []

    def _run(self, act, *arguments):
        self.time.at(self.time.now_ms() + 1, act, *arguments)

    def take(self, call, request):
        self.taken.append(request)
        self._run(self._take, call, request, next(self.delays))

    def _take(self, call, request, delay_ms):
        answer, now_ms = kernel.take(self.book, request, self.time.now_ms()), self.time.now_ms()
        if delay_ms <= ANSWER_MS:
            self.time.at(now_ms + delay_ms, self.fire, call, answer)
            return
        self.time.at(now_ms + ANSWER_MS, self.fire, call, StoreLost(Reason.GATE_STORE_LOST))
        if isinstance(answer, Granted):
            names = tuple(name for name, _, _ in request.alternatives[answer.chosen])
            self.time.at(now_ms + delay_ms, self.release, request.lease, names)
        else:
            self.lost.add(request.ticket)

    def settle(self, lease, usage, *, last):
        self._run(lambda: kernel.settle(self.book, lease, usage, self.time.now_ms(), last=last))

    def release(self, lease, budgets):
        self._run(lambda: kernel.release(self.book, lease, budgets, self.time.now_ms()))

    def renew(self, lease, budgets, lease_ms):
        self._run(lambda: kernel.renew(self.book, lease, budgets, lease_ms, self.time.now_ms()))

    def leave(self, ticket, lines):
        self._run(lambda: [leave(self.book.line(name), ticket) for name in lines])


class WatchedPump(Pump):
    """Remembers what happened to whom, and lets a test interfere after each event."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._events = WatchedEvents()
        self._events.begin, self._events.end = self._begin, self._end
        self.happened = []
        self.after = lambda call: None
        self._now = None

    def fire(self, call, event):
        if not self._running:  # the first event takes no place in the queue
            self._begin(call, event)
        super().fire(call, event)

    def _begin(self, call, event):
        self._now = (call, len(self.happened))
        self.happened.append((call.id, call.state, type(event), call.state))

    def _end(self):
        if self._now is not None:
            (call, index), self._now = self._now, None
            self.happened[index] = (*self.happened[index][:3], call.state)
            self.after(call)


class WatchedEvents(deque):
    """The pump's queue, which tells when an event is taken from it and when it is done."""

    def __bool__(self):
        self.end()
        return len(self) > 0

    def popleft(self):
        event = super().popleft()
        self.begin(*event)
        return event


class World:
    """`budgets` of one book, warm unless `birth_ms` says otherwise; the store is near unless `delays` are given."""

    def __init__(self, budgets=None, *, delays=None, lines=None, agent_tickets=4, now_ms=1_000_000):
        self.time = VirtualTime()
        self.time.run(now_ms)
        self.book = Book(LONG_AGO_MS)
        kernel.advance(self.book, now_ms)
        for name, limits in (budgets or BUDGETS).items():
            kernel.define(self.book, name, limits)
        self.room = Room(agent_tickets)
        self.room.line_of.update(lines or {})
        self.pump = WatchedPump(self.time, VirtualTimer(self.time, self._ring), self.room, self._failed)
        self.calls = []
        self.answers = {}
        self.relays = Counter()
        self.noted = []
        self.late = set()  # tickets of which the store gave an answer that came too late
        self.wire = Wire(self)
        fire = self.pump.fire
        near = NearStore(self.time, fire, self.book)
        self.store = near if delays is None else FarStore(self.time, fire, self.book, delays, self.late)
        self.pump.attach(self.store, self.wire, self, self)
        self.time.at(now_ms + SWEEP_MS, self._sweep)

    def _sweep(self):
        self.pump.sweep()
        self.time.at(self.time.now_ms() + SWEEP_MS, self._sweep)

    def _ring(self):
        self.pump.ring()

    def _failed(self, call, bug):
        raise AssertionError(f"a bug at {call!r}") from bug

    # ports.Client and ports.Journal

    def relay(self, call):
        assert call.wire.state in {"sent", "done"}
        self.relays[call.id] += 1

    def answer(self, call, answer):
        self.answers.setdefault(call.id, []).append(answer)
        assert call not in self.room.sleeping

    def intent(self, call, intent):
        self.noted.append((call.id, intent))

    def note(self, call, note):
        self.noted.append((call.id, note))

    def lost(self, call, lose):
        self.noted.append((call.id, lose))

    def end(self, call, answer):
        self.noted.append((call.id, answer))

    # What tests do

    def call(self, name, life=None, *, rungs=None, rank=1, agent="", after_ms=0, **given):
        """A call that arrives `after_ms` from now; `given` are fields of the record."""
        arrives_ms = self.time.now_ms() + after_ms
        call = Call(name, rungs or (rung(),), self.room, rank=rank, arrived_ms=arrives_ms)
        call.step = Step(agent=agent)
        call.prompt, call.reserve = 2, 4
        for field, value in given.items():
            setattr(call, field, value)
        self.calls.append(call)
        self.wire.lives[name] = life or Life()
        if after_ms:
            self.time.at(arrives_ms, self.pump.arrive, call)
        else:
            self.pump.arrive(call)
        return call

    def run(self, for_ms=60_000):
        """Let time pass; stop early when every call has ended."""
        self.time.run(self.time.now_ms() + for_ms, idle=self._all_ended)

    def _all_ended(self):
        return all(call.state is State.ENDED for call in self.calls)

    def end_of(self, call):
        (answer,) = self.answers[call.id]
        return answer.end

    def events_of(self, call):
        return [one for one in self.pump.happened if one[0] == call.id]

    def asks_of(self, call):
        return sum(event is Ready for _, _, event, _ in self.events_of(call))

    def standing(self, line):
        return [ticket for _, ticket in self.book.line(line).order]

    def check_clean(self):
        """Every call ended once, and nothing of any call is left anywhere (design 2: P4, P9)."""
        self.time.run(self.time.now_ms() + 3 * ANSWER_MS)
        for call in self.calls:
            assert [answer.end for answer in self.answers[call.id]] == [call.end], call
            assert TABLE[call.state] is TABLE[State.ENDED]
        assert not self.pump.open
        assert all(one.state in {"returned", "aborted", "done", "failed"} for one in self.wire.exchanges)
        for cell in self.book.cells.values():
            assert {key: lease.amount for key, lease in cell.leases.items() if not lease.firm} == {}, cell.name
            assert cell.pending == sum(lease.amount for lease in cell.leases.values() if lease.firm), cell.name
        for name, line in self.book.lines.items():  # a place that a lost answer gave lapses by itself
            assert {entry.ticket for entry in line.entries.values()} <= self.late, name
            assert all(entry.expires_ms < self.time.now_ms() + LAPSES_MS for entry in line.entries.values()), name
        assert len(self.room) == 0
        assert self.room.next_ms() is None
        assert not self.room.keyless
        assert not self.room._lines
        assert not self.room._tickets
        assert not self.room.sleeping


BUDGETS = {
    "rate": Limits(BudgetKind.LEVEL, burst=50, quota=100, window_ms=1_000),
    "slot": Limits(BudgetKind.LEASES, burst=1),
    "tokens": Limits(BudgetKind.LEVEL, burst=1_000, quota=1_000, window_ms=1_000),
}
SLOT = Limits(BudgetKind.LEASES, burst=1)
HELD = Life(sends=((),))


def held_for(ms):
    return Life(sends=(((ms, OK),),))


def route(
    key="k1", fixed=(("rate", 1, 0), ("slot", 0, 1)), metered=("tokens",), first_byte=(), whole=("slot",), **rest
):
    return Route(key, fixed, metered, first_byte, whole, **rest)


def slot_only(key="k1", slot="slot"):
    return route(key, ((slot, 0, 1),), (), whole=(slot,))


def rung(target="t", *routes):
    routes = {one.key: one for one in routes or (route(),)}
    ring = KeyRing(QuotaScope(key, (key,)) for key in routes)
    return Rung(target, target, routes, ring, RetryBudget())
