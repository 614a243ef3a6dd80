"""
One world: targets, gates, agents and weather of a scenario, run on virtual time from one seed.

Safety: promises are checked after each event by the umpire, and at the end by the witnesses. Liveness: when the load
ends and the faults are over, every call must come to its end and nothing may stay reserved.
"""

from collections import Counter
from collections.abc import Callable
from random import Random
from time import perf_counter

from swarmgate.core import kernel
from swarmgate.core.answers import Revised
from swarmgate.core.book import Book
from swarmgate.core.commands import Answer, Note
from swarmgate.core.limits import Limits
from swarmgate.core.passage import touch
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call
from swarmgate.lab import scenario as told
from swarmgate.lab.crawl import players, with_hosts
from swarmgate.lab.faults import RULES, Fault, FaultKind, found_out, gate_names
from swarmgate.lab.sim.disk import SimDisk
from swarmgate.lab.sim.evidence import contradictions
from swarmgate.lab.sim.gate import LONG_AGO_MS, Setting, SimGate, Watcher
from swarmgate.lab.sim.idleness import could_run, leaders
from swarmgate.lab.sim.policies import TargetPolicy, largest_calls
from swarmgate.lab.sim.store import SimStore
from swarmgate.lab.sim.swarm import Swarm
from swarmgate.lab.sim.target import Request, SimTarget
from swarmgate.lab.sim.umpire import Umpire
from swarmgate.lab.sim.virtual_time import VirtualTime
from swarmgate.lab.sim.weather import Weather
from swarmgate.lab.sim.wire import SimWire

DRAIN_MS = 400_000  # longer than any caller's deadline and the lease after it
LEASES_END_MS = 200_000
PROBE_MS = 1_000
LOOKS_AT_SHARED = 7  # what another process frees is found within 5 s (core/denial.py), and then the store must answer
LOOKS_AT_ORPHANS = 15  # longer than a drawn fault delays a settlement
LOSE_WORDS = frozenset(
    {"gate_crash", "power_loss", "gate_stop", "store_down", "store_failover", "store_lag"}
)  # a settlement is lost, or very late


class World:
    """Everything of one run; `run` it once, then measure it."""

    def __init__(self, scenario: told.Scenario, seed: int, plan: tuple[Fault, ...] | None = None) -> None:
        self.scenario = scenario = with_hosts(scenario)
        self.seed = seed
        self.time = VirtualTime()
        rng = Random(seed)
        faults = scenario.faults if plan is None else plan
        self.weather = Weather(faults, self.time, Random(rng.getrandbits(64)))
        self.targets = {target.name: self._target(target, rng) for target in scenario.targets}
        self.policies = {
            target.name: TargetPolicy(target, largest_calls(scenario, target.name)) for target in scenario.targets
        }
        self.umpire = Umpire(self.time, self.policies.values(), sum(map(_adds_a_burst, faults)) + found_out(faults))
        self.shared = self._shared(faults)
        self.gates = self._open_gates(rng)
        self.sent_to_empty_key = self.sent_late = self.idled = self.orphaned = 0
        self.stops: list[tuple[int, int]] = []
        self.wall_s = 0.0
        self._empty_until_ms: dict[tuple[str, int], int] = {}
        self._last_sent_ms = 0
        self._waited = False
        self.words_are_lost = any(fault.kind in LOSE_WORDS for fault in faults)
        self._orphaned: dict[tuple[str, str], int] = {}
        self._idle: dict[Call, tuple[int, int]] = {}  # by call: how often it had asked, and looks since
        self.swarm = Swarm(self.time, self.weather, self.gates, players(scenario, seed), scenario)
        for fault in faults:
            self._strike(fault)

    def _target(self, settings: told.Target, rng: Random) -> SimTarget:
        name, weather = settings.name, self.weather
        target = SimTarget(settings, self.time, Random(rng.getrandbits(64)))
        target.slower_ms = lambda: weather.more_ms("latency_spike", name)
        target.unwell = lambda: weather.strikes("brownout", name)
        target.lies = lambda: weather.strikes("lie", name)
        return target

    def _open_gates(self, rng: Random) -> list[SimGate]:
        time, weather, policies = self.time, self.weather, tuple(self.policies.values())
        watcher = Watcher(self._sent, self._noted, self._ended)
        setting = Setting(time, weather, watcher, policies, self.umpire, self.shared, self.scenario.gates)
        wires = [
            SimWire(time, weather, Random(rng.getrandbits(64)), self.targets, self._request)
            for _ in range(self.scenario.gates)
        ]
        return [
            SimGate(name, setting, wire, SimDisk(name, time, weather, Random(rng.getrandbits(64))))
            for name, wire in zip(gate_names(len(wires)), wires, strict=True)
        ]

    def _shared(self, faults: tuple[Fault, ...]) -> SimStore | None:
        if self.scenario.gates == 1 and not any(fault.kind.startswith(("store", "clock")) for fault in faults):
            return None
        return SimStore(self.time, self.weather, self.umpire.watch, birth_ms=LONG_AGO_MS)

    def _strike(self, fault: Fault) -> None:
        gates = [gate for gate in self.gates if gate.name == fault.where]
        self.time.at(fault.at_ms, self._begins, fault, gates)
        strikes: dict[FaultKind, Callable[[SimGate, Fault], None]] = {
            "gate_crash": self._crash,
            "gate_stop": self._end,
            "power_loss": self._power_loss,
            "gate_pause": lambda gate, _: gate.stop_until(fault.ends_ms),
        }
        if fault.kind == "revision":
            self.time.at(fault.at_ms, self._revise, fault)
        for gate in gates if fault.kind in strikes else ():
            self.time.at(fault.at_ms, strikes[fault.kind], gate, fault)

    def _begins(self, fault: Fault, gates: list[SimGate]) -> None:
        """Count the calls in its reach: those of its target, of its gate, or of all that use the store."""
        place = RULES[fault.kind].place
        if place == "agents":  # counted as each caller leaves
            return
        calls = (call for gate in gates or self.gates if gate.alive for call in gate.pump.open)
        if place == "target":
            calls = (call for call in calls if call.rungs[call.rung].target == fault.where)
        self.weather.hit(fault.kind, calls)

    def _revise(self, fault: Fault) -> None:
        """The operator tells every gate."""
        for name, limits in self.policies[fault.where].revise(fault.amount):
            self.weather.meet("revision")

            def done(answer: Revised, name: str = name, limits: Limits = limits) -> None:
                if answer.done:
                    self.umpire.revised(name, limits)

            for gate in self.gates:
                gate.later(self.time.now_ms(), gate.pump.revise, name, limits.revision - 1, limits, done)

    def _crash(self, gate: SimGate, fault: Fault) -> None:
        if gate.alive:
            self.weather.meet("gate_crash")
            self.swarm.gate_died(gate.kill())
            self.time.at(fault.ends_ms, gate.start)

    def _power_loss(self, gate: SimGate, fault: Fault) -> None:
        self.weather.meet("power_loss")
        starts_again = gate.alive
        self.swarm.gate_died(gate.lose_power())
        if starts_again:
            self.time.at(fault.ends_ms, gate.start)

    def _end(self, gate: SimGate, fault: Fault) -> None:
        """A process that is frozen hears of it when it runs on."""

        def end() -> None:
            self.weather.meet("gate_stop")
            gate.evidence.disk.cut_at_write(fault.amount)
            gate.end()
            self.time.at(max(fault.ends_ms, self.time.now_ms()), gate.start)

        gate.later(self.time.now_ms(), end)

    def _request(self, call: Call) -> Request:
        return self.swarm.request(call)

    def _ended(self, call: Call, answer: Answer) -> None:
        self.swarm.ended(call, answer)

    def _sent(self, call: Call) -> None:
        job = self.swarm.job(call)
        now_ms = job.sent_ms = self.time.now_ms()
        if job.first_ms < 0:
            job.first_ms = now_ms
        self.sent_late += now_ms >= call.deadline_ms
        job.scope = self._scope(call)
        self.sent_to_empty_key += now_ms < self._empty_until_ms.get(job.scope, 0)
        if self._waited:
            self.stops.append((now_ms, now_ms - self._last_sent_ms))
        self._last_sent_ms = now_ms
        self._waited = any(len(gate.pump.room) for gate in self.gates)

    def _noted(self, call: Call, note: Note) -> None:
        if note.reason is Reason.TARGET_RATE and note.outcome is not None:
            scope = self.swarm.job(call).scope
            self._empty_until_ms[scope] = self.time.now_ms() + (note.outcome.hint_ms or 0)

    def _scope(self, call: Call) -> tuple[str, int]:
        target = self.scenario.target(call.rungs[call.rung].target)
        assert call.route is not None
        return target.name, target.scope_of(int(call.route.key.removeprefix("key-")) - 1)

    def run(self, progress: Callable[[float], None] = lambda _share: None) -> None:
        """Let the scenario happen, then let everything come to its end."""
        began_s = perf_counter()
        self.swarm.start()
        self.time.at(PROBE_MS, self._probe)
        duration_ms = self.scenario.duration_s * 1_000
        for part in range(1, 101):
            self.time.run(duration_ms * part // 100)
            progress(part / 100)
        self.wall_s = perf_counter() - began_s
        self.swarm.closing = True
        end_ms = max([duration_ms, *(fault.ends_ms for fault in self.weather.plan)])
        self.time.run(end_ms + DRAIN_MS, idle=lambda: not self.swarm.open_jobs)
        for book, now_ms in self._books():
            kernel.advance(book, now_ms)  # a clock that was set back counts on from when somebody looks
        self.time.run(self.time.now_ms() + LEASES_END_MS)  # those of dead processes, and the holds after them

    def contradictions(self) -> list[str]:
        """Where the gates' journals and the targets' witnesses do not agree."""
        arrivals = (row for one in self.targets.values() for witness in one.witnesses for row in witness.arrivals)
        return contradictions([gate.evidence for gate in self.gates], arrivals, is_calm=not self.weather.plan)

    def writes_twice(self) -> int:
        """Writes that were done more than once, wherever."""
        done: Counter[str] = Counter()
        for target in self.targets.values():
            done.update(target.effects)
        return sum(times > 1 for times in done.values())

    def left_behind(self) -> list[str]:
        """What outlived its call: open calls, waiting calls, reservations, places on the way (design 2: P9)."""
        found = [
            f"P9: {gate.name} keeps {len(gate.pump.open)} calls open, {len(gate.pump.room)} waiting"
            for gate in self.gates
            if gate.pump.open or len(gate.pump.room)
        ]
        for book, now_ms in self._books():
            kernel.advance(book, now_ms)
            for name, cell in book.cells.items():
                while cell.due_ms <= book.now_ms:  # a touch ends a hundred leases at most
                    touch(cell, book.now_ms)
                if cell.pending:
                    found.append(f"P9: {cell.pending} units stay reserved in {name}")
        return found

    def _books(self) -> list[tuple[Book, int]]:
        """Every book there is, and what its clock shows."""
        if self.shared is not None:
            return [(self.shared.book, self.shared.now_ms())]
        return [(gate.memory.book, self.time.now_ms()) for gate in self.gates if gate.memory is not None]

    def _orphans(self) -> dict[tuple[str, str], int]:
        """Reservations whose calls have ended, and at how many looks so far; none where their word may be lost."""
        if self.words_are_lost:
            return {}
        open_leases = {call.lease for gate in self.gates for call in gate.pump.open}
        return {
            (name, key): self._orphaned.get((name, key), 0) + 1
            for book, _ in self._books()
            for name, cell in book.cells.items()
            for key, held in cell.leases.items()
            if not held.firm and key not in open_leases
        }

    def _probe(self) -> None:
        """Who stands first in a line, could run, and sleeps on although it could run at the last looks too, idles."""
        idle: dict[Call, tuple[int, int]] = {}
        for gate in self.gates:
            if gate.steady():
                book = gate.memory.book if gate.memory is not None else self._books()[0][0]
                for call in leaders(gate.pump.room):
                    told = not self.policies[
                        call.rungs[call.rung].target
                    ].hidden  # a learned limit wakes nobody when it rises
                    if told and could_run(book, call, self.time.now_ms()):
                        asks, looks = self._idle.get(call, (0, 0))
                        idle[call] = (call.asks, looks + 1 if asks == call.asks else 1)
        patience = 2 if self.shared is None else LOOKS_AT_SHARED
        self.idled += sum(looks == patience for _, looks in idle.values())
        self._idle = idle
        orphans = self._orphans()
        patience = 2 if self.shared is None else LOOKS_AT_ORPHANS
        self.orphaned += sum(looks == patience for looks in orphans.values())
        self._orphaned = orphans
        self.time.at(self.time.now_ms() + PROBE_MS, self._probe)


def _adds_a_burst(fault: Fault) -> bool:
    """Whether admission itself may add a burst for it, once (design 2: P1)."""
    return fault.kind == "store_evict" or fault.jumps_forward
