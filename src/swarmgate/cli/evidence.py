"""What the commands that read the ledger share: which folder, which time, and text that is safe to show."""

import csv
import io
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from swarmgate.cli.exits import Exit
from swarmgate.core.errors import BadInput

State = Annotated[Path | None, typer.Option(help="The gate's state folder; else that of --port.")]
Port = Annotated[int, typer.Option(min=1, max=65_535, help="The gate's data port, where no --state is given.")]
USUAL_PORT = 8787
_FORMULA = ("=", "+", "-", "@")


def there(folder: Path) -> Path:
    """A state folder that is there: nothing is told of one that was spelt wrongly. Ends the program if it is not."""
    if folder.is_dir():
        return folder
    raise stop(Exit.USAGE, f"{folder}: is not there; --state names the folder that `swarmgate up` uses")


@contextmanager
def asking() -> Iterator[None]:
    """Whoever asks for what is not there, or wrongly, is told so. Ends the program then."""
    try:
        yield
    except BadInput as bad:
        raise stop(Exit.USAGE, refusal(bad)) from None


def refusal(bad: BadInput, arguments: Collection[str] = ()) -> str:
    """What is wrong, under the name of its option; `arguments` are fields that have none."""
    field = bad.field.replace("_", "-")
    is_option = field.replace("-", "").isalpha() and bad.field not in arguments
    return plain(f"{'--' if is_option else ''}{field}: {bad.reason}")


def plain(value: object) -> str:
    """Text that moves no cursor and names no style, whoever wrote it (reliability AZ-12)."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in str(value))


def cell(value: object) -> Text:
    """The same for a table: what stands in brackets is no markup."""
    return Text(plain(value))


def as_csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows for a spreadsheet; what one would take for a formula is text, and nothing in a cell ends a row (reliability AZ-11)."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        told = [plain(one) if isinstance(one, str) else one for one in row]
        writer.writerow([f"'{one}" if isinstance(one, str) and one.startswith(_FORMULA) else one for one in told])
    return out.getvalue()


def stop(code: Exit, text: str) -> typer.Exit:
    """The end of a command, with a sentence on stderr."""
    print(text, file=sys.stderr)
    return typer.Exit(code)
