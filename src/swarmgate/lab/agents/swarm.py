"""
A swarm on one event loop: agents with connections of their own, open ones that never wait, closed ones that do.

Latency counts from the instant at which a call was wanted, so a slow target cannot hide behind agents that it has stopped
(no coordinated omission). Every agent keeps a connection and says every few seconds that it lives.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from swarmgate.http1.cork import Cork
from swarmgate.http1.dial import Endpoint
from swarmgate.http1.sweep import Sweep
from swarmgate.http1.upstreams import Locate, Located, Origin, PoolLimits, Upstreams
from swarmgate.lab.agents.records import CallRow, Fate
from swarmgate.lab.agents.ways import NO, STREAMED, Way, deferral_of
from swarmgate.lab.agents.wire import Answer, Send
from swarmgate.lab.chain import NOTHING, Heard, heard
from swarmgate.lab.standin.question import MOST_OUTPUT_TOKENS
from swarmgate.lab.workload import Player, Wanted

LOOK_S = 0.5
CONNECTIONS = 8  # of one agent; more would be a bug of the agent
HEARTBEAT_S = 15.0
CONNECTS_PER_S = 1_000
GATHERED_BY_S = 20.0
LATEST_S = 1.0  # how long a run waits for what is still open


class Job:
    """One call of an agent and its fate."""

    __slots__ = (
        "chain",
        "deferrals",
        "first_ms",
        "origin_ms",
        "refused",
        "send",
        "sends",
        "state",
        "ticket",
        "timer",
        "wanted",
    )

    def __init__(self, wanted: Wanted, origin_ms: int) -> None:
        self.wanted = wanted
        self.origin_ms = origin_ms  # the run's zero on the machine's clock
        self.send: Send | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.ticket = b""
        self.sends = self.deferrals = self.refused = 0
        self.first_ms = 0
        self.chain = NOTHING
        self.state = "waiting"

    def row(self, fate: Fate, end_ms: int, answer: Answer | None) -> CallRow:
        """What is written down about it."""
        wanted = self.wanted
        fields = answer.fields if answer is not None else {}
        return CallRow(
            call=wanted.call_id,
            kind=wanted.task_type,
            priority=wanted.priority,
            target=wanted.target,
            wanted_ms=self.origin_ms + wanted.t_ms,
            first_ms=answer.first_ms if answer is not None else 0,
            end_ms=end_ms,
            fate=fate.value,
            prompt_tokens=wanted.prompt_tokens,
            output_tokens=wanted.output_tokens if fate is Fate.ANSWERED else 0,
            wanted_output=wanted.output_tokens,
            sends=self.sends,
            deferrals=self.deferrals,
            refused=self.refused,
            key=fields.get(b"x-swarmgate-key-id", b"").decode("latin-1"),
            queue_ms=int(fields.get(b"x-swarmgate-queue-ms", b"0")),
            status=answer.status if answer is not None else 0,
            why=answer.why if answer is not None else "",
            heard=self.chain.tokens,
            lost=self.chain.lost,
            doubled=self.chain.doubled,
            moved=self.chain.moved,
        )


class Swarm:
    """Plays `players` on `way` for a while; `ended` is told each call's row."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        way: Way,
        players: Iterable[Player],
        ended: Callable[[CallRow], None],
        locate: Locate | None = None,
    ) -> None:
        self._loop = loop
        self._way = way
        self._ended = ended
        self._sweep = Sweep(loop, Cork(loop.call_soon))
        limits = PoolLimits(CONNECTIONS, way.idle_ms, 64)
        self._agents = [(one, Upstreams(loop, self._sweep, locate or _locate, limits)) for one in players]
        self.zero_ms = 0  # the first wish, on the machine's clock
        self._closing = False
        self._gathered = asyncio.Event()
        self._idle = asyncio.Event()  # after the end of wishing: nothing is open
        self.jobs: set[Job] = set()
        self.counts: Counter[str] = Counter()

    @property
    def size(self) -> int:
        """How many agents there are."""
        return len(self._agents)

    @property
    def connected(self) -> int:
        """How many agents have a connection open at this moment."""
        return sum(any(host.pool.open for host in own.hosts.values()) for _, own in self._agents)

    @property
    def now_ms(self) -> int:
        """The machine's monotonic clock."""
        return int(self._loop.time() * 1_000)

    def states(self) -> dict[str, int]:
        """Calls by what they are doing: waiting (for a first byte), answering, deferred."""
        found: Counter[str] = Counter()
        for job in self.jobs:
            started = job.send is not None and job.send.first_ms
            found["answering" if started else job.state] += 1
        return dict(found)

    async def run(self, seconds: float) -> None:
        """From the first wish to the last fate; before it everybody connects, so that no wish waits for that."""
        self._sweep.start()
        await self._gather()
        self.zero_ms = self.now_ms
        for player, own in self._agents:
            self._plan(player, own, 0)
        await asyncio.sleep(seconds)
        self._closing = True
        with suppress(TimeoutError):
            async with asyncio.timeout(LATEST_S if self.jobs else 0):
                await self._idle.wait()
        for job in list(self.jobs):
            self._give_up(job)
        for _, own in self._agents:
            own.close()
        self._sweep.stop()

    async def run_seen(self, seconds: float, see: Callable[[], None]) -> None:
        """The same; `see` is called twice a second meanwhile."""

        async def looking() -> None:
            while True:
                await asyncio.sleep(LOOK_S)
                see()

        task = self._loop.create_task(looking(), name="swarm seen")
        try:
            await self.run(seconds)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _gather(self) -> None:
        """The first heartbeat of all agents; then one every `HEARTBEAT_S` each, evenly spread."""
        if self._way.heartbeat(self._agents[0][0].name) is None:
            return
        for number, (player, own) in enumerate(self._agents):
            self._loop.call_later(number / CONNECTS_PER_S, self._live, player.name, own, number)
        with suppress(TimeoutError):
            async with asyncio.timeout(GATHERED_BY_S):
                await self._gathered.wait()

    def _give_up(self, job: Job) -> None:
        if job.timer is not None:
            job.timer.cancel()
        if job.send is not None:
            job.send.drop()
        self.jobs.discard(job)
        self._ended(job.row(Fate.OPEN, self.now_ms, None))

    def _live(self, name: str, own: Upstreams, number: int | None = None) -> None:
        """An agent says that it lives, on the connection that it keeps; `number` is given with the first time."""
        beat = self._way.heartbeat(name)
        if self._closing or beat is None:
            return
        self.counts["heartbeats"] += 1
        Send(own, beat.origin, beat.method, beat.data, self._lived)
        again_s = HEARTBEAT_S if number is None else HEARTBEAT_S * (1 + number / self.size)
        self._loop.call_later(again_s, self._live, name, own)

    def _lived(self, answer: Answer) -> None:
        self.counts["heard" if answer.status else "lost heartbeats"] += 1
        if self.counts["heard"] >= self.size:
            self._gathered.set()

    def _plan(self, player: Player, own: Upstreams, free_ms: int) -> None:
        """Wait for the agent's next wish."""
        if self._closing:
            return
        wanted = player.next(free_ms)
        while wanted is not None and not self._way.takes(wanted):
            self.counts["left out"] += 1
            wanted = player.next(max(free_ms, wanted.t_ms))
        if wanted is not None:
            self._loop.call_at((self.zero_ms + wanted.t_ms) / 1_000, self._want, player, own, wanted)

    def _want(self, player: Player, own: Upstreams, wanted: Wanted) -> None:
        if self._closing:
            return
        if not player.closed:
            self._plan(player, own, 0)
        job = Job(wanted, self.zero_ms)
        self.counts["wanted"] += 1
        self.jobs.add(job)
        relative_ms = self.now_ms - self.zero_ms
        self._send_at(player, own, job, self._way.first(wanted, relative_ms))

    def _send_at(self, player: Player, own: Upstreams, job: Job, at_ms: int) -> None:
        if at_ms <= self.now_ms - self.zero_ms:
            self._send(player, own, job)
        else:
            job.timer = self._loop.call_at((self.zero_ms + at_ms) / 1_000, self._send, player, own, job)

    def _send(self, player: Player, own: Upstreams, job: Job) -> None:
        job.timer = None
        job.state = "waiting"
        job.sends += 1
        out = self._way.outgoing(job.wanted, job.ticket)
        keeps = self._way.chained and job.wanted.task_type in STREAMED
        back = partial(self._back, player, own, job)
        job.send = Send(own, out.origin, out.method, out.data, back, keeps=keeps)

    def _back(self, player: Player, own: Upstreams, job: Job, answer: Answer) -> None:
        job.send = None
        if answer.status == 200 and answer.is_whole:
            job.chain = self._chain(job.wanted, answer)
            self._over(player, own, job, Fate.ANSWERED, answer)
            return
        is_deferral = deferral_of(answer) is not None
        if answer.status in NO and not is_deferral:
            job.refused += 1
            self.counts["refused"] += 1
        following = self._way.after(job.wanted, answer, job.sends, self.now_ms - self.zero_ms)
        if following.at_ms is None:
            fate = Fate.GAVE_UP if is_deferral or answer.status in NO or not answer.status else Fate.FAILED
            self._over(player, own, job, fate, answer)
            return
        if following.is_deferral:
            job.deferrals += 1
            self.counts["deferrals"] += 1
        job.ticket = following.ticket
        job.state = "deferred" if following.is_deferral else "backing off"
        self._send_at(player, own, job, following.at_ms)

    def _chain(self, wanted: Wanted, answer: Answer) -> Heard:
        if not (self._way.chained and wanted.task_type in STREAMED):
            return NOTHING
        tokens = max(1, min(wanted.output_tokens, MOST_OUTPUT_TOKENS, wanted.output_cap_tokens))
        return heard(wanted.call_id, tokens, answer.said)

    def _over(self, player: Player, own: Upstreams, job: Job, fate: Fate, answer: Answer) -> None:
        self.jobs.discard(job)
        if self._closing and not self.jobs:
            self._idle.set()
        self.counts[fate.value] += 1
        self._ended(job.row(fate, self.now_ms, answer))
        if player.closed:
            self._plan(player, own, self.now_ms - self.zero_ms)


def _locate(origin: Origin, found: Located) -> None:
    """Everything is on this machine."""
    found(Endpoint((origin.host,), origin.port))
