"""
A simulated gate process: the real pump, journal and saved state, a network, a disk, a store link.

It can be killed, ended in order, frozen and continued, and its machine can lose power. Whatever a gate plans goes through
`later`: a plan of a dead process is dropped, a plan of a frozen one waits. So a crash forgets everything but what is
already on its way, as kill -9 does; what is on the disk decides how the next run begins.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from swarmgate.core.book import Book
from swarmgate.core.commands import Answer, Intent, Lose, Note
from swarmgate.core.events import GivenUp
from swarmgate.core.limits import Limits
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call, Rung
from swarmgate.core.waiting import Room
from swarmgate.engine.guard import Guard, OutageMode
from swarmgate.engine.pump import Pump
from swarmgate.engine.teacher import Teacher
from swarmgate.lab.sim.disk import PowerLost, SimDisk
from swarmgate.lab.sim.evidence import JOURNAL, STATE, Evidence, Recorder
from swarmgate.lab.sim.policies import TargetPolicy
from swarmgate.lab.sim.store import SimStore, StoreLink
from swarmgate.lab.sim.umpire import JudgedStore, Umpire
from swarmgate.lab.sim.virtual_time import VirtualTime, VirtualTimer
from swarmgate.lab.sim.weather import Weather
from swarmgate.lab.sim.wire import SimWire
from swarmgate.stores.journal import counters
from swarmgate.stores.journal.journal import FileJournal
from swarmgate.stores.journal.segments import Retention, newest
from swarmgate.stores.journal.writer import Writer
from swarmgate.stores.memory import snapshot
from swarmgate.stores.memory.store import MemoryStore

SWEEP_MS = 250
LONG_AGO_MS = -(2**40)
START_AGAIN_MS = 1_000  # as whoever watches over a process does
FILES = Retention(segment_bytes=256 * 1024, segment_ms=10_000)  # so that a minute has several


class GateTime:
    """Virtual time as one process sees it."""

    __slots__ = ("_later", "_time")

    def __init__(self, time: VirtualTime, later: Callable[..., None]) -> None:
        self._time = time
        self._later = later

    def now_ms(self) -> int:
        """Virtual milliseconds."""
        return self._time.now_ms()

    @property
    def read_ms(self) -> int:
        """The same: no time passes while something is done."""
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


class Handle:
    """Of something planned: it can be called off."""

    __slots__ = ("_act",)

    def __init__(self, act: Callable[[], object]) -> None:
        self._act: Callable[[], object] | None = act

    def cancel(self) -> None:
        """It will not happen."""
        self._act = None

    def __call__(self) -> None:
        """It happens now."""
        if self._act is not None:
            self._act()


class SimGate:
    """One process; `alive` until it ends in any way, again after its restart."""

    __slots__ = (
        "_epoch",
        "_folder",
        "_journal",
        "_resumes_ms",
        "_setting",
        "alive",
        "evidence",
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

    def __init__(self, name: str, setting: Setting, wire: SimWire, disk: SimDisk) -> None:
        self.name = name
        self.wire = wire
        self.evidence = Evidence(disk)
        self._setting = setting
        self._epoch = 0
        self._resumes_ms = 0
        self.alive = False
        self.memory: MemoryStore | None = None
        self.guard: Guard | None = None
        self.store: MemoryStore | Guard
        self._folder: snapshot.Start | None = None
        self.start()

    def start(self) -> None:
        """Start the process, with what is on its disk; one that cannot begin is tried again."""
        if self.alive:
            return
        self._epoch += 1
        disk, time = self.evidence.disk, self._setting.time
        try:
            self._begin()
        except (OSError, PowerLost) as error:
            if isinstance(error, PowerLost):
                self.evidence.dark_ms.append(time.now_ms())
                disk.lose_power()
            disk.process_ended()
            time.at(time.now_ms() + START_AGAIN_MS, self.start)
        else:
            self.alive = True
            disk.cut_at_write(0)

    def _begin(self) -> None:
        """In the order of `swarmgate up`: the folder, the book, the journal, the rest. Errors: OSError, PowerLost."""
        clock, room, shared = GateTime(self._setting.time, self.later), Room(), self._setting.shared
        self.pump = Pump(clock, VirtualTimer(clock, self._ring), room, self._bug)
        book = self._book(clock.now_ms()) if shared is None else None
        journal = self._open_journal(clock)
        store = self.store = self._memory(clock, book) if shared is None else self._guard(shared, clock)
        for name, limits in self._limits():
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
        self.teacher = Teacher(journal, store, clock)
        self.pump.attach(store, self.wire, self._setting.watcher, self.teacher)
        self.later(clock.now_ms() + SWEEP_MS, self._sweep)

    def _limits(self) -> list[tuple[str, Limits]]:
        return [pair for policy in self._setting.policies for pair in policy.limits()]

    def _book(self, now_ms: int) -> Book:
        """What the last run saved, if it may be believed; counters go on from the journal otherwise."""
        disk, limits = self.evidence.disk, dict(self._limits())
        self._folder = start = snapshot.begin(STATE, now_ms, limits, journal=newest(JOURNAL, disk), disk=disk)
        if start.book.birth_ms == start.book.now_ms:
            counters.restore(JOURNAL, start.book, limits.get, now_ms, disk)
        return start.book

    def _open_journal(self, clock: GateTime) -> Recorder:
        disk, weather = self.evidence.disk, self._setting.weather
        writer = Writer(JOURNAL, max(1, clock.now_ms()), lambda _sentence: None, FILES, disk)
        self._journal = FileJournal(self, clock, clock.now_ms, writer)
        if self._folder is not None:
            self._journal.book = self._folder.book
        return Recorder(
            self._journal,
            self.evidence,
            self._setting.watcher,
            lambda: weather.now("disk_lie", self.name) is not None,
        )

    def _memory(self, clock: GateTime, book: Book | None) -> MemoryStore:
        self.memory = JudgedStore(clock, self.pump.fire, self._setting.umpire, book)
        return self.memory

    def _guard(self, shared: SimStore, clock: GateTime) -> Guard:
        link = StoreLink(shared, self._setting.time, self.name)
        guard = Guard(link, clock, self._setting.gates)
        guard.fire = self.pump.fire
        guard.back = link.forgot = self.pump.reconsider
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

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Handle:
        """The same in seconds (ports.Alarms)."""
        handle = Handle(callback)
        self.later(self._setting.time.now_ms() + int(delay * 1_000), handle)
        return handle

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
        self.evidence.killed.append(self._journal.run)
        return self._ended()

    def _ended(self) -> list[Call]:
        self.alive = False
        self._epoch += 1
        self.wire.cut()
        self.evidence.disk.process_ended()
        return list(self.pump.open)

    def lose_power(self) -> list[Call]:
        """Its machine goes dark; whose calls were open, if it ran."""
        calls = self.kill() if self.alive else []
        self.evidence.dark_ms.append(self._setting.time.now_ms())
        self.evidence.disk.lose_power()
        return calls

    def end(self) -> None:
        """SIGTERM: open calls are given up, the journal is closed, budgets are saved where the disk lets them be."""
        disk = self.evidence.disk
        try:
            for call in list(self.pump.open):
                self.pump.fire(call, GivenUp(Reason.GATE_STOPPING))
            self._journal.close(0)
            if self._folder is not None:
                snapshot.finish(STATE, self._folder, journal=newest(JOURNAL, disk), disk=disk)
        except OSError:
            pass  # the mark that it ran is still there: the next run starts cold
        except PowerLost:
            self.lose_power()
            return
        self._ended()

    def steady(self) -> bool:
        """Whether it runs, and its store decides."""
        runs = self.alive and self._setting.time.now_ms() >= self._resumes_ms
        return runs and (self.guard is None or not self.guard.lost)

    def stop_until(self, resumes_ms: int) -> None:
        """SIGSTOP until `resumes_ms`."""
        self._setting.weather.meet("gate_pause")
        self._resumes_ms = max(self._resumes_ms, resumes_ms)
