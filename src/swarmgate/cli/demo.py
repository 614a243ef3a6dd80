"""`swarmgate demo`: 2,000 agents through the gate, and the same agents without it, measured at the targets."""

import json
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from swarmgate.cli.exits import Exit
from swarmgate.lab.demo.children import ending_in_order
from swarmgate.lab.demo.figures import ArmFigures
from swarmgate.lab.demo.live import LiveScreen
from swarmgate.lab.demo.page import can_draw, page
from swarmgate.lab.demo.plan import MODEL, DemoPlan, Lengths, make_plan
from swarmgate.lab.demo.run import run_demo, world
from swarmgate.lab.demo.table import as_json, as_promises, as_table, as_words, broken, promises, verdict
from swarmgate.lab.errors import LabError
from swarmgate.lab.traces.mix import MIX

EXAMPLE = "Example: swarmgate demo --seconds 20"
NO_DRAWINGS = "Without drawings: matplotlib is not installed (pip install matplotlib)."
USE_IT = """
[bold]Use it[/] with a key of your own, here:
  OPENAI_API_KEY=sk-... make up      # the same as: swarmgate up
and where your agents run:
  export OPENAI_BASE_URL=http://127.0.0.1:8787/v1 OPENAI_API_KEY=unused
[bold]More to see[/] (swarmgate is in .venv/bin):
  swarmgate lab learn        # how limits are found that nobody told; a minute
  swarmgate lab incident     # what a mean hides, and who sees it; five minutes
  swarmgate plan-capacity    # how many keys a swarm needs"""


def demo(
    agents: Annotated[int, typer.Option(min=20, help="How many agents.")] = 2_000,
    seconds: Annotated[
        int, typer.Option(min=4, help="Length of the gate's arm, a quarter of it calm; the others are shorter.")
    ] = 60,
    trace: Annotated[str, typer.Option(help="The mix, a shipped trace's name, or a file.")] = MIX,
    folder: Annotated[Path | None, typer.Option(help="For its files; by default a new temporary one.")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave a gate and its stand-ins running at the end.")] = False,
    as_json_text: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Show what a gate is worth: arms in turn on the same trace, a witness at every target."""
    talk = Console(stderr=True)
    try:
        plan = make_plan(agents, _lengths(seconds), trace)
    except (LabError, OSError) as error:
        print(error, file=sys.stderr)
        raise typer.Exit(Exit.USAGE) from None
    place = folder or Path(tempfile.mkdtemp(prefix="swarmgate-demo-"))
    with ending_in_order():
        try:
            with LiveScreen(talk, plan) as screen:
                found = run_demo(plan, place, screen)
            _show(plan, found, place, as_json_text=as_json_text)
            if folder is None:
                talk.print(f"Nothing needs its folder afterwards: rm -r {place}", soft_wrap=True)
            if keep:
                _stay(plan, place, talk)
        except (LabError, OSError) as error:
            print(error, file=sys.stderr)
            raise typer.Exit(Exit.FAILED) from None
        except KeyboardInterrupt:
            talk.print("stopped; nothing is left running")
            raise typer.Exit(Exit.FAILED) from None
    if broken(plan, found):
        raise typer.Exit(Exit.FAILED)


def _lengths(seconds: int) -> Lengths:
    calm = seconds // 4
    rush = seconds - calm
    return Lengths(calm, rush, min(25, rush), min(25, rush), min(15, rush))


def _show(plan: DemoPlan, found: Sequence[ArmFigures], folder: Path, *, as_json_text: bool) -> None:
    drawn = folder / "demo.html"
    drawn.write_text(page(plan, found, plan.workload(1).sources), encoding="utf-8")
    if as_json_text:
        print(json.dumps(as_json(plan, found) | {"page": str(drawn)}, indent=2))
        return
    console = Console()
    console.print(as_table(plan, found))
    console.print(as_words(found), highlight=False)
    console.print(as_promises(promises(plan, found)))
    why = verdict(plan, found)
    if why:
        console.print(f"[yellow]{why}[/]", highlight=False)
    warning = plan.workload(1).warning
    if warning:
        console.print(f"[yellow]{plan.profile}: {warning}[/]")
    tell_page(console, drawn)
    console.print(USE_IT, soft_wrap=True)


def tell_page(console: Console, drawn: Path) -> None:
    """Where the page stands; what is in brackets is no markup."""
    if can_draw():
        console.print("Drawings:", drawn, soft_wrap=True, markup=False)
        return
    console.print("The same as a page:", drawn, soft_wrap=True, markup=False)
    console.print(NO_DRAWINGS, soft_wrap=True, markup=False)


def _stay(plan: DemoPlan, folder: Path, talk: Console) -> None:
    with world(plan, folder / "kept", keys=plan.keys, options=("--port", "0", "--operator-port", "0")) as places:
        gate = f"http://127.0.0.1:{places.gate_port}"
        told = f"The gate stays at {gate}/v1 before its stand-ins; ask it for model {MODEL}."
        talk.print(f"\n{told}\nWhat is left: swarmgate budgets --gate {gate}", soft_wrap=True)
        talk.print(f"What else it says stands in {folder / 'kept' / 'gate.log'}. Ctrl-C ends it.", soft_wrap=True)
        signal.pause()
