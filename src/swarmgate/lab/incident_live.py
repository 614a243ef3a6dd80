"""
The users' incident on a running gate: its processes, its three acts in real time, and what was seen in each.

The operator's part is played, too: wait for the alert, write the ceiling into the gate's file, have it read again.
"""

import asyncio
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.request import Request, urlopen

import msgspec

from swarmgate.lab import incident
from swarmgate.lab.demo.children import COMMAND, STAND_INS, Child, Order, running
from swarmgate.lab.errors import LabError
from swarmgate.lab.incident import BATCH, Agents, Times

CALM_S = 20
LOOK_S = 1.0
ALERT_WITHIN_S = 120
_TOKEN = "operator.token"  # noqa: S105  a file's name


class Places(NamedTuple):
    """Where the parts are."""

    folder: Path
    provider_port: int
    gate: Child
    gate_port: int
    operator_port: int

    @property
    def state(self) -> Path:
        """The gate's folder."""
        return self.folder / "state"


class Act(NamedTuple):
    """One part of the story: everybody's times and the batch's."""

    name: str
    everybody: Times
    batch: Times


class Told(NamedTuple):
    """What was seen: the alert's words and the seconds from the first long prompt to it."""

    acts: tuple[Act, ...]
    alert: str
    alert_after_s: float
    refused: int


@contextmanager
def world(folder: Path) -> Iterator[Places]:
    """A stand-in and a gate without a ceiling; both are gone afterwards. Errors: `LabError`, OSError."""
    plan = folder / "stand-ins.json"
    plan.write_text(incident.STAND_IN.model_dump_json())
    with running("stand-ins", Order(STAND_INS, [str(plan), str(folder / "witness.jsonl")]), folder) as stand_ins:
        port = msgspec.json.decode(stand_ins.first_line(), type=dict[str, int])[incident.PROVIDER]
        _configure(folder, port, ceiling=False)
        options = ["--config", str(folder / "gate.toml"), "--state", str(folder / "state")]
        order = Order(COMMAND, ["up", *options, "--port", "0", "--operator-port", "0"], incident.environment())
        with running("gate", order, folder) as gate:
            gate.first_line()  # it serves
            yield Places(folder, port, gate, *_ports(folder / "gate.log"))


async def play(places: Places, act_s: int, tell: Callable[[str], None]) -> Told:
    """All of it, the last two acts `act_s` long. Errors: `LabError`."""
    loop = asyncio.get_running_loop()
    agents = Agents(loop, places.gate_port)
    agents.start()
    marks = [_now_ms(loop)]
    tell(f"{incident.DENSE_PER_S:g} short calls a second, and one of the batch every {1 / incident.BATCH_PER_S:g} s")
    await asyncio.sleep(CALM_S)
    marks.append(_now_ms(loop))
    agents.batch_tokens = incident.BLOWN_TOKENS
    tell(f"the batch's prompts grow from {incident.USUAL_TOKENS:,} to {incident.BLOWN_TOKENS:,} tokens")
    alert = await _alert(places)
    after_s = (_now_ms(loop) - marks[1]) / 1_000
    tell(f"after {after_s:.0f} s the gate tells of {alert}")
    await asyncio.sleep(max(0.0, act_s - after_s))
    marks.append(_now_ms(loop))
    _configure(places.folder, places.provider_port, ceiling=True)
    os.kill(places.gate.pid, signal.SIGHUP)
    tell(f"{BATCH} gets a ceiling of {incident.CEILING_TOKENS:,} tokens")
    await asyncio.sleep(act_s)
    marks.append(_now_ms(loop))
    tell("what is open may end")
    await agents.stop()
    places.gate.must_run()
    names = ("calm", "blown up", "with the ceiling")
    acts = [
        Act(name, agents.times(start, end), agents.times(start, end, BATCH))
        for name, start, end in zip(names, marks, marks[1:], strict=False)
    ]
    return Told(tuple(acts), alert, after_s, sum(one.why == incident.TOO_LONG for one in agents.seen))


async def _alert(places: Places) -> str:
    """The first alert about latency. Errors: `LabError` if none comes."""
    for _ in range(int(ALERT_WITHIN_S / LOOK_S)):
        said = await asyncio.to_thread(_ask, places, "/alerts")
        found = [one for one in said["notices"] if one["alert"] == "slow_p99" and one["begins"]]
        if found:
            return f"{found[0]['subject']}: {found[0]['text']}"
        await asyncio.sleep(LOOK_S)
    raise LabError("alert", f"none came within {ALERT_WITHIN_S} s")


def _ask(places: Places, path: str) -> dict[str, list[dict[str, str]]]:
    token = (places.state / _TOKEN).read_text().strip()
    url = f"http://127.0.0.1:{places.operator_port}{path}"
    with urlopen(Request(url, headers={"authorization": f"Bearer {token}"}), timeout=10) as answer:
        return msgspec.json.decode(answer.read())  # type: ignore[no-any-return]


def _configure(folder: Path, port: int, *, ceiling: bool) -> None:
    (folder / "gate.toml").write_text(incident.configuration(port, ceiling=ceiling))


def _ports(log: Path) -> tuple[int, int]:
    said = log.read_text()
    found = [re.search(rf"{name} http://127\.0\.0\.1:(\d+)", said) for name in ("listens on", "operators:")]
    if None in found:
        raise LabError("gate", f"did not say where it listens: {said[-500:]}")
    data, operators = (int(one[1]) for one in found if one is not None)
    return data, operators


def _now_ms(loop: asyncio.AbstractEventLoop) -> int:
    return int(loop.time() * 1_000)
