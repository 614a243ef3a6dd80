"""
A simulated gate process: the real pump, a network, a store link; it can be killed, restarted, stopped and continued.

Whatever a gate plans goes through `later`: a plan of a dead process is dropped, a plan of a stopped one waits. So a
crash forgets everything but what is already on its way, as kill -9 does.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from swarmgate.core.commands import Answer, Intent, Lose, Note
from swarmgate.core.record import Call, Rung
from swarmgate.core.waiting import Room
from swarmgate.engine.guard import Guard, OutageMode
from swarmgate.engine.pump import Pump
from swarmgate.engine.teacher import Teacher
from swarmgate.lab.sim.policies import TargetPolicy
from swarmgate.lab.sim.store import SimStore, StoreLink
from swarmgate.lab.sim.umpire import JudgedStore, Umpire
from swarmgate.lab.sim.virtual_time import VirtualTime, VirtualTimer
from swarmgate.lab.sim.weather import Weather
from swarmgate.lab.sim.wire import SimWire
from swarmgate.stores.memory.store import MemoryStore

SWEEP_MS = 250
LONG_AGO_MS = -(2**40)


class GateTime:
    """Virtual time as one process sees it."""

    __slots__ = ("_later", "_time")

    def __init__(self, time: VirtualTime, later: Callable[..., None]) -> None:
        self._time = time
        self._later = later

    def now_ms(self) -> int:
        """Virtual milliseconds."""
        return self._time.now_ms()

    def at(self, at_ms: int, act: Callable[..., object], *arguments: Any) -> None:
        """Plan something that this process does."""
        self._later(at_ms, act, *arguments)


class Watcher:
    """Whom the gate tells of attempts and ends (ports.Journal and ports.Client)."""

    __slots__ = ("ended", "noted", "sent")

    def __init__(
        self,
        sent: Callable[[Call], None],
        noted: Callable[[Call, Note], None],
        ended: Callable[[Call, Answer], None],
    ) -> None:
        self.sent = sent
        self.noted = noted
        self.ended = ended

    def intent(self, call: Call, _intent: Intent) -> None:
        """An attempt is about to leave."""
        self.sent(call)

    def note(self, call: Call, note: Note) -> None:
        """An attempt ended."""
        self.noted(call, note)

    def lost(self, _call: Call, _lose: Lose) -> None:
        """The store was slow; its faults are counted where they are made."""

    def end(self, _call: Call, _answer: Answer) -> None:
        """The client hears it too."""

    def relay(self, _call: Call) -> None:
        """Content needs no simulation."""

    def answer(self, call: Call, answer: Answer) -> None:
        """The call has ended."""
        self.ended(call, answer)


class Setting(NamedTuple):
    """What every gate of a world shares; `shared` is None where the only gate keeps its budgets itself."""

    time: VirtualTime
    weather: Weather
    watcher: Watcher
    policies: tuple[TargetPolicy, ...]
    umpire: Umpire
    shared: SimStore | None
    gates: int


class SimGate:
    """One process; `alive` until a crash, again after its restart."""

    __slots__ = (
        "_epoch",
        "_resumes_ms",
        "_setting",
        "alive",
        "guard",
        "lessons",
        "memory",
        "name",
        "pump",
        "rungs",
        "store",
        "teacher",
        "wire",
    )

    def __init__(self, name: str, setting: Setting, wire: SimWire) -> None:
        self.name = name
        self.wire = wire
        self._setting = setting
        self._epoch = 0
        self._resumes_ms = 0
        self.memory: MemoryStore | None = None
        self.guard: Guard | None = None
        self.store: MemoryStore | Guard
        self.start(warm=True)

    def start(self, *, warm: bool = False) -> None:
        """Start the process; budgets in its memory are cold, unless it never ran before."""
        self._epoch += 1
        self.alive = True
        clock = GateTime(self._setting.time, self.later)
        room = Room()
        self.pump = Pump(clock, VirtualTimer(clock, self._ring), room, self._bug)
        shared = self._setting.shared
        store = self.store = self._memory(clock, warm=warm) if shared is None else self._guard(shared, clock)
        for policy in self._setting.policies:
            for name, limits in policy.limits():
                store.define(name, limits)
                if limits.line:
                    room.line_of[name] = limits.line
        self.lessons = {policy.settings.name: policy.lesson() for policy in self._setting.policies if policy.hidden}
        self.rungs: dict[str, Rung] = {
            name: policy.rung()._replace(lessons=(self.lessons[name],) if name in self.lessons else ())
            for policy in self._setting.policies
            for name in [policy.settings.name]
        }
        self.wire.bind(self.pump.fire, self.later)
        self.teacher = Teacher(self._setting.watcher, store, clock)
        self.pump.attach(store, self.wire, self._setting.watcher, self.teacher)
        self.later(clock.now_ms() + SWEEP_MS, self._sweep)

    def _memory(self, clock: GateTime, *, warm: bool) -> MemoryStore:
        self.memory = JudgedStore(clock, self.pump.fire, self._setting.umpire)
        if warm:
            self.memory.book.birth_ms = LONG_AGO_MS
        return self.memory

    def _guard(self, shared: SimStore, clock: GateTime) -> Guard:
        link = StoreLink(shared, self._setting.time, self.name)
        guard = Guard(link, clock, self._setting.gates)
        guard.fire = self.pump.fire
        guard.back = self.pump.reconsider
        guard.modes = {
            name: OutageMode(policy.settings.store_lost)
            for policy in self._setting.policies
            for name, _ in policy.limits()
        }
        link.bind(guard.heard, partial(self._plan, self._epoch))  # what a dead process asked is answered to nobody
        self.guard = guard
        return guard

    def _bug(self, call: Call, bug: Exception) -> None:
        raise RuntimeError(f"the gate failed at {call!r}") from bug

    def _ring(self) -> None:
        self.pump.ring()

    def _sweep(self) -> None:
        self.pump.sweep()
        self.later(self._setting.time.now_ms() + SWEEP_MS, self._sweep)

    def later(self, at_ms: int, act: Callable[..., object], *arguments: Any) -> None:
        """Plan something that this process does."""
        self._plan(self._epoch, at_ms, act, *arguments)

    def _plan(self, epoch: int, at_ms: int, act: Callable[..., object], *arguments: Any) -> None:
        self._setting.time.at(at_ms, self._do, epoch, act, arguments)

    def _do(self, epoch: int, act: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        if epoch != self._epoch or not self.alive:
            return
        if self._setting.time.now_ms() < self._resumes_ms:
            self._setting.time.at(self._resumes_ms, self._do, epoch, act, arguments)
        else:
            act(*arguments)

    def kill(self) -> list[Call]:
        """Like kill -9: what was open is gone, without a word to the callers but a reset."""
        self._setting.weather.meet("gate_crash")
        self.alive = False
        self._epoch += 1
        self.wire.cut()
        return list(self.pump.open)

    def steady(self) -> bool:
        """Whether it runs, and its store decides."""
        runs = self.alive and self._setting.time.now_ms() >= self._resumes_ms
        return runs and (self.guard is None or not self.guard.lost)

    def stop_until(self, resumes_ms: int) -> None:
        """SIGSTOP until `resumes_ms`."""
        self._setting.weather.meet("gate_pause")
        self._resumes_ms = max(self._resumes_ms, resumes_ms)
