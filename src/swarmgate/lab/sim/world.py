"""
One world: targets, gates, agents and weather of a scenario, run on virtual time from one seed.

Safety: promises are checked after each event by the umpire, and at the end by the witnesses. Liveness: when the load
ends and the faults are over, every call must come to its end and nothing may stay reserved.
"""

from collections.abc import Callable
from random import Random
from time import perf_counter

from swarmgate.core import kernel
from swarmgate.core.commands import Answer, Note
from swarmgate.core.passage import touch
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call
from swarmgate.lab import scenario as told
from swarmgate.lab.faults import Fault
from swarmgate.lab.sim.gate import Setting, SimGate, Watcher
from swarmgate.lab.sim.policies import NO_CALL, TargetPolicy
from swarmgate.lab.sim.store import SimStore
from swarmgate.lab.sim.swarm import Swarm
from swarmgate.lab.sim.target import Request, SimTarget
from swarmgate.lab.sim.umpire import Umpire
from swarmgate.lab.sim.virtual_time import VirtualTime
from swarmgate.lab.sim.weather import Weather
from swarmgate.lab.sim.wire import SimWire
from swarmgate.lab.workload import agents

DRAIN_MS = 400_000  # longer than any caller's deadline and the lease after it
LEASES_END_MS = 200_000
STORE_FAULTS = frozenset({"store_lag", "store_frozen", "store_down", "store_flush", "clock_step"})


class World:
    """Everything of one run; `run` it once, then measure it."""

    def __init__(self, scenario: told.Scenario, seed: int, plan: tuple[Fault, ...] | None = None) -> None:
        self.scenario = scenario
        self.seed = seed
        self.time = VirtualTime()
        rng = Random(seed)
        faults = scenario.faults if plan is None else plan
        self.weather = Weather(faults, self.time, Random(rng.getrandbits(64)))
        self.targets = {
            target.name: SimTarget(target, self.time, Random(rng.getrandbits(64))) for target in scenario.targets
        }
        for name, target in self.targets.items():
            self._trouble(name, target)
        self.policies = {target.name: TargetPolicy(target, self._largest(target.name)) for target in scenario.targets}
        self.shared = self._shared(faults)
        self.umpire = Umpire(self.time, self.policies.values())
        swarm = [one for load in scenario.loads for one in agents(load.demand(), Random(f"{seed}/{load.name}"))]
        self.gates: list[SimGate] = []
        setting = Setting(
            self.time,
            self.weather,
            Watcher(self._sent, self._noted, self._ended),
            tuple(self.policies.values()),
            self.umpire,
            self.shared,
            scenario.gates,
        )
        for number in range(scenario.gates):
            wire = SimWire(
                self.time,
                self.weather,
                Random(rng.getrandbits(64)),
                self.targets,
                self._request,
            )
            self.gates.append(SimGate(f"gate-{number + 1}", setting, wire))
        self.sent_to_empty_key = 0
        self.stops: list[tuple[int, int]] = []
        self.wall_s = 0.0
        self._empty_until_ms: dict[tuple[str, int], int] = {}
        self._last_sent_ms = 0
        self._waited = False
        charges = {target.name: target.charge for target in scenario.targets}
        self.swarm = Swarm(self.time, self.gates, swarm, charges)
        for fault in faults:
            self._strike(fault)

    def _trouble(self, name: str, target: SimTarget) -> None:
        target.slower_ms = lambda: self.weather.more_ms("latency_spike", name)
        target.unwell = lambda: self.weather.strikes("brownout", name)

    def _largest(self, target: str) -> tuple[int, int, int]:
        largest = list(NO_CALL)
        for load in self.scenario.loads:
            if load.target == target:
                demand = load.demand()
                rank = int(demand.priority[1])
                tokens = demand.prompt.at(2**32 - 1) * demand.prompt_percent // 100 + demand.output.at(2**32 - 1)
                largest[rank] = max(largest[rank], tokens)
        return largest[0], largest[1], largest[2]

    def _shared(self, faults: tuple[Fault, ...]) -> SimStore | None:
        if self.scenario.gates == 1 and not any(fault.kind in STORE_FAULTS for fault in faults):
            return None
        store = SimStore(self.time, self.weather, {})
        store.book.birth_ms = -(2**40)
        return store

    def _strike(self, fault: Fault) -> None:
        gate = next((gate for gate in self.gates if gate.name == fault.where), None)
        if fault.kind == "gate_crash" and gate is not None:
            self.time.at(fault.at_ms, self._crash, gate, fault)
        elif fault.kind == "gate_pause" and gate is not None:
            self.time.at(fault.at_ms, gate.stop_until, fault.ends_ms)

    def _crash(self, gate: SimGate, fault: Fault) -> None:
        if not gate.alive:
            return
        calls = gate.kill()
        self.swarm.gate_died(calls)
        self.time.at(fault.ends_ms, gate.start)

    def _request(self, call: Call) -> Request:
        return self.swarm.request(call)

    def _ended(self, call: Call, answer: Answer) -> None:
        self.swarm.ended(call, answer)

    def _sent(self, call: Call) -> None:
        job = self.swarm.job(call)
        now_ms = job.sent_ms = self.time.now_ms()
        if job.first_ms < 0:
            job.first_ms = now_ms
        self.umpire.sent(call)
        self.sent_to_empty_key += now_ms < self._empty_until_ms.get(self._scope(call), 0)
        if self._waited:
            self.stops.append((now_ms, now_ms - self._last_sent_ms))
        self._last_sent_ms = now_ms
        self._waited = any(len(gate.pump.room) for gate in self.gates)

    def _noted(self, call: Call, note: Note) -> None:
        if note.reason is Reason.TARGET_RATE and note.outcome is not None:
            self._empty_until_ms[self._scope(call)] = self.time.now_ms() + (note.outcome.hint_ms or 0)

    def _scope(self, call: Call) -> tuple[str, int]:
        target = self.scenario.target(call.rungs[call.rung].target)
        assert call.route is not None
        return target.name, target.scope_of(int(call.route.key.removeprefix("key-")) - 1)

    def run(self, progress: Callable[[float], None] = lambda _share: None) -> None:
        """Let the scenario happen, then let everything come to its end."""
        began_s = perf_counter()
        self.swarm.start()
        duration_ms = self.scenario.duration_s * 1_000
        for part in range(1, 101):
            self.time.run(duration_ms * part // 100)
            progress(part / 100)
        self.wall_s = perf_counter() - began_s
        self.swarm.closing = True
        end_ms = max([duration_ms, *(fault.ends_ms for fault in self.weather.plan)])
        self.time.run(end_ms + DRAIN_MS, idle=lambda: not self.swarm.open_jobs)
        self.time.run(self.time.now_ms() + LEASES_END_MS)  # those of dead processes, and the holds after them

    def writes_twice(self) -> int:
        """Writes that arrived at a target more than once although no repeat was allowed."""
        writes = {job.wanted.call_id for job in self.swarm.jobs if job.wanted.effect == "write"}
        served: dict[str, int] = {}
        for target in self.targets.values():
            for witness in target.witnesses:
                for row in witness.arrivals:
                    name = row.call_id.partition("#")[0]
                    if row.ok and name in writes:
                        served[name] = served.get(name, 0) + 1
        return sum(times > 1 for times in served.values())

    def left_behind(self) -> list[str]:
        """What outlived its call: open calls, waiting calls, reservations, places on the way (design 2: P9)."""
        found = [
            f"P9: {gate.name} keeps {len(gate.pump.open)} calls open, {len(gate.pump.room)} waiting"
            for gate in self.gates
            if gate.pump.open or len(gate.pump.room)
        ]
        book = self.shared.book if self.shared is not None else None
        for gate in self.gates:
            book = gate.memory.book if gate.memory is not None else book
        if book is not None:
            for name, cell in book.cells.items():
                now_ms = kernel.advance(book, self._store_ms())
                touch(cell, now_ms)
                while cell.due_ms <= now_ms:  # a touch ends a hundred leases at most
                    touch(cell, now_ms)
                if cell.pending:
                    found.append(f"P9: {cell.pending} units stay reserved in {name}")
        return found

    def _store_ms(self) -> int:
        return self.shared.now_ms() if self.shared is not None else self.time.now_ms()
