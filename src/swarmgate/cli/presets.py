"""`swarmgate presets`: the shipped limits of well-known hosts, where they come from, and which are on by default."""

import json
from typing import Annotated, Literal

import typer
from rich.console import Console

from swarmgate.cli.listing import Listing
from swarmgate.facts.presets import Preset, in_force, load_presets

EXAMPLE = "Example: swarmgate presets --json"


def presets(
    at_least: Annotated[
        Literal["high", "medium", "low"],
        typer.Option("--confidence", help="Mark as on what `\\[egress] presets` would."),
    ] = "high",
    as_json: Annotated[bool, typer.Option("--json", help="Print everything that is known of each.")] = False,
) -> None:
    """List the shipped limits of well-known hosts."""
    on = {one.id for one in in_force(at_least)}
    known = load_presets().values()
    if as_json:
        print(json.dumps([_plain(one, is_on=one.id in on) for one in known], indent=2))
        return
    table = Listing("preset", "on", "hosts", "limits", "sure", "seen", "asks for", title="Published limits")
    for one in known:
        table.add_row(
            one.id,
            "yes" if one.id in on else "",
            ", ".join(one.policy["hosts"]),
            "\n".join(_limits(one)),
            one.confidence,
            one.seen,
            one.asks,
        )
    console = Console()
    console.print(table)
    console.print('Use another variant with `preset = "NAME/VARIANT"` in a policy; --json has the sources.')


def _limits(preset: Preset) -> list[str]:
    lines = list(preset.policy.get("limits", ()))
    for name, one in preset.policy.get("classes", {}).items():
        costs = [f"{one['points']} points each"] if "points" in one else []
        lines += [f"{name}: {', '.join([*one.get('limits', ()), *costs])}"]
    return [*lines, *[f"(not metered: {limit})" for limit in preset.unmetered]]


def _plain(preset: Preset, *, is_on: bool) -> dict[str, object]:
    return {"id": preset.id, "on": is_on, **preset._asdict()}
