"""
The lab's own processes: stand-ins that serve until they are told to stop, and one arm of the demo.

The demo starts them with `python -c`, past the command line, whose imports would cost each of them a second.
"""

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from swarmgate.engine.loops import new_event_loop
from swarmgate.lab.demo.arm import ArmTask, run_arm
from swarmgate.lab.standin.plan import StandInPlan, load_plan
from swarmgate.lab.standin.serving import StandIns


def serve(plan: StandInPlan, witness: Path | None, told: Callable[[dict[str, int]], None]) -> None:
    """Serve until SIGTERM or Ctrl-C; `told` gets the ports by place. Errors: `LabError`, OSError."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_serve(plan, witness, told))


def serve_for_demo(plan: str, witness: str) -> None:
    """The same from files; the ports are one line of JSON. Errors: `LabError`, OSError."""
    serve(load_plan(Path(plan)), Path(witness), lambda ports: _say(msgspec.json.encode(ports)))


def play(task: str) -> None:
    """Play the arm in a file, a line of JSON every half second. Errors: `msgspec.DecodeError`, OSError."""
    told = msgspec.json.decode(Path(task).read_bytes(), type=ArmTask)
    with Path(told.rows).open("wb") as rows, asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run_arm(told, rows.write, _say))


async def _serve(plan: StandInPlan, witness: Path | None, told: Callable[[dict[str, int]], None]) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for sign in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sign, stopped.set)
    running = StandIns(loop, plan, witness)
    told(await running.start())
    await stopped.wait()
    await running.stop()


def _say(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()
