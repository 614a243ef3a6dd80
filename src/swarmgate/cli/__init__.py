"""
The command line: one file per command, put together here.

A command's file is read when the command is used: `swarmgate up` does not carry the simulator, and nobody waits for what he did not
ask for. `--help` reads all of them.
"""

import os
import sys
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


EXAMPLE = "Example: OPENAI_API_KEY=sk-... swarmgate up"
_GROUPS = {
    "To begin with": {
        "demo": _Place("demo", "demo"),
        "init": _Place("init", "init"),
        "check": _Place("check", "check"),
        "up": _Place("up", "up"),
    },
    "While a gate runs": {
        "budgets": _Place("budgets", "budgets"),
        "pause": _Place("pause", "pause", "PAUSE_EXAMPLE"),
        "resume": _Place("pause", "resume", "RESUME_EXAMPLE"),
        "limit": _Place("limit", "limit"),
        "keys": _Place("keys", "app"),
        "dead": _Place("dead", "app"),
        "verify-egress": _Place("verify_egress", "verify_egress"),
    },
    "What happened": {
        "why": _Place("why", "why"),
        "report": _Place("report", "report"),
        "costs": _Place("costs", "costs"),
        "audit": _Place("audit", "audit"),
    },
    "What is known of others": {
        "explain": _Place("explain", "explain"),
        "presets": _Place("presets", "presets"),
        "prices": _Place("prices", "prices"),
    },
    "To size and to try": {
        "plan-capacity": _Place("plan_capacity", "plan_capacity"),
        "load": _Place("load", "load"),
        "sim": _Place("sim", "sim"),
        "lab": _Place("lab", "app"),
    },
}
_COMMANDS = {name: (title, place) for title, places in _GROUPS.items() for name, place in places.items()}


class Commands(TyperGroup):
    """Reads a command's file when it is asked for."""

    def get_params(self, ctx: Any) -> list[Any]:
        """What stands before a command."""
        return _plainly(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  the name is typer's
        """Every name, in the order in which people meet them."""
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002  see above
        """The command of that name, None if there is none."""
        if cmd_name not in _COMMANDS:
            return None
        title, place = _COMMANDS[cmd_name]
        module = import_module(f"swarmgate.cli.{place.file}")
        found: Any = getattr(module, place.function)
        if isinstance(found, typer.Typer):
            made: Any = typer.main.get_group(found)
            made.name = cmd_name
        else:
            single = typer.Typer(add_completion=False)
            single.command(cmd_name, epilog=getattr(module, place.example))(found)
            made = typer.main.get_command(single)
        made.rich_help_panel = title
        for one in (made, *getattr(made, "commands", {}).values()):
            _plainly(one.get_params(typer.Context(one)))
        return made


def _plainly(params: list[Any]) -> list[Any]:
    """A switch takes no value, so its help shows none; arguments are named as in other programs."""
    for one in params:
        if getattr(one, "is_bool_flag", False):
            one.metavar = ""
        elif one.param_type_name == "argument" and one.metavar is None:
            one.metavar = one.name.upper()
        elif getattr(one, "min", None) is not None and one.metavar is None:
            one.metavar = "N"
    return params


app = typer.Typer(
    cls=Commands,
    help="The one gate through which every outgoing call of a swarm of AI agents leaves.",
    epilog=EXAMPLE,
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
    """The entry point of `swarmgate`; whoever reads its output may stop reading."""
    try:
        app()
    finally:
        try:
            sys.stdout.flush()
        except BrokenPipeError:  # what is left has no reader, and Python would say so at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
