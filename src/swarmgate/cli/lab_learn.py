"""`swarmgate lab learn`: hosts that take less than the gate was told, and how it finds out."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from swarmgate.cli.exits import Exit
from swarmgate.cli.listing import Listing
from swarmgate.cli.telling import Telling
from swarmgate.lab.demo.children import ending_in_order
from swarmgate.lab.demo.hidden import AT_ONCE, TOLD, TRUE, WINDOW_MS, HostFigures, run_hidden
from swarmgate.lab.errors import LabError

EXAMPLE = "Example: swarmgate lab learn --seconds 90"


def learn(
    seconds: Annotated[int, typer.Option(min=10, max=3_600, help="How long the gate may learn.")] = 60,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show how a gate finds limits of which it was told wrongly: five hosts, each counting in its own way."""
    try:
        with (
            ending_in_order(),
            tempfile.TemporaryDirectory(prefix="swarmgate-learn-") as folder,
            Telling() as telling,
        ):
            found = run_hidden(seconds, Path(folder), lambda passed: telling.at("learning", min(1.0, passed / seconds)))
    except (LabError, OSError) as error:
        print(error, file=sys.stderr)
        raise typer.Exit(Exit.FAILED) from None
    except KeyboardInterrupt:
        print("stopped; nothing is left running", file=sys.stderr)
        raise typer.Exit(Exit.FAILED) from None
    if as_json:
        hosts = [one._asdict() | {"parts": [part._asdict() for part in one.parts], "found": one.found} for one in found]
        print(json.dumps({"told": TOLD, "true": TRUE, "window_ms": WINDOW_MS, "at_once": AT_ONCE, "hosts": hosts}))
    else:
        _show(found)
    if not all(one.found for one in found):
        raise typer.Exit(Exit.FAILED)


def _show(found: list[HostFigures]) -> None:
    window = f"{WINDOW_MS // 1_000} s"
    console = Console()
    console.print(
        f"The gate was told {TOLD} per {window} of each host. Really each takes {TRUE} per {window}, or {AT_ONCE} at once."
    )
    table = Listing("how it counts", "refused, each 10 s", "% of its limit used, each 10 s", "found")
    for one in found:
        refused = " ".join(f"{part.refused:,}" for part in one.parts)
        used = " ".join(f"{part.use * 100:.0f}" for part in one.parts)
        table.add_row(one.counts_by, refused, used, Text("yes", "green") if one.found else Text("no", "red"))
    console.print(table)
    console.print(
        "Told by a witness at each host. Found: in the last third at most 5 % refused, and 70 % used or more."
    )
