"""
What is served, as frozen data: providers and hosts with the limits that they really have.

The file is JSON, made by the demo or by hand; limits are written as in scenarios (lab/scenario.py). A host that is not
named has one of `DEFAULT_HOSTS`, chosen by its name, so that thousands of names need no list.
"""

from pathlib import Path
from typing import Annotated, Literal
from zlib import crc32

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from swarmgate.lab.errors import LabError
from swarmgate.lab.scenario import Limit, Name, NotNegative, Positive

Dialect = Literal["openai", "anthropic"]
Charge = Literal["prompt", "prompt_then_output", "prompt_and_largest_output"]
LOOPBACK = "127.0.0.1"


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ProviderPlan(_Table):
    """
    One provider: its key number i (`key_of`) belongs to quota scope i modulo `scopes`, and scope i has the limits number i
    modulo their number, so that scopes may count in different ways.

    `charge` is what a limit in tokens counts: the prompt at arrival, and then nothing, the output at its end, or at
    arrival the largest output asked for. `reading_us` is what each token of a prompt adds to an answer's time, an eighth
    of it before the first token. `port` 0 takes a free one.
    """

    name: Name
    dialect: Dialect
    limits: Annotated[tuple[tuple[Limit, ...], ...], Field(min_length=1)]
    keys: Positive = 1
    scopes: Positive = 1
    latency: str = "gpt-4o-mini"
    charge: Charge = "prompt_then_output"
    reading_us: NotNegative = 0
    port: NotNegative = 0

    def limits_of(self, scope: int) -> tuple[Limit, ...]:
        """The limits of scope number `scope` (from 0)."""
        return self.limits[scope % len(self.limits)]

    def key_of(self, number: int) -> str:
        """The secret of key `number` (from 1)."""
        return f"sk-lab-{self.name}-{number}"


class HostPlan(_Table):
    """The limits of one web host, and how it says no."""

    limits: tuple[Limit, ...]
    refusal: Literal["429", "429-date", "429-silent", "403", "503"] = "429"


class StandInPlan(_Table):
    """All that one process serves; web hosts share `web_ports`; `else_free`: a port that is taken may be another."""

    providers: tuple[ProviderPlan, ...] = ()
    hosts: dict[str, HostPlan] = {}
    web_ports: tuple[NotNegative, ...] = (0,)
    admin_port: NotNegative = 0
    else_free: bool = False
    seed: int = 1

    def host(self, name: str) -> HostPlan:
        """What holds for a host: its own entry, else a usual one by its name."""
        return self.hosts.get(name) or DEFAULT_HOSTS[crc32(name.encode()) % len(DEFAULT_HOSTS)]


# Of 4,231 real robots.txt 18 % ask for a pause, most of them for 10 s: what nobody published is not much.
_USUAL = (
    ({"kind": "fixed_window", "limit": 3, "window_ms": 10_000, "phase_ms": 3_700}, "429"),
    ({"kind": "sliding_log", "limit": 3, "window_ms": 10_000}, "429-date"),
    ({"kind": "token_bucket", "limit": 3, "window_ms": 10_000}, "429-silent"),
    ({"kind": "gcra", "limit": 3, "window_ms": 10_000}, "503"),
    ({"kind": "concurrency", "limit": 2}, "403"),
)
DEFAULT_HOSTS = tuple(HostPlan.model_validate({"limits": [limit], "refusal": said}) for limit, said in _USUAL)

DEFAULT_PLAN = StandInPlan.model_validate(
    {
        "providers": [
            {
                "name": "openai-like",
                "dialect": "openai",
                "keys": 4,
                "scopes": 4,
                "port": 9101,
                "limits": [
                    [
                        {"kind": "fixed_window", "limit": 100, "window_ms": 10_000, "phase_ms": 1_300},
                        {"kind": "sliding_log", "limit": 200_000, "window_ms": 10_000, "unit": "tokens"},
                    ]
                ],
            },
            {
                "name": "anthropic-like",
                "dialect": "anthropic",
                "keys": 4,
                "scopes": 2,
                "port": 9102,
                "latency": "claude-sonnet-4-0",
                "limits": [
                    [
                        {"kind": "token_bucket", "limit": 100, "window_ms": 10_000, "burst": 50},
                        {"kind": "gcra", "limit": 200_000, "window_ms": 10_000, "unit": "tokens"},
                    ]
                ],
            },
        ],
        "web_ports": [9103, 9104],
        "admin_port": 9100,
        "else_free": True,
    }
)


def load_plan(path: Path) -> StandInPlan:
    """The plan in a JSON file. Errors: `LabError` names the first key that is wrong, OSError."""
    try:
        return TypeAdapter(StandInPlan).validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        raise LabError(".".join(map(str, first["loc"])) or "file", f"{path}: {first['msg']}") from None
