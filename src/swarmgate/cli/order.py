"""
Orders to a running gate, over the socket in its state folder: whoever may read that folder is the operator.

It works without the control process, too. Who gives an order says why; both stand in the ledger beside the revision.
"""

import asyncio
import getpass
import json
import socket
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from swarmgate.cli.evidence import cell
from swarmgate.cli.exits import Exit
from swarmgate.cli.folder import folder_of
from swarmgate.cli.listing import Listing
from swarmgate.control import link
from swarmgate.core.errors import BadInput

Name = Annotated[str, typer.Argument(help="A target, or a budget as `swarmgate budgets` lists it.")]
Reason = Annotated[str, typer.Option(help="Why; it stands beside the revision in the ledger.")]
Port = Annotated[int, typer.Option(min=1, max=65_535, help="The gate's data port, where no --state is given.")]
State = Annotated[Path | None, typer.Option(help="The gate's state folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]
USUAL_PORT = 8787


def give(order: str, name: str, reason: str, place: tuple[Path | None, int], *, as_json: bool, **said: Any) -> None:
    """Give an order and print what was changed. Ends the program where nobody takes it, or it is refused."""
    state, port = place
    folder = folder_of(state, port)
    author = whoami()
    try:
        changes = asyncio.run(_asked(folder, order, {"target": name, "author": author, "reason": reason, **said}))
    except BadInput as bad:
        raise _stop(Exit.USAGE, str(bad)) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise _stop(
            Exit.UNREACHABLE, f"no gate takes orders in {folder}: {reason}; name it with --state or --port"
        ) from None
    if as_json:
        print(json.dumps(changes, indent=2))
        return
    if not changes:
        again = "; what of it was out is tried again" if order == "resume" else ""
        print(f"{name} was so already{again}")
        return
    table = Listing("budget", "revision", "policy", title=cell(f"{order}: {name}").plain)
    for change in changes:
        table.add_row(cell(change["budget"]), str(change["revision"]), str(change["policy"]))
    Console().print(table)


def whoami() -> str:
    """Who gives an order, as the evidence names him."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


async def _asked(folder: Path, order: str, said: dict[str, Any]) -> Any:
    peer = await link.connect(folder, lambda: link.Peer({}))
    try:
        return await peer.ask(order, **said)
    finally:
        peer.close()


def _stop(code: Exit, text: str) -> typer.Exit:
    print(text, file=sys.stderr)
    return typer.Exit(code)
