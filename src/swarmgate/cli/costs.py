"""`swarmgate costs`: tokens and money by team, agent, task, model; or what long contexts cost."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from swarmgate.cli.evidence import USUAL_PORT, Port, State, as_csv, asking, plain
from swarmgate.cli.folder import folder_of
from swarmgate.cli.listing import Listing

EXAMPLE = "Example: swarmgate costs --by team --from 7d --csv"
CONTEXT = "context"
GROUPS = ("team", "agent", "task", "task_type", "target", "model", "key", CONTEXT)
_ESTIMATES = ("estimated_tokens", "estimated_micro")
_COLUMNS = (
    *("attempts", "answered", "prompt_tokens", "output_tokens", "cached_tokens", "cost_micro", "unpriced"),
    *_ESTIMATES,
)
_BANDS = ("task_type", "band", "calls", "mean_ms", "p50_ms", "p99_ms", "output_tokens", "cost_micro")
_MICRO = 1_000_000
_OF_ONE_CALL = {"output_tokens": "out per call", "cost_micro": "USD per call"}  # by context they are means
_HEADS = {
    "attempts": "sent",
    "prompt_tokens": "tokens in",
    "output_tokens": "out",
    "cached_tokens": "cached",
    "cost_micro": "USD",
    "unpriced": "cost unknown",
    "estimated_tokens": "of these tokens estimated",
    "estimated_micro": "of USD estimated",
}


def costs(  # noqa: PLR0913, PLR0917  a command's options
    by: Annotated[str, typer.Option(help=f"One of {', '.join(GROUPS)}.")] = "team",
    from_: Annotated[str, typer.Option("--from", help="2026-11-30T08:00 (UTC), or 2h for so long ago.")] = "24h",
    to: Annotated[str, typer.Option(help="The same, or now.")] = "now",
    state: State = None,
    port: Port = USUAL_PORT,
    csv: Annotated[bool, typer.Option("--csv", help="For spreadsheets.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """
    Tell what was used and what it cost, or what long contexts cost; beyond 30 days hours count whole.

    A cost that nobody knows is told beside those that are known, and never counts as 0. Where a target did not tell what it used (its
    caller left, it broke off), sums hold an estimate, and how much of them that is stands beside them.
    """
    from swarmgate.control import answers  # noqa: PLC0415  SQLAlchemy must not load where `up` runs

    with asking():
        rows = answers.costs(folder_of(state, port), by, answers.span_of(from_, to))
    columns = _BANDS if by == CONTEXT else (by, *_COLUMNS)
    if as_json:
        print(json.dumps(rows, indent=2))
    elif csv:
        print(as_csv(columns, [[row[name] for name in columns] for row in rows]), end="")
    else:
        Console().print(_table(columns, rows) if rows else "nothing was sent in this time")


def _table(columns: tuple[str, ...], rows: list[dict[str, Any]]) -> Listing:
    heads = _HEADS | (_OF_ONE_CALL if columns is _BANDS else {})
    if not any(row.get(name) for row in rows for name in _ESTIMATES):
        columns = tuple(name for name in columns if name not in _ESTIMATES)
    table = Listing(*(heads.get(name, name.replace("_", " ")) for name in columns))
    for row in rows:
        is_known = row["cost_micro"] or not row.get("unpriced")  # nothing but answers without a price is not free
        cells = [_cell(name, row[name] if is_known or name != "cost_micro" else None) for name in columns]
        table.add_row(*map(Text, cells))
    return table


def _cell(name: str, value: object) -> str:
    if name in {"cost_micro", "estimated_micro"}:
        return "unknown" if value is None else f"{int(str(value)) / _MICRO:,.6f}"
    nobody = "unattributed" if name == "agent" else "none"
    return f"{value:,}" if isinstance(value, int) else plain(value) or nobody
