"""`swarmgate limit`: another limit for a running gate, in force at the next admission."""

import sys
from typing import Annotated

import typer

from swarmgate.cli.exits import Exit
from swarmgate.cli.order import USUAL_PORT, AsJson, Name, Port, Reason, State, give
from swarmgate.config.quota import read_amount
from swarmgate.core.compiler import Unit
from swarmgate.core.duration import parse_duration_ms
from swarmgate.core.errors import BadInput

EXAMPLE = "Example: swarmgate limit small 20 --per 1s --reason 'they raised it'"


def limit(  # noqa: PLR0913, PLR0917  each is an option of the command
    name: Name,
    amount: Annotated[str, typer.Argument(help="The limit as its owner publishes it; of money in dollars, as 2.50.")],
    reason: Reason,
    per: Annotated[str, typer.Option(help="Another window, such as 60s; else it stays.")] = "",
    state: State = None,
    port: Port = USUAL_PORT,
    as_json: AsJson = False,
) -> None:
    """Change a limit until the gate restarts, over its file; what was used stays used."""
    try:
        read_amount(amount, Unit.MICRO)  # the widest form; what the budget counts is known to its gate
        window_ms = parse_duration_ms(per, "--per") if per else None
        if window_ms == 0:
            raise BadInput("--per", "is no time; without it the window stays")  # noqa: TRY301  told as the grammar's own errors are
    except BadInput as bad:
        print(bad, file=sys.stderr)
        raise typer.Exit(Exit.USAGE) from None
    give("limit", name, reason, (state, port), as_json=as_json, amount=amount, window_ms=window_ms)
