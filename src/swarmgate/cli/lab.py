"""`swarmgate lab serve`: stand-ins for providers and web hosts, with limits of their own and a witness each."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from swarmgate.cli.exits import Exit
from swarmgate.lab import processes
from swarmgate.lab.errors import LabError
from swarmgate.lab.standin.plan import DEFAULT_PLAN, LOOPBACK, StandInPlan, load_plan

EXAMPLE = "Example: swarmgate lab serve --witness seen.jsonl"

app = typer.Typer(help="Stand-ins for what a swarm calls, on loopback.", epilog=EXAMPLE, no_args_is_help=True)


@app.callback()
def _commands() -> None:
    """Stand-ins for what a swarm calls, on loopback."""


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
        raise _stop(Exit.USAGE, error) from None
    try:
        processes.serve(told, witness, _as_json if as_json else lambda ports: _welcome(told, ports))
    except LabError as error:
        raise _stop(Exit.UNREACHABLE, error) from None
    except OSError as error:
        raise _stop(Exit.USAGE, error) from None


def _stop(code: Exit, error: Exception) -> typer.Exit:
    print(error, file=sys.stderr)
    return typer.Exit(code)


def _as_json(ports: dict[str, int]) -> None:
    print(json.dumps({"ports": ports}), flush=True)


def _welcome(plan: StandInPlan, ports: dict[str, int]) -> None:
    for one in plan.providers:
        keys = f"keys {one.key_of(1)} to {one.keys}"
        print(f"{one.name}: http://{LOOPBACK}:{ports[one.name]}/v1 in {one.dialect}'s dialect, {keys}")
    web = ", ".join(str(port) for name, port in ports.items() if name.startswith("web"))
    print(f"web hosts of any name (the Host field decides): {LOOPBACK}, ports {web}")
    said = '{"kind": "brownout", "place": "web", "for_ms": 5000, "amount": 300}'
    print(f"trouble: curl -d '{said}' http://{LOOPBACK}:{ports['admin']}/lab/trouble", flush=True)
