"""
The command line: one file per command, put together here.

A command's file is read when the command is used: `swarmgate up` does not carry the simulator, and nobody waits for what he did not
ask for. `--help` reads all of them.
"""

from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from swarmgate import __version__


class _Place(NamedTuple):
    """Where a command stands: its file here, the function or the `Typer` there, its example."""

    file: str
    function: str
    example: str = "EXAMPLE"


_COMMANDS = {
    "init": _Place("init", "init"),
    "check": _Place("check", "check"),
    "prices": _Place("prices", "prices"),
    "up": _Place("up", "up"),
    "budgets": _Place("budgets", "budgets"),
    "pause": _Place("pause", "pause", "PAUSE_EXAMPLE"),
    "resume": _Place("pause", "resume", "RESUME_EXAMPLE"),
    "limit": _Place("limit", "limit"),
    "why": _Place("why", "why"),
    "costs": _Place("costs", "costs"),
    "report": _Place("report", "report"),
    "explain": _Place("explain", "explain"),
    "sim": _Place("sim", "sim"),
    "presets": _Place("presets", "presets"),
    "verify-egress": _Place("verify_egress", "verify_egress"),
    "demo": _Place("demo", "demo"),
    "load": _Place("load", "load"),
    "plan-capacity": _Place("plan_capacity", "plan_capacity"),
    "lab": _Place("lab", "app"),
    "keys": _Place("keys", "app"),
    "dead": _Place("dead", "app"),
    "audit": _Place("audit", "audit"),
}


class Commands(TyperGroup):
    """Reads a command's file when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  the name is typer's
        """Every name, in the order in which people meet them."""
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002  see above
        """The command of that name, None if there is none."""
        place = _COMMANDS.get(cmd_name)
        if place is None:
            return None
        module = import_module(f"swarmgate.cli.{place.file}")
        found: Any = getattr(module, place.function)
        if isinstance(found, typer.Typer):
            group = typer.main.get_group(found)
            group.name = cmd_name
            return group
        single = typer.Typer(add_completion=False)
        single.command(cmd_name, epilog=getattr(module, place.example))(found)
        return typer.main.get_command(single)


app = typer.Typer(
    cls=Commands,
    help="The one gate through which every outgoing call of a swarm of AI agents leaves.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


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
