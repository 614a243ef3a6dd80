"""
Limits that the gate was told wrongly, and how it finds the true ones: real hosts, a real gate, a witness at each host.

Every host takes a third of what its policy says, each counts in its own way, and says no more than that it refuses. The gate
begins at what it was told; what it learns is seen in what arrives (core/learning.py; design 4: Learning).
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from swarmgate.engine.loops import new_event_loop
from swarmgate.http1.upstreams import Origin
from swarmgate.lab.agents.records import CallRow
from swarmgate.lab.agents.swarm import Swarm
from swarmgate.lab.agents.ways import ThroughGate
from swarmgate.lab.demo.children import COMMAND, STAND_INS, Order, running
from swarmgate.lab.demo.run import LEAN, port_of
from swarmgate.lab.standin.plan import LOOPBACK, StandInPlan
from swarmgate.lab.standin.web import WEB
from swarmgate.lab.standin.witness_log import read_rows, witnesses
from swarmgate.lab.traces.players import FETCH, Character, OpenPlayer
from swarmgate.lab.traces.rows import TraceCall
from swarmgate.lab.witness import Witness

WINDOW_MS, TOLD, TRUE = 2_000, 60, 20
AT_ONCE = 4
WANTED_PER_S = 16  # of each host, where 10 pass: whoever never asks for more learns nothing
AGENTS = 100  # of each host: one agent has few places in a line
PART_MS = 10_000
FOUND_USE, FOUND_REFUSED = 0.7, 0.05
_RATE: dict[str, Any] = {"limit": TRUE, "window_ms": WINDOW_MS}
HOSTS: dict[str, tuple[str, dict[str, Any]]] = {
    "fixed.example.org": ("fixed window", {"kind": "fixed_window", "phase_ms": 700} | _RATE),
    "sliding.example.org": ("sliding log", {"kind": "sliding_log"} | _RATE),
    "bucket.example.org": ("token bucket", {"kind": "token_bucket"} | _RATE),
    "gcra.example.org": ("GCRA", {"kind": "gcra"} | _RATE),
    "at-once.example.org": (f"{AT_ONCE} at once", {"kind": "concurrency", "limit": AT_ONCE}),
}


class Part(NamedTuple):
    """Ten seconds at a host: what arrived, what it refused, and which share of its true limit passed."""

    sent: int
    refused: int
    use: float


class HostFigures(NamedTuple):
    """One host, part by part; `counts_by` says in which way it counts."""

    host: str
    counts_by: str
    parts: list[Part]

    @property
    def found(self) -> bool:
        """Whether the gate lives just below the limit in the last third."""
        last = self.parts[-max(1, len(self.parts) // 3) :]
        sent, refused = sum(part.sent for part in last), sum(part.refused for part in last)
        return refused <= FOUND_REFUSED * sent and sum(part.use for part in last) >= FOUND_USE * len(last)


def stand_ins() -> StandInPlan:
    """The hosts as they are."""
    hosts = {name: {"limits": [limit], "refusal": "429-silent"} for name, (_, limit) in HOSTS.items()}
    return StandInPlan.model_validate({"hosts": hosts})


def gate_config(port: int) -> str:
    """The hosts as the gate is told."""
    policies = "".join(
        f'[policies.{host.partition(".")[0]}]\nhosts = ["{host}"]\nlimits = ["{TOLD} per {WINDOW_MS}ms"]\nwait = "20s"\n\n'
        for host in HOSTS
    )
    pins = "\n".join(f'"{host}" = "{LOOPBACK}:{port}"' for host in HOSTS)
    return f'{policies}[egress]\npresets = "off"\n\n[resolve]\n{pins}\n'


def players(seconds: int) -> list[OpenPlayer]:
    """Agents that fetch at an even pace, whatever becomes of it."""
    nothing, out = TraceCall(0, 0, 0), list[OpenPlayer]()
    for host in HOSTS:
        character = Character(host.partition(".")[0], FETCH, "P1", host, 0)
        for number in range(AGENTS):
            times = range(number * 1_000 // WANTED_PER_S, seconds * 1_000, AGENTS * 1_000 // WANTED_PER_S)
            out.append(OpenPlayer(f"{character.load}-{number + 1}", character, [(t_ms, nothing) for t_ms in times]))
    return out


def run_hidden(seconds: int, folder: Path, see: Callable[[float], None]) -> list[HostFigures]:
    """Let the gate learn; `see` hears how many seconds have passed. Errors: `LabError`, OSError."""
    told, witness, config = folder / "stand-ins.json", folder / "witness.jsonl", folder / "gate.toml"
    told.write_text(stand_ins().model_dump_json())
    with running("stand-ins", Order(STAND_INS, [str(told), str(witness)]), folder) as hosts:
        ports = msgspec.json.decode(hosts.first_line(), type=dict[str, int])
        config.write_text(gate_config(ports[f"{WEB}-1"]))
        arguments = ["up", "--config", str(config), "--state", str(folder / "state"), *LEAN]
        with (
            running("gate", Order(COMMAND, arguments), folder) as gate,
            asyncio.Runner(loop_factory=new_event_loop) as runner,
        ):
            zero_ms = runner.run(_play(port_of(gate), seconds, see))
            gate.must_run()
    found = witnesses(read_rows(witness))
    return [figures(host, found.get((WEB, host), Witness()), zero_ms, seconds) for host in HOSTS]


async def _play(port: int, seconds: int, see: Callable[[float], None]) -> int:
    """The agents' calls; the machine's clock at the first."""
    loop, rows = asyncio.get_running_loop(), list[CallRow]()
    swarm = Swarm(loop, ThroughGate(Origin("http", LOOPBACK, port), "", egress=True), players(seconds), rows.append)

    def look() -> None:
        see((swarm.now_ms - swarm.zero_ms) / 1_000 if swarm.zero_ms else 0.0)

    await swarm.run_seen(seconds, look)
    return swarm.zero_ms


def figures(host: str, witness: Witness, zero_ms: int, seconds: int) -> HostFigures:
    """What a host's witness saw, in parts of ten seconds; what is shorter at the end is left out."""
    counts_by, limit = HOSTS[host]
    parts = []
    for from_ms in range(zero_ms, zero_ms + max(PART_MS, seconds * 1_000 - PART_MS + 1), PART_MS):
        until_ms = from_ms + PART_MS
        if limit["kind"] == "concurrency":
            use = witness.in_progress_ms(from_ms, until_ms) / (AT_ONCE * PART_MS)
        else:
            use = witness.utilisation(from_ms, until_ms, TRUE, WINDOW_MS)
        came = [row for row in witness.arrivals if from_ms <= row.t_ms < until_ms]
        parts.append(Part(len(came), sum(not row.ok for row in came), use))
    return HostFigures(host, counts_by, parts)
