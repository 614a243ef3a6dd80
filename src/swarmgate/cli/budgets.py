"""`swarmgate budgets`: what is left of every limit, when the next unit is free, and who waits."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from swarmgate.cli.evidence import cell
from swarmgate.cli.gateway import GATE_HELP, ask, events
from swarmgate.cli.listing import Listing
from swarmgate.config.quota import shown, shown_unit
from swarmgate.core.compiler import Unit

EXAMPLE = "Example: swarmgate budgets --target openai --watch"
_STYLES = {"ready": "green", "backoff": "yellow", "stalled": "red", "paused": "magenta"}
Row = dict[str, Any]


def budgets(
    target: Annotated[str, typer.Option(help="One target only.")] = "",
    units: Annotated[int, typer.Option(min=1, help="Say when so many units will be free.")] = 1,
    watch: Annotated[bool, typer.Option("--watch", help="Go on as things change, until Ctrl-C.")] = False,
    gate: Annotated[str, typer.Option(help=GATE_HELP)] = "",
    as_json: Annotated[bool, typer.Option("--json", help="For programs; with --watch one object a change.")] = False,
) -> None:
    """Show what is left of every limit of a running gate."""
    if watch:
        with suppress(KeyboardInterrupt):
            _watch(gate, target, as_json=as_json)
        return
    page = ask(gate, "budgets", target=target, units=str(units))
    if as_json:
        print(json.dumps(page, indent=2))
        return
    console = Console()
    console.print(table(page["budgets"]))
    console.print(targets(page["targets"]))
    if page["watching"]:
        console.print(watching(page["watching"]))
    for row in page["budgets"]:
        if row["file"] is not None:
            file, now = (amount(one) for one in (row["file"] | {"unit": row["unit"]}, row))
            console.print(
                f"{row['budget']}: {now} stands over the file's {file}: somebody changed it while the gate ran"
            )
    if page["left_off"]:
        console.print(f"{page['left_off']} more budgets are not shown; ask for one --target")


def _watch(gate: str, target: str, *, as_json: bool) -> None:
    rows: dict[str, Row] = {}
    with Live(auto_refresh=False, console=Console(quiet=as_json)) as live:
        for said in events(gate, "budgets/events"):
            if as_json:
                print(json.dumps(said), flush=True)
                continue
            rows |= {row["budget"]: row for row in said["budgets"]}
            shown = [row for row in rows.values() if target in {"", row["target"]}]
            its = [row for row in said["targets"] if target in {"", row["target"]}]
            live.update(Group(table(shown), targets(its)), refresh=True)


def amount(said: Row) -> str:
    """A limit as it is written; of a learned one, what is believed now."""
    window_ms = said["window_ms"]
    money = f" {shown_unit(said['unit'])}" if said.get("unit") == Unit.MICRO else ""
    return shown(said["limit"], said.get("unit", "")) + money + (f" per {window_ms / 1_000:.10g}s" if window_ms else "")


def table(rows: Iterable[Row]) -> Listing:
    """Budgets as people read them."""
    made = Listing("budget", "state", "left P0", "P1", "P2", "next free", "waiting", "rev", title="Budgets")
    for row in rows:
        left, waiting = row["remaining"], row["backlog"]
        made.add_row(
            cell(row["budget"]),
            Text(row["state"], _STYLES.get(row["state"], "")),
            *[shown(left[rank], row["unit"]) for rank in ("P0", "P1", "P2")],
            _free(row),
            "/".join(str(waiting[rank]) for rank in ("P0", "P1", "P2")) if any(waiting.values()) else "",
            str(row["revision"]),
        )
    return made


def targets(rows: Iterable[Row]) -> Listing:
    """Targets as people read them."""
    made = Listing("target", "model", "state", "keys", "out", title="Targets")
    for row in rows:
        out = ", ".join(f"{key} {_wait(wait_ms)}" for key, wait_ms in row["keys_out_for_ms"].items())
        made.add_row(
            cell(row["target"]),
            cell(row["model"] or ""),
            Text(row["state"], _STYLES.get(row["state"], "")),
            str(row["keys"]),
            cell(out),
        )
    return made


def watching(rows: Iterable[Row]) -> Listing:
    """What policies that only watch would have done, as people read it."""
    made = Listing("policy", "let through", "held back", "by", title="Policies that only watch, by the sends they saw")
    for row in rows:
        by = [f"{one['budget']}: {one['held_back']:,}" for one in row["budgets"] if one["held_back"]]
        made.add_row(cell(row["policy"]), f"{row['passed']:,}", f"{row['held_back']:,}", cell(", ".join(by)))
    return made


def _free(row: Mapping[str, Any]) -> str:
    """When so many units are free for P1, which is what a call is unless it says otherwise."""
    free_ms, certain_ms = row["units_free_in_ms"]["P1"], row["certain_in_ms"]["P1"]
    if free_ms is not None:
        return "now" if free_ms == 0 else _wait(free_ms)
    if certain_ms is None:
        return "when a person acts" if row["state"] == "paused" else "unknown"
    return f"when one ends, by {_wait(certain_ms)}"


def _wait(wait_ms: int | None) -> str:
    if wait_ms is None:
        return "until a person acts"
    return f"{wait_ms} ms" if wait_ms < 1_000 else f"{wait_ms / 1_000:,.1f} s"
