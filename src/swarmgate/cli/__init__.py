"""The command line: one file per command, put together here."""

import typer

from swarmgate.cli import sim as simulator
from swarmgate.cli.up import EXAMPLE, up

app = typer.Typer(
    help="The one gate through which every outgoing call of a swarm of AI agents leaves.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command(epilog=EXAMPLE)(up)
app.command(epilog=simulator.EXAMPLE)(simulator.sim)


@app.callback()
def _commands() -> None:
    """The one gate through which every outgoing call of a swarm of AI agents leaves."""


def main() -> None:
    """The entry point of `swarmgate`."""
    app()
