"""
The demo from beginning to end: fresh stand-ins for each arm, a gate before them where the arm has one, the agents, figures.

Arms run in turn on the same trace; nothing of one is left in the next. What is shown while it runs is the caller's business.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from swarmgate.lab.agents.records import read_calls
from swarmgate.lab.demo.arm import ArmTask, Progress, Road
from swarmgate.lab.demo.children import AGENTS, COMMAND, STAND_INS, Child, Order, running
from swarmgate.lab.demo.figures import ArmFigures, Evidence, Times, figures, lines_of
from swarmgate.lab.demo.machine import machine, used_now
from swarmgate.lab.demo.plan import PROVIDER, DemoPlan, key_variable
from swarmgate.lab.errors import LabError
from swarmgate.lab.standin.web import WEB
from swarmgate.lab.standin.witness_log import read_rows

CALLS = "calls.jsonl"  # in an arm's folder: the agents' rows
LEAN = ("--port", "0", "--no-control")  # two cores carry the stand-ins, the agents and this


class ArmSetup(NamedTuple):
    """One arm: its name, its way, its length, and how many keys its gate knows."""

    name: str
    road: Road
    seconds: int
    keys: int
    calm_s: int = 0


class Places(NamedTuple):
    """Where an arm's parts are; `gate_port` 0 = there is no gate."""

    folder: Path
    witness: Path
    ports: dict[str, int]
    gate_port: int
    servers: tuple[Child, ...]


class Screen(Protocol):
    """Who is told how it goes."""

    def arm(self, setup: ArmSetup, places: Places) -> None:
        """An arm begins."""

    def progress(self, progress: Progress) -> None:
        """Half a second has passed."""


def arms_of(plan: DemoPlan) -> list[ArmSetup]:
    """The arms in their order; those of length 0 are left out, and one key where there is only one."""
    lengths = plan.lengths
    every = [
        ArmSetup("gate", "gate", lengths.gate, plan.keys, lengths.calm),
        ArmSetup("direct", "direct", lengths.direct, plan.keys),
        ArmSetup("one budget", "one_budget", lengths.one_budget, plan.keys),
        ArmSetup("one key", "gate", lengths.one_key if plan.keys > 1 else 0, 1),
    ]
    return [one for one in every if one.seconds]


def run_demo(plan: DemoPlan, folder: Path, screen: Screen) -> list[ArmFigures]:
    """All arms. Errors: `LabError` with the last words of a process that failed."""
    return [
        _run_arm(plan, setup, folder / f"{number}-{setup.road}", screen) for number, setup in enumerate(arms_of(plan))
    ]


@contextmanager
def world(plan: DemoPlan, folder: Path, *, keys: int, options: Sequence[str] = LEAN) -> Iterator[Places]:
    """Stand-ins, and a gate before them if `keys`; all of it is gone afterwards. `options` are those of `up`."""
    folder.mkdir(parents=True, exist_ok=True)
    told, witness = folder / "stand-ins.json", folder / "witness.jsonl"
    told.write_text(plan.stand_ins().model_dump_json())
    with running("stand-ins", Order(STAND_INS, [str(told), str(witness)]), folder) as stand_ins:
        ports = msgspec.json.decode(stand_ins.first_line(), type=dict[str, int])
        if not keys:
            yield Places(folder, witness, ports, 0, (stand_ins,))
            return
        with running("gate", _gate(plan, folder, ports, keys, options), folder) as gate:
            yield Places(folder, witness, ports, port_of(gate), (stand_ins, gate))


def _gate(plan: DemoPlan, folder: Path, ports: dict[str, int], keys: int, options: Sequence[str]) -> Order:
    config = folder / "gate.toml"
    config.write_text(plan.gate_config(ports[PROVIDER], keys, _web(ports)))
    provider = plan.stand_ins().providers[0]
    environment = {key_variable(number): provider.key_of(number) for number in range(1, keys + 1)}
    arguments = ["up", "--config", str(config), "--state", str(folder / "state"), *options]
    return Order(COMMAND, arguments, environment)


def _web(ports: dict[str, int]) -> list[int]:
    return [port for name, port in ports.items() if name.startswith(WEB)]


def port_of(gate: Child) -> int:
    """`up` prints `export OPENAI_BASE_URL=http://127.0.0.1:PORT/v1` once it listens."""
    line = gate.first_line()
    digits = line.rpartition(b":")[2].partition(b"/")[0]
    if not digits.isdigit():
        raise LabError("gate", f"said {line!r} where its address was expected")
    return int(digits)


def _run_arm(plan: DemoPlan, setup: ArmSetup, folder: Path, screen: Screen) -> ArmFigures:
    before = used_now()
    with world(plan, folder, keys=setup.keys if setup.road == "gate" else 0) as places:
        screen.arm(setup, places)
        told = _play(plan, setup, places, screen.progress)
    running = machine(before, used_now(), [one.late_ms for one in told])
    rows, seen = read_calls(folder / CALLS), list(read_rows(places.witness))
    times = Times.of(told[-1].zero_ms, setup.calm_s, setup.seconds)
    found = figures(setup.name, plan, Evidence(rows, seen), times, keys=setup.keys)
    return found._replace(machine=running, lines=lines_of(told))


def _play(plan: DemoPlan, setup: ArmSetup, places: Places, tell: Callable[[Progress], None]) -> list[Progress]:
    """Run the agents; what they told from their first wish on."""
    web = _web(places.ports)
    rows = places.folder / CALLS
    task = ArmTask(
        plan,
        setup.road,
        setup.seconds,
        places.gate_port,
        places.ports[PROVIDER],
        web,
        str(rows),
        egress=plan.egress,
        calm_s=setup.calm_s,
    )
    told = places.folder / "task.json"
    told.write_bytes(msgspec.json.encode(task))
    with running("agents", Order(AGENTS, [str(told)]), places.folder) as agents:
        wishing = []
        for line in agents.lines():
            progress = msgspec.json.decode(line, type=Progress)
            if progress.zero_ms:
                wishing.append(progress)
            tell(progress)
            for server in places.servers:
                server.must_run()
        if agents.wait():
            raise LabError("agents", agents.last_words())
        if not wishing:
            raise LabError("agents", "ended before their first wish; give them more seconds")
    return wishing
