"""
`swarmgate explain URL`: what a URL is to the gate, which policies hold for it, what they yield, and what is left.

The configuration answers all but the last; that is asked of a running gate, if one answers.
"""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from swarmgate import config
from swarmgate.cli.budgets import amount
from swarmgate.cli.check import KINDS
from swarmgate.cli.configured import read
from swarmgate.cli.evidence import cell
from swarmgate.cli.exits import Exit
from swarmgate.cli.gateway import ask_of
from swarmgate.cli.listing import Listing
from swarmgate.config import Config
from swarmgate.core.compiler import Unit
from swarmgate.core.groups import registrable_group
from swarmgate.core.lesson import CAP, RATE
from swarmgate.core.routing import Budget
from swarmgate.core.target import ParsedUrl, Target, parse_target
from swarmgate.core.target_errors import BadTarget
from swarmgate.core.target_policy import Judged, Policy, counts_requests, judge
from swarmgate.gate.egress.hosts import GROUP, joint, places
from swarmgate.gate.egress.plan import EgressPlan, forbidden, forbidden_port
from swarmgate.wiring.egress import egress_plan

_KINDS = {kind.name.lower(): word for kind, word in KINDS.items()}


class Explained(NamedTuple):
    """
    A URL as the gate sees it; `refused` is why it would not be called, empty if it may be.

    `budgets` are in force, `watched` those of policies that only watch; `unknown` = nothing in force counts its requests.
    """

    parsed: ParsedUrl
    group: str
    judged: Judged
    budgets: tuple[Budget, ...]
    watched: tuple[Budget, ...]
    refused: str
    unknown: bool

    @property
    def policies(self) -> list[Policy]:
        """Those that hold for it, or watch it."""
        return [policy for policy, _ in self.judged.classed() if policy.name]


def explain_url(url: str, method: str, file: Path | None, gate: str, *, as_json: bool) -> None:
    """Print it. Ends the program where the URL is refused as such."""
    told = config.parse("", {}) if file is None else read(file)
    try:
        found = explained(url, method.upper(), told)
    except BadTarget as bad:
        print(f"{bad.reason}: {bad}", file=sys.stderr)
        raise typer.Exit(Exit.USAGE) from None
    live = _live(gate, found)
    rows = [_row(one, live.pop(one.name, {})) for one in found.budgets]
    rows += [_row(one, {"state": "only watches"}) for one in found.watched]
    rows += [_met(seen) for name, seen in live.items() if name.endswith((RATE, CAP)) or name == places(found.group)]
    if as_json:
        print(json.dumps(as_object(found, told, rows), indent=2))
    else:
        _show(found, told, rows, is_told=file is not None)


def explained(url: str, method: str, told: Config) -> Explained:
    """What a request to `url` is. Errors: `BadTarget`."""
    parsed, plan = parse_target(url), egress_plan(told)
    host = parsed.target.host
    judged = judge(plan.policies, host, method, parsed.path)
    told_of = [(policy.shadow, budget) for policy, kind in judged.classed() for budget in policy.budgets.get(kind, ())]
    budgets, watched = (tuple([one for shadow, one in told_of if shadow is only]) for only in (False, True))
    group = registrable_group(host, plan.suffixes, plan.settings.groups)
    refused = _refusal(plan, parsed.target, judged.policy)
    return Explained(parsed, group, judged, budgets, watched, refused, not counts_requests(budgets))


def as_object(found: Explained, told: Config, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "target": found.parsed.target.key,
        "url": found.parsed.url,
        "host": found.parsed.target.host,
        "group": found.group,
        "path_class": found.judged.path_class or None,
        "refused": found.refused or None,
        "policies": [one.name for one in found.policies],
        "watching": [one.name for one in found.policies if one.shadow],
        "unknown": {"begins_at": str(told.egress.unknown), "ceiling": str(told.egress.ceiling)}
        if found.unknown
        else None,
        "budgets": rows,
    }


def _refusal(plan: EgressPlan, target: Target, policy: Policy) -> str:
    """By the gate's own rules."""
    why = forbidden(plan.settings, target) or forbidden_port(plan.settings, policy, target)
    return "" if why is None else f"{why.reason}: {why.detail}"


def _live(gate: str, found: Explained) -> dict[str, dict[str, Any]]:
    """Its budgets in the gate, by name, learned ones too; none if no gate answers, which is said on the way."""
    policies = [one.name for one in found.policies if one.budgets and not one.shadow]
    group = GROUP + found.group
    learned = [joint(found.parsed.target).authority, group] if found.unknown else []
    names = {places(found.group), *(name + kind for name in learned for kind in (RATE, CAP))}
    try:
        rows = [row for name in policies for row in ask_of(gate, name)]
        rows += [
            row for name in dict.fromkeys((*learned, group)) for row in ask_of(gate, name) if row["budget"] in names
        ]
    except typer.Exit:
        return {}
    return {row["budget"]: row for row in rows}


def _row(one: Budget, seen: dict[str, Any]) -> dict[str, Any]:
    return {
        "budget": one.name,
        "unit": one.unit.value,
        "limit": seen.get("limit", one.published.amount),
        "window_ms": seen.get("window_ms", one.published.window_ms or None),
        "cost": None if one.unit is Unit.BYTES else one.cost,
        "kind": one.compiled.limits.kind.name.lower(),
        "yields_permille": one.compiled.yield_permille,
        "state": seen.get("state"),
        "remaining": seen.get("remaining"),
        "units_free_in_ms": seen.get("units_free_in_ms"),
    }


def _met(seen: dict[str, Any]) -> dict[str, Any]:
    """What the gate has learned of a host, or of what is unknown of its group, and the group's places."""
    told = ("budget", "unit", "limit", "window_ms", "state", "remaining", "units_free_in_ms")
    return {
        **{name: seen[name] for name in told},
        "cost": 1,
        "kind": seen["in_force"]["kind"],
        "yields_permille": None,
    }


def _show(found: Explained, told: Config, rows: list[dict[str, Any]], *, is_told: bool) -> None:
    console = Console()
    facts = Table.grid(padding=(0, 2))
    said = as_object(found, told, rows)
    facts.add_row("target", cell(said["target"]))
    facts.add_row("sent as", cell(said["url"]))
    shared = ", what is unknown of it one budget" if found.unknown else ""
    facts.add_row("group", cell(f"{said['group']} (its hosts share its places{shared})"))
    nowhere = "none" if is_told else "none of the presets; --config names your own"
    facts.add_row("policies", ", ".join(said["policies"]) or nowhere)
    facts.add_row("path class", said["path_class"] or "none")
    if found.refused:
        facts.add_row("refused", cell(found.refused))
    if found.unknown:
        facts.add_row(
            "requests", f"nothing counts them: begins at {told.egress.unknown}, grows to {told.egress.ceiling}"
        )
    console.print(facts)
    if not rows:
        return
    table = Listing("budget", "limit", "kind", "a request costs", "yields", "state", "left P0/P1/P2")
    for row in rows:
        left = row["remaining"]
        table.add_row(
            cell(row["budget"]),
            amount(row),
            _KINDS[row["kind"]],
            "what it is" if row["cost"] is None else _cost(row["cost"], row["unit"]),
            _yield(row),
            row["state"] or "no gate",
            "/".join(str(left[rank]) for rank in ("P0", "P1", "P2")) if left else "",
        )
    console.print(table)


def _cost(units: int, unit: str) -> str:
    return f"{units:,} {unit.removesuffix('s') if units == 1 else unit}"


def _yield(row: dict[str, Any]) -> str:
    if row["yields_permille"] is not None:
        return f"{row['yields_permille'] / 10:g} %"
    return "learned" if row["budget"].endswith((RATE, CAP)) else ""
