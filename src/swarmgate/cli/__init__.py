"""The command line: one file per command, put together here."""

from typing import Annotated

import typer

from swarmgate import __version__
from swarmgate.cli import budgets as budget_list
from swarmgate.cli import check as checker
from swarmgate.cli import costs as cost_table
from swarmgate.cli import dead, keys, lab, pause
from swarmgate.cli import demo as demonstration
from swarmgate.cli import explain as explainer
from swarmgate.cli import init as starter
from swarmgate.cli import limit as limiter
from swarmgate.cli import load as loader
from swarmgate.cli import plan_capacity as planner
from swarmgate.cli import presets as preset_list
from swarmgate.cli import prices as price_table
from swarmgate.cli import report as post_mortem
from swarmgate.cli import sim as simulator
from swarmgate.cli import verify_egress as verifier
from swarmgate.cli import why as life
from swarmgate.cli.up import EXAMPLE, up

app = typer.Typer(
    help="The one gate through which every outgoing call of a swarm of AI agents leaves.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command(epilog=starter.EXAMPLE)(starter.init)
app.command(epilog=checker.EXAMPLE)(checker.check)
app.command(epilog=price_table.EXAMPLE)(price_table.prices)
app.command(epilog=EXAMPLE)(up)
app.command(epilog=budget_list.EXAMPLE)(budget_list.budgets)
app.command(epilog=pause.PAUSE_EXAMPLE)(pause.pause)
app.command(epilog=pause.RESUME_EXAMPLE)(pause.resume)
app.command(epilog=limiter.EXAMPLE)(limiter.limit)
app.command(epilog=life.EXAMPLE)(life.why)
app.command(epilog=cost_table.EXAMPLE)(cost_table.costs)
app.command(epilog=post_mortem.EXAMPLE)(post_mortem.report)
app.command(epilog=explainer.EXAMPLE)(explainer.explain)
app.command(epilog=simulator.EXAMPLE)(simulator.sim)
app.command(epilog=preset_list.EXAMPLE)(preset_list.presets)
app.command(epilog=verifier.EXAMPLE)(verifier.verify_egress)
app.command(epilog=demonstration.EXAMPLE)(demonstration.demo)
app.command(epilog=loader.EXAMPLE)(loader.load)
app.command("plan-capacity", epilog=planner.EXAMPLE)(planner.plan_capacity)
app.add_typer(lab.app, name="lab")
app.add_typer(keys.app, name="keys")
app.add_typer(dead.app, name="dead")


def _show_version(asked: bool) -> None:
    if asked:
        print(f"swarmgate {__version__}")
        raise typer.Exit


@app.callback()
def _commands(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    """The one gate through which every outgoing call of a swarm of AI agents leaves."""


def main() -> None:
    """The entry point of `swarmgate`."""
    app()
