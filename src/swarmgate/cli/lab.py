"""`swarmgate lab serve`: stand-ins for providers and web hosts, with limits of their own and a witness each."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from swarmgate.cli.exits import Exit
from swarmgate.cli.loops import new_event_loop
from swarmgate.lab.demo.arm import ArmTask, run_arm
from swarmgate.lab.errors import LabError
from swarmgate.lab.standin.plan import DEFAULT_PLAN, StandInPlan, load_plan
from swarmgate.lab.standin.serving import StandIns

EXAMPLE = "Example: swarmgate lab serve --witness seen.jsonl"

app = typer.Typer(help="Stand-ins for what a swarm calls, on loopback.", no_args_is_help=True)


@app.command(epilog=EXAMPLE)
def serve(
    plan: Annotated[Path | None, typer.Option(help="JSON file: providers, hosts, limits, ports.")] = None,
    witness: Annotated[Path | None, typer.Option(help="File to which every arrival is appended.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the ports as one line of JSON.")] = False,
) -> None:
    """Serve stand-ins for providers and web hosts until stopped."""
    try:
        told = DEFAULT_PLAN if plan is None else load_plan(plan)
    except (LabError, OSError) as error:
        print(error, file=sys.stderr)
        raise typer.Exit(Exit.USAGE) from None
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        raise typer.Exit(runner.run(_serve(told, witness, as_json=as_json)))


async def _serve(plan: StandInPlan, witness: Path | None, *, as_json: bool) -> Exit:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for sign in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sign, stopped.set)
    try:
        running = StandIns(loop, plan, witness)
    except (LabError, OSError) as error:
        print(error, file=sys.stderr)
        return Exit.USAGE
    try:
        ports = await running.start()
    except LabError as error:
        print(error, file=sys.stderr)
        return Exit.UNREACHABLE
    _welcome(plan, ports, as_json=as_json)
    await stopped.wait()
    await running.stop()
    return Exit.OK


def _welcome(plan: StandInPlan, ports: dict[str, int], *, as_json: bool) -> None:
    if as_json:
        print(msgspec.json.encode({"ports": ports}).decode(), flush=True)
        return
    for one in plan.providers:
        print(f"{one.name}: http://127.0.0.1:{ports[one.name]}/v1 ({one.dialect}), keys {one.key_of(1)} ... {one.keys}")
    web = ", ".join(str(port) for name, port in ports.items() if name.startswith("web"))
    print(f"web hosts of any name (Host decides): 127.0.0.1, ports {web}")
    print(f'trouble: curl -d \'{{"kind": "brownout", ...}}\' http://127.0.0.1:{ports["admin"]}/lab/trouble', flush=True)


@app.command(hidden=True)
def agents(task: Annotated[Path, typer.Argument(help="JSON file.")]) -> None:
    """Play one arm of the demo."""
    try:
        told = msgspec.json.decode(task.read_bytes(), type=ArmTask)
    except (msgspec.DecodeError, OSError) as error:
        print(f"{task}: {error}", file=sys.stderr)
        raise typer.Exit(Exit.USAGE) from None
    with Path(told.rows).open("wb") as rows, asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run_arm(told, rows.write, _tell))


def _tell(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()
