"""
Minutes of the main job on real sockets: a swarm of mixed long and short calls, `swarmgate up` with twenty keys, one refused.

Stand-ins, gate with its control process, and agents are processes of their own. What is asked of the gate is asked of others:
the agents' rows, the witness at the provider, the system (memory), and a timer inside the gate's loop. Every stream is a chain
of tokens, of which none may be lost, doubled or moved (SE-07).
"""

import os
import statistics
import time
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import loop_lag
import msgspec
import pytest

from swarmgate.lab.agents.records import Fate, read_calls
from swarmgate.lab.demo.arm import ArmTask, Progress
from swarmgate.lab.demo.children import AGENTS, COMMAND, STAND_INS, Order, running
from swarmgate.lab.demo.plan import PROVIDER, WINDOW_MS, DemoPlan, key_variable, make_plan
from swarmgate.lab.scenario import SlidingLogLimit
from swarmgate.lab.standin.plan import StandInPlan
from swarmgate.lab.standin.witness_log import read_rows, witnesses

pytestmark = pytest.mark.soak

AGENTS_COUNT = int(os.environ.get("SOAK_AGENTS", "2000"))
SECONDS = int(os.environ.get("SOAK_SECONDS", "600"))
KEYS = 20
CALLS_PER_AGENT_MINUTE = 3.0  # 2,000 agents: 100 a second (design 1)
ROOM_PERCENT = 150  # over the demo's limits, which this load would fill to nine tenths
REFUSED_KEY = 20
MOST_LAG_MS = 20
MOST_GROWTH, MOST_GROWTH_MIB = 1.1, 8.0


class SoakPlan(DemoPlan):
    """The demo's stand-ins, but one key has next to no quota, which the gate is not told."""

    def stand_ins(self) -> StandInPlan:
        told = super().stand_ins()
        (provider,) = told.providers
        limits = [provider.limits_of(scope) for scope in range(self.keys)]
        limits[REFUSED_KEY - 1] = (SlidingLogLimit(kind="sliding_log", limit=1, window_ms=WINDOW_MS),)
        return told.model_copy(update={"providers": (provider.model_copy(update={"limits": tuple(limits)}),)})


class Moment(NamedTuple):
    """Memory that is the gate's and its control process's own, in MiB, at an instant of the run."""

    seconds: float
    gate: float
    control: float


def soak_plan() -> SoakPlan:
    plan = make_plan(AGENTS_COUNT)
    return SoakPlan(
        *plan._replace(
            keys=KEYS,
            calls_per_s=AGENTS_COUNT * CALLS_PER_AGENT_MINUTE / 60,
            tokens_limit=plan.tokens_limit * plan.keys // KEYS * ROOM_PERCENT // 100,
            requests_limit=plan.requests_limit * plan.keys // KEYS * ROOM_PERCENT // 100,
            egress=False,
        )
    )


def gate_order(plan: SoakPlan, folder: Path, model_port: int) -> Order:
    config = folder / "gate.toml"
    config.write_text(plan.gate_config(model_port, KEYS, [1]))
    (provider,) = plan.stand_ins().providers
    keys = {key_variable(number): provider.key_of(number) for number in range(1, KEYS + 1)}
    here, seen = str(Path(__file__).parent), str(folder / "lag")
    lag = f"import sys; sys.path.insert(0, {here!r}); import loop_lag; loop_lag.install({seen!r})"
    options = ["up", "--config", str(config), "--state", str(folder / "state"), "--port", "0"]
    return Order(f"{lag}; {COMMAND}", options, keys)


def own_mib(pid: int) -> float:
    """Memory of a process that no file backs; 0 where that is not told."""
    status = Path(f"/proc/{pid}/status")
    told = [line for line in status.read_text().splitlines() if line.startswith("RssAnon")] if status.exists() else []
    return int(told[0].split()[1]) / 1_024 if told else 0.0


def child_of(pid: int) -> int:
    """Its only child: the control process."""
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    children = listed.read_text().split() if listed.exists() else []
    return int(children[0]) if children else 0


def play(folder: Path):
    """The whole run: its plan, the agents' rows, the witness's, memory."""
    plan = soak_plan()
    told, witness, rows = folder / "stand-ins.json", folder / "witness.jsonl", folder / "calls.jsonl"
    told.write_text(plan.stand_ins().model_dump_json())
    moments: list[Moment] = []
    with running("stand-ins", Order(STAND_INS, [str(told), str(witness)]), folder) as stand_ins:
        model_port = msgspec.json.decode(stand_ins.first_line(), type=dict[str, int])[PROVIDER]
        with running("gate", gate_order(plan, folder, model_port), folder) as gate:
            port = int(gate.first_line().rpartition(b":")[2].partition(b"/")[0])
            task = ArmTask(DemoPlan(*plan), "gate", SECONDS, port, model_port, [], str(rows), chained=True)
            (folder / "task.json").write_bytes(msgspec.json.encode(task))
            control, began_s = child_of(gate.pid), time.monotonic()
            with running("agents", Order(AGENTS, [str(folder / "task.json")]), folder) as agents:
                for line in agents.lines():
                    if msgspec.json.decode(line, type=Progress).zero_ms:
                        moments.append(Moment(time.monotonic() - began_s, own_mib(gate.pid), own_mib(control)))
                    gate.must_run()
                assert agents.wait() == 0, agents.last_words()
            assert gate.stop() == 0, gate.last_words()
    return plan, read_calls(rows), list(read_rows(witness)), moments


def parts(moments: list[Moment], process: str) -> tuple[float, float]:
    """Its memory in the middle of the run, and at its end: medians of a fifth each."""
    used = [getattr(moment, process) for moment in moments]
    fifth = max(1, len(used) // 5)
    middle, end = used[2 * fifth : 3 * fifth] or used, used[-fifth:]
    return round(statistics.median(middle), 1), round(statistics.median(end), 1)


def most_at_once(rows) -> int:
    """How many streams were open at the same instant, at most."""
    steps = sorted([(row.first_ms, 1) for row in rows if row.heard] + [(row.end_ms, -1) for row in rows if row.heard])
    return max(accumulate(step for _, step in steps), default=0)


@pytest.mark.timeout(SECONDS + 180)
def test_llm_gateways_54_se_07_a_swarm_works_for_minutes_within_its_budgets(tmp_path, capsys):
    plan, rows, seen, moments = play(tmp_path)
    began_s = rows[0].wanted_ms / 1_000
    lag, own = loop_lag.read(tmp_path / "lag", began_s, began_s + SECONDS)
    memory = {process: parts(moments, process) for process in ("gate", "control")}
    fates = {fate.value: sum(row.fate == fate for row in rows) for fate in Fate}
    at_keys = witnesses(iter(seen))
    limits = ((plan.requests_limit, "requests"), (plan.tokens_limit, "tokens"))
    over = {
        scope: sum(witness.over_limit(limit, WINDOW_MS, unit) for limit, unit in limits)
        for (_, scope), witness in at_keys.items()
    }
    streams = [row for row in rows if row.heard]
    broken = {name: sum(getattr(row, name) for row in streams) for name in ("lost", "doubled", "moved")}
    refusing = at_keys[PROVIDER, f"scope-{REFUSED_KEY}"]
    with capsys.disabled():
        print(
            f"\n{AGENTS_COUNT} agents for {SECONDS} s: {len(rows) / SECONDS:.0f} calls/s, {fates}",
            f"deferrals {sum(row.deferrals for row in rows)}, refusals at the provider {refusing.refused} of "
            f"{len(seen)} rows, seen by agents {sum(row.refused for row in rows)}, over a limit {sum(over.values())}",
            f"{len(streams)} streams, {most_at_once(rows)} at once at most, of {sum(row.heard for row in streams)} tokens {broken}",
            f"loop lag in ms by share of ticks {lag}; without waiting for a core {own}; load {os.getloadavg()}",
            f"memory in MiB, middle and end: {memory}",
            sep="\n",
        )
    assert len(rows) >= 0.9 * plan.calls_per_s * SECONDS  # that is the load which was meant
    assert refusing.refused
    assert not sum(row.refused for row in rows)
    assert not any(over.values()), over
    assert streams
    assert not any(broken.values()), broken
    assert not fates["failed"], {row.why for row in rows if row.fate == Fate.FAILED}
    settled = [row for row in rows if row.wanted_ms >= rows[0].wanted_ms + 2 * WINDOW_MS and row.fate != Fate.OPEN]
    assert sum(row.fate == Fate.ANSWERED for row in settled) >= 0.99 * len(settled)
    assert all(end <= middle * MOST_GROWTH + MOST_GROWTH_MIB for middle, end in memory.values()), memory
    assert lag[0.99] <= MOST_LAG_MS, f"a busy machine? {own[0.99]} ms without waiting for a core"
