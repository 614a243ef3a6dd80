"""What the commands that read the ledger share: which folder, which time, and text that is safe to show."""

import csv
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from swarmgate.cli.exits import Exit
from swarmgate.cli.up import state_folder
from swarmgate.config import Config, Listen
from swarmgate.core.duration import parse_duration_ms
from swarmgate.core.errors import BadInput
from swarmgate.engine.clock import unix_ms

if TYPE_CHECKING:
    from swarmgate.stores.sql.ledger import Ledger

State = Annotated[Path | None, typer.Option(help="The gate's state folder; else that of --port.")]
Port = Annotated[int, typer.Option(min=1, max=65_535, help="The gate's data port, where no --state is given.")]
USUAL_PORT = 8787
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@contextmanager
def ledger(state: Path | None, port: int) -> Iterator["Ledger"]:
    """The ledger, read only, also while the gate runs. Ends the program where there is none or it cannot be read."""
    from swarmgate.stores.sql.ledger import Ledger  # noqa: PLC0415  SQLAlchemy must not load where `up` runs

    folder = state or state_folder(Listen(Config.model_fields["listen"].default.host, port))
    try:
        opened = Ledger.to_read(folder)
    except BadInput as bad:
        raise stop(Exit.USAGE, str(bad)) from None
    try:
        yield opened
    finally:
        opened.close()


def instant(text: str, option: str) -> int:
    """`now`, `2h` (so long ago), or ISO 8601 (UTC unless it says otherwise), in ms. Ends the program if it is neither."""
    now_ms = unix_ms()
    if text == "now":
        return now_ms
    try:
        if text[:4].isdigit() and "-" in text:
            at = datetime.fromisoformat(text)
            return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1_000)
        return now_ms - parse_duration_ms(text, option)
    except ValueError:
        raise stop(
            Exit.USAGE, f"{option}: {text[:40]!r} is no time; write 2026-11-30T08:00, 2h for so long ago, or now"
        ) from None


def plain(value: object) -> str:
    """Text that moves no cursor and names no style, whoever wrote it (reliability AZ-12)."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in str(value))


def cell(value: object) -> Text:
    """The same for a table: what stands in brackets is no markup."""
    return Text(plain(value))


def as_csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows for a spreadsheet; what one would take for a formula is text (reliability AZ-11)."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        writer.writerow([f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell for cell in row])
    return out.getvalue()


def stop(code: Exit, text: str) -> typer.Exit:
    """The end of a command, with a sentence on stderr."""
    print(text, file=sys.stderr)
    return typer.Exit(code)
