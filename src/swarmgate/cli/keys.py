"""
`swarmgate keys`: agents' keys, made, listed, rotated and revoked by whoever may read the gate's state folder.

It works while no gate runs, too; a running one hears of each change at once. A key is printed once, to standard output, so
that it can be piped into a secret store; everything else goes to standard error.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from swarmgate.cli.evidence import cell, refusal, there
from swarmgate.cli.exits import Exit
from swarmgate.cli.folder import folder_of
from swarmgate.cli.listing import Listing
from swarmgate.cli.order import USUAL_PORT, AsJson, Port, State, whoami
from swarmgate.control import link
from swarmgate.control.pricing import kept
from swarmgate.core.errors import BadInput
from swarmgate.engine.clock import unix_ms
from swarmgate.engine.disk import DISK
from swarmgate.stores.journal.audit import Audit

if TYPE_CHECKING:
    from swarmgate.control.agent_keys import KeyOffice
    from swarmgate.stores.sql.agent_keys import AgentKeys

CREATE_EXAMPLE = "Example: swarmgate keys create reader --team lab --limits '5 USD per 1d'"
LIST_EXAMPLE = "Example: swarmgate keys list"
ROTATE_EXAMPLE = "Example: swarmgate keys rotate 3f9c2a71d0 --overlap 10m"
REVOKE_EXAMPLE = "Example: swarmgate keys revoke 3f9c2a71d0"
app = typer.Typer(help="Keys that agents show to the gate.", epilog=CREATE_EXAMPLE, no_args_is_help=True)

_ARGUMENTS = ("id", "name", "author")

KeyId = Annotated[str, typer.Argument(metavar="ID", help="As `swarmgate keys list` shows it.")]


@app.command(epilog=CREATE_EXAMPLE)
def create(  # noqa: PLR0913, PLR0917  one option each
    name: Annotated[str, typer.Argument(help="Whose it is, for people.")],
    team: Annotated[str, typer.Option(help="The team that its calls are counted for.")] = "",
    targets: Annotated[
        list[str] | None, typer.Option(help="Targets or hosts it may call; * stands for anything.")
    ] = None,
    models: Annotated[list[str] | None, typer.Option(help="Models it may ask for; * stands for anything.")] = None,
    limits: Annotated[
        list[str] | None, typer.Option(help="Caps of this key alone, as '5 USD per 1d', '20 per 60s', '4 concurrent'.")
    ] = None,
    expires_in: Annotated[str, typer.Option(help="For how long it is good, as 12h or 30d; without it for ever.")] = "",
    state: State = None,
    port: Port = USUAL_PORT,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, this once."""
    wanted = {
        "author": whoami(),
        "name": name,
        "team": team,
        "targets": targets,
        "models": models,
        "limits": limits,
        "expires_in": expires_in,
    }
    made = _done(folder_of(state, port), lambda office: office.create(wanted), is_first=True)
    _show(made, as_json=as_json)


@app.command("list", epilog=LIST_EXAMPLE)
def list_keys(state: State = None, port: Port = USUAL_PORT, as_json: AsJson = False) -> None:
    """Every key that was ever made."""

    async def listed(office: "KeyOffice") -> list[dict[str, Any]]:
        return office.listed()

    rows = _done(folder_of(state, port), listed)
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    table = Listing("id", "name", "team", "targets", "models", "limits", "made", "good until")
    for row in rows:
        lists = (", ".join(row[name]) for name in ("targets", "models", "limits"))
        table.add_row(*map(cell, (row["id"], row["name"], row["team"], *lists, _day(row["made_ms"]), _until(row))))
    Console().print(table if rows else "no keys")


@app.command(epilog=ROTATE_EXAMPLE)
def rotate(
    identity: KeyId,
    overlap: Annotated[str, typer.Option(help="For how long the old key is still good.")] = "1h",
    state: State = None,
    port: Port = USUAL_PORT,
    as_json: AsJson = False,
) -> None:
    """Make a successor with the same scope, and print it."""
    said = {"overlap": overlap, "author": whoami()}
    _show(_done(folder_of(state, port), lambda office: office.rotate(identity, said)), as_json=as_json)


@app.command(epilog=REVOKE_EXAMPLE)
def revoke(identity: KeyId, state: State = None, port: Port = USUAL_PORT, as_json: AsJson = False) -> None:
    """Refuse a key from now on."""
    done = _done(folder_of(state, port), lambda office: office.revoke(identity, {"author": whoami()}))
    print(json.dumps(done) if as_json else f"{identity} is revoked")


def _done(folder: Path, act: Callable[["KeyOffice"], Awaitable[Any]], *, is_first: bool = False) -> Any:
    """
    What came of it; a running gate has heard of it. Ends the program where it cannot be done.

    `is_first`: it may be done before a gate's first start, so the folder need not be there.
    """
    from swarmgate.stores.sql.agent_keys import AgentKeys  # noqa: PLC0415  SQLAlchemy must not load where `up` runs

    try:
        if is_first:
            DISK.make(folder)
        with closing(AgentKeys.opened(there(folder))) as keys:
            return asyncio.run(_act(folder, keys, act))
    except BadInput as bad:
        raise _stop(Exit.USAGE, refusal(bad, _ARGUMENTS)) from None
    except OSError as error:
        raise _stop(Exit.USAGE, f"{folder}: {error.strerror or error}") from None


async def _act(folder: Path, keys: "AgentKeys", act: Callable[["KeyOffice"], Awaitable[Any]]) -> Any:
    async def tell(order: str, said: link.Said) -> None:
        try:
            peer = await link.connect(folder, lambda: link.Peer({}))
        except OSError:
            print(f"no gate runs in {folder}; the next one there knows the keys", file=sys.stderr)
            return
        try:
            await peer.ask(order, **said)
        finally:
            peer.close()

    from swarmgate.control.agent_keys import KeyOffice  # noqa: PLC0415  as above

    return await act(KeyOffice(keys, Audit(folder), tell, lambda: kept(folder).providers))


def _show(made: dict[str, str], *, as_json: bool) -> None:
    """A new key, this once."""
    if as_json:
        print(json.dumps(made))
        return
    print(f"{made['id']} is made; the key is not shown again:", file=sys.stderr)
    print(made["key"])


def _until(row: dict[str, Any]) -> str:
    """Till when a key is good, or since when it is not."""
    if row["revoked_ms"]:
        return f"revoked {_day(row['revoked_ms'])}"
    if 0 < row["expires_ms"] <= unix_ms():
        return f"expired {_day(row['expires_ms'])}"
    return _day(row["expires_ms"]) or "for ever"


def _day(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1_000, UTC):%Y-%m-%d %H:%M} UTC" if at_ms else ""


def _stop(code: Exit, text: str) -> typer.Exit:
    print(text, file=sys.stderr)
    return typer.Exit(code)
