"""
The agents of a world and what became of what they wanted.

An agent repeats a deferred call at its `not_before` with its ticket, until its own deadline: as the SDK does. An agent
whose gate was killed sees a reset: reads are repeated at the next gate, the effect of a write that had left is unknown.
"""

from random import Random

from swarmgate.core.answer_times import AnswerTimes
from swarmgate.core.commands import Answer, End
from swarmgate.core.effect import Effect
from swarmgate.core.estimate import Charge, Outputs, charged
from swarmgate.core.events import CLIENT_LEFT
from swarmgate.core.patience import wait_ms
from swarmgate.core.prompt_size import prompt_size
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call, State, Step
from swarmgate.lab import scenario as told
from swarmgate.lab.sim.gate import SimGate
from swarmgate.lab.sim.target import Request
from swarmgate.lab.sim.virtual_time import VirtualTime
from swarmgate.lab.sim.weather import Weather
from swarmgate.lab.workload import Player, Wanted

RANKS = {"P0": 0, "P1": 1, "P2": 2}
SDK_READS_MS = 600_000  # the default of the official SDKs
HOLD_EGRESS_MS = 20_000
RECONNECT_MS = 1_000
LEAVES_WITHIN = 15  # two to this many ms: as often in the first ones as in the last half minute


class Job:
    """One wanted call and its fate; `end` is None while it is open, EXPIRED is the agent's own impatience."""

    __slots__ = (
        "agent",
        "call",
        "deferrals",
        "end",
        "ended_ms",
        "first_call",
        "first_ms",
        "repeats",
        "scope",
        "sent_ms",
        "wanted",
    )

    def __init__(self, agent: Player, wanted: Wanted) -> None:
        self.agent = agent
        self.wanted = wanted
        self.call: Call | None = None
        self.end: str = ""
        self.ended_ms = 0
        self.first_call = ""  # the id of its first submission
        self.first_ms = -1  # when its first attempt left
        self.sent_ms = -1  # when its last attempt left
        self.scope = ("", 0)  # the target and quota scope that its last attempt met
        self.deferrals = 0
        self.repeats = 0


class Swarm:
    """Every agent of a world; `jobs` in the order in which they were wanted."""

    __slots__ = (
        "_by_call",
        "_gates",
        "_ladders",
        "_outputs",
        "_rng",
        "_serial",
        "_targets",
        "_time",
        "_times",
        "_weather",
        "agents",
        "closing",
        "double_ends",
        "jobs",
        "open_jobs",
    )

    def __init__(
        self, time: VirtualTime, weather: Weather, gates: list[SimGate], agents: list[Player], scenario: told.Scenario
    ) -> None:
        self._time = time
        self._weather = weather
        self._rng = Random(len(agents))
        self._gates = gates
        self._targets = {target.name: target for target in scenario.targets}
        self._ladders = {target.name: scenario.ladder(target.name) for target in scenario.targets}
        self._by_call: dict[str, Job] = {}
        self._outputs = Outputs()
        self._times = AnswerTimes()
        self._serial = 0
        self.agents = agents
        self.jobs: list[Job] = []
        self.open_jobs = 0
        self.double_ends = 0
        self.closing = False

    def start(self) -> None:
        """Everybody wants a first call."""
        for number, agent in enumerate(self.agents):
            self._want_next(agent, number, 0)

    def _want_next(self, agent: Player, number: int, free_ms: int) -> None:
        wanted = None if self.closing else agent.next(free_ms)
        if wanted is not None:
            self._time.at(wanted.t_ms, self._want, agent, number, wanted)

    def _want(self, agent: Player, number: int, wanted: Wanted) -> None:
        if self.closing:
            return
        job = Job(agent, wanted)
        self.jobs.append(job)
        self.open_jobs += 1
        self.submit(job, number)
        if not agent.closed:
            self._want_next(agent, number, 0)

    def submit(self, job: Job, number: int, ticket: Call | None = None) -> None:
        """Send the call to a gate that lives; `ticket` is the deferred call it repeats."""
        now_ms = self._time.now_ms()
        if now_ms >= job.wanted.deadline_ms:
            self._finish(job, number, "expired")
            return
        gate = self._gates[(number + job.repeats) % len(self._gates)]
        if not gate.alive:
            job.repeats += 1
            self._time.at(now_ms + RECONNECT_MS, self.submit, job, number)
            return
        self._serial += 1
        call = self._call(gate, job, f"{job.wanted.call_id}#{self._serial}", now_ms)
        if ticket is not None:
            call.ticket, call.score = ticket.ticket, ticket.score
        job.call = call
        job.first_call = job.first_call or call.id
        call.client = number
        self._by_call[call.id] = job
        if self._weather.strikes("client_leaves", "agents"):
            gate.later(now_ms + self._rng.randrange(1 << self._rng.randint(1, LEAVES_WITHIN)), self._leave, gate, call)
        gate.pump.arrive(call)

    def _leave(self, gate: SimGate, call: Call) -> None:
        if call in gate.pump.open:
            self._weather.hit("client_leaves", (call,))
        gate.pump.fire(call, CLIENT_LEFT)

    def _call(self, gate: SimGate, job: Job, identity: str, now_ms: int) -> Call:
        wanted = job.wanted
        rungs = tuple(gate.rungs[name] for name in self._ladders[wanted.target])
        call = Call(identity, rungs, gate.pump.room, rank=RANKS[wanted.priority], arrived_ms=now_ms)
        call.step = Step(
            agent=wanted.agent, task=wanted.task_type, operation=str(wanted.op), task_type=wanted.task_type
        )
        call.effect = Effect.WRITE if wanted.effect == "write" else Effect.READ
        call.keyed = call.effect is Effect.WRITE and self._targets[wanted.target].honours_keys
        call.deadline_ms = wanted.deadline_ms
        left_ms = wanted.deadline_ms - now_ms
        if wanted.prompt_tokens:
            call.wait_until_ms = now_ms + wait_ms(None, left_ms, SDK_READS_MS)
        else:
            call.wait_until_ms = now_ms + wait_ms(HOLD_EGRESS_MS, left_ms, None)
        call.prompt, call.reserve = charged(
            Charge(self._targets[wanted.target].charge),
            wanted.prompt_tokens,
            wanted.output_cap_tokens,
            self._outputs.of(wanted.target, wanted.task_type),
        )
        call.streams, call.times, call.output = False, self._times, wanted.output_cap_tokens
        call.size = prompt_size(wanted.prompt_tokens)
        return call

    def request(self, call: Call) -> Request:
        """What the call is to its target."""
        wanted = self.job(call).wanted
        assert call.route is not None
        key = int(call.route.key.removeprefix("key-")) - 1
        tokens = wanted.prompt_tokens, wanted.output_tokens, wanted.output_cap_tokens
        return Request(call.id, call.attempt, key, *tokens, wanted.idempotency_key or "")

    def job(self, call: Call) -> Job:
        """Whose call it is."""
        return self._by_call[call.id]

    def ended(self, call: Call, answer: Answer) -> None:
        """A gate says how a call ended."""
        job = self._by_call.pop(call.id, None)
        if job is None or job.call is not call:
            self.double_ends += 1
            return
        number = call.client
        assert isinstance(number, int)
        now_ms = self._time.now_ms()
        self._time.trace("ended", call.id, answer.end.value)
        if answer.end is End.DEFERRED and answer.denied is not None:
            job.deferrals += 1
            wait_ms = max(1, answer.denied.not_before_ms - answer.denied.now_ms)
            if now_ms + wait_ms >= job.wanted.deadline_ms:
                self._finish(job, number, "expired")
            else:
                self._time.at(now_ms + wait_ms, self.submit, job, number, call)
            return
        if answer.end is End.ANSWERED and job.wanted.output_tokens:
            self._outputs.of(job.wanted.target, job.wanted.task_type).seen(job.wanted.output_tokens)
        late = answer.reason is Reason.CALLER_DEADLINE and job.sent_ms < 0
        self._finish(job, number, "expired" if late else answer.end.value)

    def gate_died(self, calls: list[Call]) -> None:
        """The callers of a killed gate see a reset."""
        for call in calls:
            job = self._by_call.pop(call.id)
            number = call.client
            assert isinstance(number, int)
            left = call.state in (State.SENDING, State.RELAYING)
            if left and job.wanted.effect == "write":
                self._finish(job, number, "crash")
            else:
                job.repeats += 1
                self._time.at(self._time.now_ms() + RECONNECT_MS, self.submit, job, number)

    def _finish(self, job: Job, number: int, end: str) -> None:
        job.end = end
        job.ended_ms = self._time.now_ms()
        job.call = None
        self.open_jobs -= 1
        if job.agent.closed:
            self._want_next(job.agent, number, job.ended_ms)
