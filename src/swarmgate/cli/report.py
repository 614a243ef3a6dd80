"""`swarmgate report`: what happened at one target, the budget in force beside the traffic, and the verdict."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from swarmgate.cli.evidence import USUAL_PORT, Port, State, asking, plain, stop
from swarmgate.cli.exits import Exit
from swarmgate.cli.folder import folder_of
from swarmgate.cli.listing import Listing

if TYPE_CHECKING:
    from swarmgate.control.post_mortem import PostMortem

EXAMPLE = "Example: swarmgate report --target api.github.com --from 2h --html report.html"
_MOST_ROWS = 30


def report(  # noqa: PLR0913, PLR0917  a command's options
    target: Annotated[str, typer.Option(help="A target's name, or a host.")],
    from_: Annotated[str, typer.Option("--from", help="2026-11-30T08:00 (UTC), or 2h for so long ago.")] = "1h",
    to: Annotated[str, typer.Option(help="The same, or now.")] = "now",
    html: Annotated[Path | None, typer.Option(help="Write a page with drawings.")] = None,
    state: State = None,
    port: Port = USUAL_PORT,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Tell whether a target's budget was kept and whether it was right, who caused the traffic, and what waiting cost."""
    from swarmgate.control import answers  # noqa: PLC0415  SQLAlchemy must not load where `up` runs
    from swarmgate.control.page import page  # noqa: PLC0415  as above

    with asking():
        story = answers.story(folder_of(state, port), target, answers.span_of(from_, to))
    if html is not None:
        try:
            html.write_text(page(story), encoding="utf-8")
        except OSError as error:
            raise stop(Exit.USAGE, f"--html {html}: cannot be written: {error.strerror}") from None
    if as_json:
        print(json.dumps(answers.report(story), indent=2))
    else:
        _show(story)
        if html is not None:
            print(f"page: {html}")


def _show(story: "PostMortem") -> None:
    from swarmgate.control.page import shown_instant, summary, tables  # noqa: PLC0415  as above

    console = Console()
    start, end = (shown_instant(at_ms) for at_ms in story.span)
    console.print(Text(plain(f"{story.target}: {story.verdict.value} ({start} to {end} UTC)"), style="bold"))
    figures = Table(show_header=False, box=None)
    for name, value in summary(story):
        figures.add_row(Text(name), Text(value))
    console.print(figures)
    for title, (head, rows) in tables(story).items():
        if rows:
            table = Listing(*head, title=title)
            for row in rows[:_MOST_ROWS]:
                table.add_row(*(Text(plain(cell)) for cell in row))
            console.print(table)
            if len(rows) > _MOST_ROWS:
                console.print(f"{len(rows) - _MOST_ROWS} more rows: --html or --json")
