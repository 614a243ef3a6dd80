"""
One arm of the demo in a process of its own: the same agents on one way to their targets, their rows and their progress.

The task comes as JSON, progress goes out as one JSON object a line, every half second.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from swarmgate.http1.upstreams import Origin
from swarmgate.lab.agents.records import CallRow, Fate, lines_of
from swarmgate.lab.agents.swarm import Swarm
from swarmgate.lab.agents.ways import ByThemselves, Direct, ThroughGate, Way
from swarmgate.lab.demo.plan import MODEL, WINDOW_MS, DemoPlan
from swarmgate.lab.standin.plan import LOOPBACK
from swarmgate.lab.workload import Player

PERIOD_S = 0.5
PROBE_S = 0.05
Road = Literal["gate", "direct", "one_budget"]


class ArmTask(msgspec.Struct, frozen=True):
    """
    What an arm's process is told.

    `calm_s` comes before `seconds`; `egress` = the gate has doors for fetches; `rows` is the file to write; `chained` = streams are looked
    at, token by token.
    """

    plan: DemoPlan
    road: Road
    seconds: float
    gate_port: int
    model_port: int
    web_ports: list[int]
    rows: str
    egress: bool = False
    calm_s: float = 0
    chained: bool = False


class Progress(msgspec.Struct, frozen=True):
    """
    How an arm is going: QPS and TPM answered over 5 s, counts so far.

    `zero_ms` is the machine's clock at its first wish, 0 while the agents still connect; `t_s` counts from there.
    `connected` of `agents` have a connection open now; `late_ms` is the latest that a timer of theirs was since the last
    progress, which tells whether this machine keeps up.
    """

    zero_ms: int
    t_s: float
    states: dict[str, int]
    counts: dict[str, int]
    qps: float
    tpm: float
    agents: int = 0
    connected: int = 0
    late_ms: int = 0


async def run_arm(task: ArmTask, rows: Callable[[bytes], Any], tell: Callable[[bytes], None]) -> None:
    """Play the arm; `rows` gets lines of calls that ended, `tell` a line of progress."""
    loop = asyncio.get_running_loop()
    watch = _Watch(loop, rows, tell)
    players = task.plan.workload(task.seconds, task.calm_s).players
    swarm = Swarm(loop, way_of(task, players), players, watch.ended)
    watch.begin(swarm)
    await swarm.run(task.calm_s + task.seconds)
    watch.finish()


def way_of(task: ArmTask, players: Sequence[Player]) -> Way:
    """The agents' way."""
    plan = task.plan
    if task.road == "gate":
        return ThroughGate(Origin("http", LOOPBACK, task.gate_port), MODEL, egress=task.egress, chained=task.chained)
    provider = plan.stand_ins().providers[0]
    # Nobody pools keys: each share of the agents has one, and teams stand side by side.
    key_of = {
        player.name: provider.key_of(number * plan.keys // len(players) + 1) for number, player in enumerate(players)
    }
    web = tuple(Origin("http", LOOPBACK, port) for port in task.web_ports)
    way = ByThemselves(Direct(Origin("http", LOOPBACK, task.model_port), web, key_of, MODEL), seed=1)
    if task.road == "one_budget":
        # One number for everything, as large as what the gate's budgets let through: less would waste, more would break.
        way.share(plan.compiled_calls, WINDOW_MS)
    return way


class _Watch:
    """Rows to the file, figures to the parent."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, write: Callable[[bytes], Any], tell: Callable[[bytes], None]
    ) -> None:
        self._loop = loop
        self._write = write
        self._tell = tell
        self._rows: list[CallRow] = []
        self._recent: deque[CallRow] = deque()
        self._swarm: Swarm | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._probe: asyncio.TimerHandle | None = None
        self._late_s = 0.0

    def begin(self, swarm: Swarm) -> None:
        self._swarm = swarm
        self._tick()
        self._look(self._loop.time())

    def ended(self, row: CallRow) -> None:
        self._rows.append(row)
        self._recent.append(row)

    def finish(self) -> None:
        for timer in (self._timer, self._probe):
            if timer is not None:
                timer.cancel()
        self._flush()

    def _look(self, due_s: float) -> None:
        """How late this timer is, nothing else on this loop can know."""
        now_s = self._loop.time()
        self._late_s = max(self._late_s, now_s - due_s)
        self._probe = self._loop.call_at(now_s + PROBE_S, self._look, now_s + PROBE_S)

    def _flush(self) -> None:
        rows, self._rows = self._rows, []
        self._write(lines_of(rows))

    def _tick(self) -> None:
        self._timer = self._loop.call_later(PERIOD_S, self._tick)
        self._flush()
        swarm = self._swarm
        assert swarm is not None
        now_ms = swarm.now_ms
        late_s, self._late_s = self._late_s, 0.0
        while self._recent and self._recent[0].end_ms < now_ms - 5_000:
            self._recent.popleft()
        good = [row for row in self._recent if row.fate == Fate.ANSWERED and row.prompt_tokens]
        tokens = sum(row.prompt_tokens + row.output_tokens for row in good)
        self._tell(
            msgspec.json.encode(
                Progress(
                    swarm.zero_ms,
                    (now_ms - swarm.zero_ms) / 1_000 if swarm.zero_ms else 0.0,
                    swarm.states(),
                    dict(swarm.counts),
                    len(good) / 5,
                    tokens * 12,
                    swarm.size,
                    swarm.connected,
                    round(late_s * 1_000),
                )
            )
        )
