"""`swarmgate lab`: stand-ins for providers and web hosts, with limits of their own and a witness each; an incident to watch."""

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from swarmgate.cli.exits import Exit
from swarmgate.cli.lab_learn import EXAMPLE as LEARN_EXAMPLE
from swarmgate.cli.lab_learn import learn
from swarmgate.cli.listing import Listing
from swarmgate.engine.loops import new_event_loop
from swarmgate.lab import incident_live, processes
from swarmgate.lab.demo.children import ending_in_order
from swarmgate.lab.errors import LabError
from swarmgate.lab.incident import BATCH, PROVIDER
from swarmgate.lab.standin.gate_file import FILE, gate_file, hosts_of, keys_lines
from swarmgate.lab.standin.plan import DEFAULT_PLAN, LOOPBACK, ProviderPlan, StandInPlan, load_plan
from swarmgate.lab.standin.web import WEB

EXAMPLE = "Example: swarmgate lab serve --witness seen.jsonl"
INCIDENT_EXAMPLE = "Example: swarmgate lab incident --seconds 90"

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


@app.command(epilog=INCIDENT_EXAMPLE)
def incident(
    seconds: Annotated[
        int, typer.Option(min=60, help="Length of each of its two acts, before and after the ceiling.")
    ] = 120,
    folder: Annotated[Path | None, typer.Option(help="For its files; by default a new temporary one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Watch a batch job's contexts blow up behind a mean that hides it, the alert, and the ceiling that ends it."""
    talk = Console(stderr=True)
    place = folder or Path(tempfile.mkdtemp(prefix="swarmgate-incident-"))
    try:
        place.mkdir(parents=True, exist_ok=True)
        with (
            ending_in_order(),
            incident_live.world(place) as places,
            asyncio.Runner(loop_factory=new_event_loop) as runner,
        ):
            told = runner.run(incident_live.play(places, seconds, lambda text: talk.print(text, highlight=False)))
    except (LabError, OSError) as error:
        raise _stop(Exit.FAILED, error) from None
    except KeyboardInterrupt:
        raise _stop(Exit.FAILED, RuntimeError("stopped; nothing is left running")) from None
    if as_json:
        print(json.dumps(_plain(told) | {"state": str(place / "state")}, indent=2))
        return
    table = Listing("act", "answers", "mean, all", "P99, all", f"P99, {BATCH}")
    for name, everybody, batch in told.acts:
        times = (everybody.mean_ms, everybody.p99_ms, batch.p99_ms)
        table.add_row(name, f"{everybody.answers:,}", *(f"{ms / 1_000:.1f} s" for ms in times))
    console = Console()
    console.print(table)
    console.print(
        f"The ledger has it all:\n  swarmgate report --target {PROVIDER} --state {place / 'state'}", soft_wrap=True
    )


app.command(epilog=LEARN_EXAMPLE)(learn)


def _plain(told: incident_live.Told) -> dict[str, Any]:
    acts = {act.name: {"everybody": act.everybody._asdict(), "batch": act.batch._asdict()} for act in told.acts}
    return {**told._asdict(), "acts": acts}


def _stop(code: Exit, error: Exception) -> typer.Exit:
    told = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else error
    print(told, file=sys.stderr)
    return typer.Exit(code)


def _as_json(ports: dict[str, int]) -> None:
    print(json.dumps({"ports": ports}), flush=True)


def _welcome(plan: StandInPlan, ports: dict[str, int]) -> None:
    """What is served where, and what to paste into another terminal."""
    for one in plan.providers:
        print(f"{one.name}: http://{LOOPBACK}:{ports[one.name]}/v1, as {one.dialect} speaks")
        print(f"  {_keys(one)}")
        if one.port and one.port != ports[one.name]:
            print(f"  port {one.port} is taken, so it has another")
    web = ", ".join(str(port) for name, port in ports.items() if name.startswith(WEB))
    print(f"web hosts of any name (the Host field decides): {LOOPBACK}, ports {web}")
    if plan.providers:
        first = plan.providers[0]
        variables = {"openai": "OPENAI", "anthropic": "ANTHROPIC"}[first.dialect]
        print(f"\nA gate before {first.name}, with one key and no limits, in another terminal:\n")
        print(f"{variables}_BASE_URL=http://{LOOPBACK}:{ports[first.name]}/v1 \\")
        print(f"{variables}_API_KEY={first.key_of(1)} swarmgate up")
    print(f"\nOr a gate before all of it, with all keys and limits; it writes {FILE}:\n")
    print("\n".join(("cat > gate.toml <<'END'", gate_file(plan, ports) + "END", *keys_lines(plan))))
    print(f"swarmgate up --config {FILE}")
    host = next(iter(hosts_of(plan)))
    print(f"\nThrough it to a host: curl http://{LOOPBACK}:8787/to/http/{host}/")
    place = plan.providers[0].name if plan.providers else WEB
    said = f'{{"kind":"brownout","place":"{place}","for_ms":5000,"amount":300}}'
    print("Trouble, for instance 30 % of errors for 5 s:")
    print(f"curl http://{LOOPBACK}:{ports['admin']}/lab/trouble \\\n  -d '{said}'", flush=True)


def _keys(one: ProviderPlan) -> str:
    return f"key {one.key_of(1)}" if one.keys == 1 else f"keys {one.key_of(1)} to {one.keys}"
