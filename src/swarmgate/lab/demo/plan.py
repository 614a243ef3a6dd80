"""
The demo's world, worked out from its workload: how large the limits are, and who is told what.

The load is the trace's; the limits are set so that it is `OVERLOAD` times what the gate's budgets allow, all keys together
(design 7: a scheduler is judged by its goodput against the compiled limits). The stand-ins count in four different ways;
the gate is told the number and nothing else.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple
from zlib import crc32

from swarmgate.config.targets import with_room
from swarmgate.core.compiler import Published, Unit, compile_limit
from swarmgate.core.limits import BadLimit
from swarmgate.lab.standin.plan import LOOPBACK, HostPlan, ProviderPlan, StandInPlan
from swarmgate.lab.traces.mix import MIX, PARTS, Workload, workload
from swarmgate.lab.traces.players import Phases
from swarmgate.lab.traces.shipped import trace_of
from swarmgate.lab.workload import stream

WINDOW_MS = 10_000
OVERLOAD_PERCENT = 120
CALM_PERCENT = 89
CALLS_PER_AGENT_MINUTE = 4.0
LARGEST_TOKENS = 16_384
TOKENS_PER_REQUEST = 200  # limits as providers publish them: 10,000 requests beside 2 M tokens a minute
MODEL = "lab-model"
PROVIDER = "openai-like"
UNKNOWN_HOSTS = "3 per 10s"
LATENCY = "gpt-5.4-nano"  # 0.7 s and 3.9 ms a token: the users' mean answer of 2 s
ANSWER_MS = 2_000
AGENTS_PER_KEY = 100
WHOLE_AGENTS, WHOLE_S = 1_000, 40
LEAST_PER_KEY = 8 * LARGEST_TOKENS


class Lengths(NamedTuple):
    """Seconds of each arm; 0 leaves it out. The gate's arm begins with `calm` seconds below its capacity."""

    calm: int = 15
    gate: int = 45
    direct: int = 25
    one_budget: int = 25
    one_key: int = 15


class DemoPlan(NamedTuple):
    """
    What is run.

    `tokens_limit` and `requests_limit` are what a key really has per window, `tokens_compiled` what the gate makes of
    the former (tokens per window and key); `offered_tokens` what the workload wants per window once it is going.
    """

    agents: int
    keys: int
    lengths: Lengths
    profile: str
    calls_per_s: float
    tokens_limit: int
    requests_limit: int
    tokens_compiled: int
    offered_tokens: int
    offered_calls: int
    egress: bool = True

    @property
    def is_whole(self) -> bool:
        """Whether figures in time mean something: enough agents, for several windows."""
        return self.agents >= WHOLE_AGENTS and self.lengths.calm + self.lengths.gate >= WHOLE_S

    @property
    def compiled_calls(self) -> int:
        """Calls of this load's mean size per window that the gate's budgets allow, all keys together."""
        return max(1, self.tokens_compiled * self.keys * self.offered_calls // max(1, self.offered_tokens))

    def workload(self, seconds: float, calm_s: float = 0) -> Workload:
        """The agents of an arm, the same in each; in the gate's arm they begin calmly, with `CALM_PERCENT` of capacity."""
        rush = workload(self.profile, agents=self.agents, calls_per_s=self.calls_per_s, seconds=seconds, target="model")
        if not calm_s:
            return rush
        rate = self.calls_per_s * CALM_PERCENT / OVERLOAD_PERCENT
        calm = workload(self.profile, agents=self.agents, calls_per_s=rate, seconds=calm_s, target="model")
        pairs = zip(calm.players, rush.players, strict=True)
        begin_ms = round(calm_s * 1_000)
        return rush._replace(players=[Phases(((0, first), (begin_ms, then))) for first, then in pairs])

    def stand_ins(self) -> StandInPlan:
        """What the stand-ins really do."""
        kinds: list[dict[str, Any]] = [
            {"kind": "fixed_window", "phase_ms": 3_700},
            {"kind": "sliding_log"},
            {"kind": "token_bucket"},
            {"kind": "gcra"},
        ]
        limits = [
            [
                kind | {"limit": self.requests_limit, "window_ms": WINDOW_MS, "unit": "requests"},
                kind | {"limit": self.tokens_limit, "window_ms": WINDOW_MS, "unit": "tokens"},
            ]
            for kind in kinds
        ]
        provider = ProviderPlan.model_validate(
            {
                "name": PROVIDER,
                "dialect": "openai",
                "keys": self.keys,
                "scopes": self.keys,
                "latency": LATENCY,
                "limits": limits,
            }
        )
        return StandInPlan(providers=(provider,), hosts={}, web_ports=(0, 0))

    def host(self, name: str) -> HostPlan:
        """What a web host takes."""
        return self.stand_ins().host(name)

    def gate_config(self, model_port: int, keys: int, web_ports: Sequence[int]) -> str:
        """The gate's TOML: limits as published, keys by name, hosts pinned to the stand-ins' ports."""
        names = ", ".join(f'key-{n} = "env:{key_variable(n)}"' for n in range(1, keys + 1))
        window = f"{WINDOW_MS // 1_000}s"
        return f"""# Written by `swarmgate demo`.
[targets.{PROVIDER}]
base_url = "http://127.0.0.1:{model_port}/v1"
keys = {{ {names} }}
key_limits = ["{self.requests_limit} per {window}", "{self.tokens_limit} tokens per {window}"]
largest_tokens = {LARGEST_TOKENS}

[egress]                # nobody knows what these hosts take: begin with care, and do not grow beyond it
unknown = "{UNKNOWN_HOSTS}"
ceiling = "{UNKNOWN_HOSTS}"
presets = "off"
wait = "20s"

[resolve]
{self._pins(web_ports)}
"""

    def _pins(self, ports: Sequence[int]) -> str:
        names = sorted({host for part in PARTS for call in trace_of(part.trace).calls for host in call.hosts})
        return "\n".join(f'"{name}" = "{LOOPBACK}:{ports[crc32(name.encode()) % len(ports)]}"' for name in names)


def key_variable(number: int) -> str:
    """The environment's name of key `number`."""
    return f"SWARMGATE_LAB_KEY_{number}"


def make_plan(agents: int = 2_000, lengths: Lengths = Lengths(), profile: str = MIX) -> DemoPlan:  # noqa: B008 - frozen
    """Set the limits from the load. Errors: `LabError`, `TraceError`, OSError about the profile."""
    rate = agents * CALLS_PER_AGENT_MINUTE / 60
    seconds = max(3, *lengths[1:])
    windows = (seconds * 1_000 - settled_ms(seconds)) / WINDOW_MS
    wanted = [
        one
        for one in stream(workload(profile, agents=agents, calls_per_s=rate, seconds=seconds).players, ANSWER_MS)
        if one.task_type != "fetch" and one.t_ms >= settled_ms(seconds)
    ]
    tokens = round(sum(one.prompt_tokens + one.output_tokens for one in wanted) / windows)
    calls = round(len(wanted) / windows)
    keys = max(1, agents // AGENTS_PER_KEY)
    limit, compiled = _limit_that_compiles_to(tokens * 100 // OVERLOAD_PERCENT // keys)
    requests = limit // TOKENS_PER_REQUEST
    return DemoPlan(agents, keys, lengths, profile, rate, limit, requests, compiled, tokens, calls)


def settled_ms(seconds: float) -> int:
    """The first window is left out, in short runs the first third."""
    return min(WINDOW_MS, round(seconds * 1_000 / 3))


def _limit_that_compiles_to(wanted: int) -> tuple[int, int]:
    """The smallest published limit whose budget allows `wanted` tokens per window, and what it allows."""
    low, high = LEAST_PER_KEY, max(LEAST_PER_KEY, wanted * 4)
    while low < high:
        middle = (low + high) // 2
        if _compiled(middle) < wanted:
            low = middle + 1
        else:
            high = middle
    return low, _compiled(low)


def _compiled(limit: int) -> int:
    largest = (LARGEST_TOKENS,) * 3
    try:
        limits = compile_limit(with_room(Published(limit, WINDOW_MS, Unit.TOKENS, largest=largest))).limits
    except BadLimit:
        return 0
    return limits.quota * WINDOW_MS // limits.window_ms
