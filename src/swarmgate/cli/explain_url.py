"""
`swarmgate explain URL`: what a URL is to the gate, which policies hold for it, what they yield, and what is left.

A running gate answers for itself. Without one, and for what a file would change, the configuration does.
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
from swarmgate.cli.gateway import budgets_of
from swarmgate.cli.listing import Listing
from swarmgate.config import Config
from swarmgate.core.compiler import Unit
from swarmgate.core.groups import registrable_group
from swarmgate.core.lesson import CAP, RATE
from swarmgate.core.routing import Budget
from swarmgate.core.target import ParsedUrl, Target, parse_target
from swarmgate.core.target_errors import BadTarget
from swarmgate.core.target_policy import Judged, Policy, counts_requests, judge
from swarmgate.gate.egress.hosts import GROUP, places
from swarmgate.gate.egress.plan import EgressPlan, forbidden, forbidden_port
from swarmgate.gate.view.directory import owner_of
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
    answer = _live(gate, url, method.upper())
    live, refused = answer or ({}, "")
    is_live = file is None and answer is not None
    rows = [_row(one, live.pop(one.name, {})) for one in found.budgets if one.name in live or not is_live]
    rows += [_row(one, {"state": "only watches"}) for one in found.watched if not is_live]
    rows += [_met(seen) for name, seen in live.items() if is_live or _is_learned(name) or name == places(found.group)]
    said = as_object(found, told, rows) | (_of_gate(rows, refused) if is_live else {})
    if as_json:
        print(json.dumps(said, indent=2))
    else:
        _show(said, nowhere=("none" if file or is_live else "none of the presets; --config names your own"))


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


def _live(gate: str, url: str, method: str) -> tuple[dict[str, dict[str, Any]], str] | None:
    """What the gate takes a request from, by name, and why it refuses it; None if no gate answers, which is said on the way."""
    try:
        rows, refused = budgets_of(gate, url, method)
    except typer.Exit:
        return None
    return {row["budget"]: row for row in rows}, refused


def _is_learned(budget: str) -> bool:
    return budget.endswith((RATE, CAP))


def _of_gate(rows: list[dict[str, Any]], refused: str) -> dict[str, Any]:
    """What the budgets of a running gate tell of its policies, which may be others than those of the presets."""
    stated = [row for row in rows if not _is_learned(row["budget"]) and not row["budget"].startswith(GROUP)]
    classes = [name for row in stated if (name := row["budget"].partition("#")[2].partition(":")[0])]
    counted = any(row["unit"] in {Unit.REQUESTS, Unit.POINTS} for row in stated)
    return {
        "path_class": next(iter(classes), None),
        "refused": refused or None,
        "policies": list(dict.fromkeys(owner_of(row["budget"]) for row in stated)),
        "watching": [],
        "unknown": None if counted or refused else {"begins_at": None, "ceiling": None},
    }


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


def _show(said: dict[str, Any], nowhere: str) -> None:
    console = Console()
    facts = Table.grid(padding=(0, 2))
    facts.add_row("target", cell(said["target"]))
    facts.add_row("sent as", cell(said["url"]))
    shared = ", what is unknown of it one budget" if said["unknown"] else ""
    facts.add_row("group", cell(f"{said['group']} (its hosts share its places{shared})"))
    facts.add_row("policies", ", ".join(said["policies"]) or nowhere)
    facts.add_row("path class", said["path_class"] or "none")
    if said["refused"]:
        facts.add_row("refused", cell(said["refused"]))
    if said["unknown"]:
        begins, ceiling = said["unknown"]["begins_at"], said["unknown"]["ceiling"]
        how = f"begins at {begins}, grows to {ceiling}" if begins else "learned from the host's answers"
        facts.add_row("requests", f"nothing counts them: {how}")
    console.print(facts)
    rows = said["budgets"]
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
    return "learned" if _is_learned(row["budget"]) else ""
