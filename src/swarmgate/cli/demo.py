"""`swarmgate demo`: 2,000 agents through the gate, and the same agents without it, measured at the targets."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from swarmgate.cli.exits import Exit
from swarmgate.lab.demo.live import LiveScreen
from swarmgate.lab.demo.plan import Lengths, make_plan
from swarmgate.lab.demo.run import run_demo
from swarmgate.lab.demo.table import as_json, as_table
from swarmgate.lab.errors import LabError

EXAMPLE = "Example: swarmgate demo --seconds 20"


def demo(
    agents: Annotated[int, typer.Option(min=20, help="How many agents.")] = 2_000,
    seconds: Annotated[int, typer.Option(min=3, help="Length of the gate's arm; the others take 25.")] = 60,
    folder: Annotated[
        Path | None, typer.Option(help="Where files are kept; by default a new temporary folder.")
    ] = None,
    as_json_lines: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Show what a gate is worth: arms in turn on the same trace, a witness at every target."""
    try:
        plan = make_plan(agents, Lengths(seconds, min(25, seconds), min(25, seconds), min(20, seconds)))
        place = folder or Path(tempfile.mkdtemp(prefix="swarmgate-demo-"))
        with LiveScreen(Console(stderr=True), plan) as screen:
            found = run_demo(plan, place, screen)
    except LabError as error:
        print(error, file=sys.stderr)
        raise typer.Exit(Exit.FAILED) from None
    except KeyboardInterrupt:
        raise typer.Exit(Exit.FAILED) from None
    if as_json_lines:
        print(json.dumps(as_json(plan, found), indent=2))
    else:
        Console().print(as_table(plan, found))
