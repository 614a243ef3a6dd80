"""
The users' incident (essay A): one batch job's contexts blow up, its answers take 40 s, and the mean of all calls hides it.

Many short calls and a few of the batch, at even rates. The stand-in reads as slowly as the users' model did: 16K tokens of
prompt add 2.5 s, 240K add 37 s. The batch is as good as most software: told that its prompts are too long, it cuts them.
"""

import asyncio
from typing import NamedTuple

from swarmgate.http1.dial import Endpoint
from swarmgate.http1.sweep import Sweep
from swarmgate.http1.upstreams import Located, Origin, PoolLimits, Upstreams
from swarmgate.lab.agents.body import CHAT, chat_body, post
from swarmgate.lab.agents.wire import Answer, Send
from swarmgate.lab.standin.plan import ProviderPlan, StandInPlan
from swarmgate.lab.workload import Wanted

PROVIDER = "model-api"
MODEL = "lab-model"
KEYS = 2
DENSE = "hypotheses"
BATCH = "corpus-batch"
DENSE_PER_S = 8.0
BATCH_PER_S = 0.2
DENSE_TOKENS = 600
USUAL_TOKENS = 12_000
BLOWN_TOKENS = 240_000
CEILING_TOKENS = 16_384
REQUESTS_PER_MINUTE = 2_000  # of the gate's file: more than enough
CUT_TOKENS = 16_000  # what the batch sends once it was refused
OUTPUT_TOKENS = 10
TOO_LONG = "policy_context_ceiling"
_PATIENCE_MS = 300_000

STAND_IN = StandInPlan(
    providers=(
        ProviderPlan(
            name=PROVIDER,
            dialect="openai",
            keys=KEYS,
            scopes=KEYS,
            latency="gpt-5-mini",
            reading_us=155,  # (11.8 s - 4.2 s) / (64K - 16K tokens)
            limits=((),),
        ),
    )
)


class Seen(NamedTuple):
    """One call as its agent saw it, by the loop's clock."""

    task_type: str
    sent_ms: int
    took_ms: int
    prompt_tokens: int
    status: int
    why: str


class Times(NamedTuple):
    """Of some answers: how many, their mean and their P99 in ms."""

    answers: int
    mean_ms: int
    p99_ms: int


class Agents:
    """Everybody who calls; `batch_tokens` is how long the batch's prompts are now, `seen` what became of each call."""

    def __init__(self, loop: asyncio.AbstractEventLoop, gate_port: int) -> None:
        self._loop = loop
        self._sweep = Sweep(loop)
        self._gate = Origin("http", "127.0.0.1", gate_port)
        self._upstreams = Upstreams(loop, self._sweep, _here, PoolLimits())
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._open: set[Send] = set()
        self._idle = asyncio.Event()  # the last of them came back
        self._calls = 0
        self.batch_tokens = USUAL_TOKENS
        self.seen: list[Seen] = []

    def start(self) -> None:
        """Begin to call."""
        self._sweep.start()
        self._every(DENSE, 1 / DENSE_PER_S)
        self._every(BATCH, 1 / BATCH_PER_S)

    async def stop(self) -> None:
        """Call no more, and let what is open come back."""
        for timer in self._timers.values():
            timer.cancel()
        if self._open:
            self._idle.clear()
            await self._idle.wait()
        self._upstreams.close()
        self._sweep.stop()

    def _every(self, task_type: str, gap_s: float) -> None:
        self._timers[task_type] = self._loop.call_later(gap_s, self._every, task_type, gap_s)
        self._call(task_type)

    def _call(self, task_type: str) -> None:
        self._calls += 1
        tokens = DENSE_TOKENS if task_type == DENSE else self.batch_tokens
        agent = f"{task_type}-{self._calls % 5}"
        headers = {"agent": agent, "goal": "survey", "step": f"{self._calls}", "task-type": task_type, "priority": "P1"}
        named = [(f"x-swarmgate-{name}".encode(), value.encode()) for name, value in headers.items()]
        wanted = Wanted(
            0, agent, self._calls, "literature", "P1", "read", "", tokens, OUTPUT_TOKENS, 1_024, _PATIENCE_MS
        )
        data = post(CHAT, b"gate", named, chat_body(wanted, MODEL, is_stream=True))
        sent_ms = int(self._loop.time() * 1_000)

        def back(answer: Answer) -> None:
            self._open.discard(send)
            took_ms = int(self._loop.time() * 1_000) - sent_ms
            status = answer.status if answer.is_whole else 0
            self.seen.append(Seen(task_type, sent_ms, took_ms, tokens, status, answer.why))
            if answer.why == TOO_LONG and self.batch_tokens > CUT_TOKENS:
                self.batch_tokens = CUT_TOKENS
                self._call(task_type)
            if not self._open:
                self._idle.set()

        send = Send(self._upstreams, self._gate, b"POST", data, back)
        self._open.add(send)

    def times(self, from_ms: int, to_ms: int, *task_types: str) -> Times:
        """Of answers to calls that left within a time; `task_types`: only of these."""
        took = sorted(
            one.took_ms
            for one in self.seen
            if one.status == 200 and from_ms <= one.sent_ms < to_ms and (not task_types or one.task_type in task_types)
        )
        if not took:
            return Times(0, 0, 0)
        return Times(len(took), sum(took) // len(took), took[-(-len(took) * 99 // 100) - 1])


def configuration(provider_port: int, *, ceiling: bool) -> str:
    """The gate's TOML, without and with the ceiling."""
    keys = ", ".join(f'key-{number} = "env:{variable(number)}"' for number in range(1, KEYS + 1))
    told = f"""[targets.{PROVIDER}]
base_url = "http://127.0.0.1:{provider_port}/v1"
keys = {{ {keys} }}
limits = ["{REQUESTS_PER_MINUTE} per 60s"]

[prices."{MODEL}"]
input = 2.0
output = 8.0
"""
    return told + (f"\n[task_types.{BATCH}]\ncontext = {CEILING_TOKENS}\n" if ceiling else "")


def variable(number: int) -> str:
    """The environment's name of key `number`."""
    return f"SWARMGATE_LAB_KEY_{number}"


def environment() -> dict[str, str]:
    """Every key by its name in the environment."""
    provider = STAND_IN.providers[0]
    return {variable(number): provider.key_of(number) for number in range(1, KEYS + 1)}


def _here(_origin: Origin, located: Located) -> None:
    located(Endpoint((_origin.host,), _origin.port))
