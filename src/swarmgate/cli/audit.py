"""`swarmgate audit`: who changed what as an operator, and whether the record of it was touched since."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console

from swarmgate.cli.evidence import USUAL_PORT, Port, State, cell, stop, there
from swarmgate.cli.exits import Exit
from swarmgate.cli.folder import folder_of
from swarmgate.cli.listing import Listing
from swarmgate.stores.journal.audit import Audit, Change, Parts

EXAMPLE = "Example: swarmgate audit --json"


def audit(
    since: Annotated[str, typer.Option(help="A newest hash of before: it must still be there.", metavar="HASH")] = "",
    state: State = None,
    port: Port = USUAL_PORT,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Tell every change that operators made, and whether the record stands as it was written; exit code 1 if it does not."""
    folder = there(folder_of(state, port))
    try:
        chain = Audit(folder).read()
    except OSError as error:
        raise stop(Exit.USAGE, f"{folder}: {error.strerror}") from None
    wrong = chain.verdict(since)
    if as_json:
        print(json.dumps(chain.told(since), indent=2))
    else:
        table = Listing("no", "at", "who", "what", "which", "was", "is", "because")
        for change in chain.changes:
            table.add_row(*map(cell, _row(change)))
        if chain.changes:
            Console().print(table)
        print(f"{len(chain.changes)} changes; {f'BROKEN: {wrong}' if wrong else 'each line stands as it was written'}")
        print(f"newest hash, to be kept elsewhere: {chain.newest}")
    if wrong:
        raise typer.Exit(Exit.FAILED)


def _row(change: Change) -> Iterable[object]:
    at = f"{datetime.fromtimestamp(change.at_ms / 1_000, UTC):%Y-%m-%d %H:%M:%S}"
    was, now = _apart(change.old, change.new), _apart(change.new, change.old)
    return change.number, at, change.who, change.what, change.subject, was, now, change.reason


def _apart(one: Parts, other: Parts) -> str:
    """The parts of one that the other has otherwise."""
    return ", ".join(f"{name} {said}" for name, said in one.items() if other.get(name) != said)
