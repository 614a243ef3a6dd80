"""`swarmgate load`: recorded traffic against any OpenAI-compatible endpoint, to size a gateway of one's own."""

import json
import os
import sys
from typing import Annotated

import typer
from rich.console import Console

from swarmgate.cli.exits import Exit
from swarmgate.cli.listing import Listing
from swarmgate.cli.telling import Telling
from swarmgate.lab.agents.endpoint import ToEndpoint, header_of, place_of
from swarmgate.lab.errors import LabError
from swarmgate.lab.load import LoadFigures, Now, run_load
from swarmgate.lab.traces.mix import Workload, workload

EXAMPLE = "Example: swarmgate load mix --to http://127.0.0.1:8787/v1 --rate 10"


def load(  # noqa: PLR0913, PLR0917  one option each
    profile: Annotated[str, typer.Argument(help="mix, a shipped trace's name, or a trace file of your own.")],
    to: Annotated[str, typer.Option(help="The endpoint's base URL.")],
    agents: Annotated[int, typer.Option(min=1, help="How many agents, each with connections of its own.")] = 200,
    rate: Annotated[
        float | None, typer.Option(help="Calls a second of all together; by default 3 a minute each.")
    ] = None,
    seconds: Annotated[int, typer.Option(min=1, help="For how long.")] = 30,
    model: Annotated[str, typer.Option(help="The model that is asked for.")] = "gpt-4o-mini",
    key: Annotated[str, typer.Option(help="Name of the environment variable that holds the key.")] = "OPENAI_API_KEY",
    header: Annotated[
        list[str] | None, typer.Option(help="A header of every call, 'name: value'; may be given several times.")
    ] = None,
    unary: Annotated[bool, typer.Option("--unary", help="No streams.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Send recorded traffic to an endpoint and tell what came back; nothing is repeated, and nothing waits for it."""
    try:
        place = place_of(to)
        headers = [header_of(line) for line in header or ()]
        found = workload(profile, agents=agents, calls_per_s=rate, seconds=float(seconds))
    except (LabError, OSError) as error:
        print(error, file=sys.stderr)
        raise typer.Exit(Exit.USAGE) from None
    way = ToEndpoint(place, model, os.environ.get(key, ""), streams=not unary, headers=headers)
    with Telling() as telling:

        def see(now: Now) -> None:
            told = f"{now.wanted} wanted, {now.answered} answered, {now.other} not, {now.open} open"
            telling.at(found.name, min(1.0, now.seconds / seconds), told)

        measured = run_load(place, way, found.players, float(seconds), see)
    _tell(measured, found, to, as_json=as_json)
    if not measured.answered:
        nobody = set(measured.statuses) <= {0}
        print("nothing answered" + (f" at {to}" if nobody else ""), file=sys.stderr)
        raise typer.Exit(Exit.UNREACHABLE if nobody else Exit.FAILED)


def _tell(measured: LoadFigures, found: Workload, to: str, *, as_json: bool) -> None:
    if as_json:
        beside = {"profile": found.name, "warning": found.warning, "sources": found.sources}
        print(json.dumps({**measured._asdict(), **beside}))
        return
    Console().print(_table(measured, f"{found.name} to {to}"))
    if found.warning:
        print(found.warning)


def _table(measured: LoadFigures, title: str) -> Listing:
    table = Listing("what", "how much", title=title)
    table.add_row("wanted", f"{measured.wanted:,} calls, {measured.wanted_per_s:,} a second")
    table.add_row("answered", f"{measured.answered:,}, {measured.answered_per_s:,} a second")
    for status, count in measured.statuses.items():
        if status != 200:
            why = measured.reasons.get(status, "")
            table.add_row(
                f"status {status}" if status else "no whole answer", f"{count:,}" + (f", {why}" if why else "")
            )
    table.add_row("open at the end", f"{measured.open_at_end:,}")
    if measured.answered:
        table.add_row("latency P50 / P95 / P99", f"{measured.p50_ms:,} / {measured.p95_ms:,} / {measured.p99_ms:,} ms")
        table.add_row("first byte P50 / P99", f"{measured.first_p50_ms:,} / {measured.first_p99_ms:,} ms")
    table.add_row("tokens a minute", f"{measured.tokens_per_minute:,}")
    return table
