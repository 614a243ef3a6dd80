"""`swarmgate check`: every mistake of a configuration at once, and what each of its limits yields."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console

from swarmgate.cli import descriptors
from swarmgate.cli.configured import Secrets
from swarmgate.cli.exits import Exit
from swarmgate.cli.folder import state_folder
from swarmgate.cli.init import DEFAULT_FILE
from swarmgate.cli.listing import Listing
from swarmgate.cli.warned import WARNINGS, Asked, Warned, warned
from swarmgate.config import Config, load
from swarmgate.config.problems import FileError
from swarmgate.config.quota import shown, shown_unit
from swarmgate.core.compiler import OF_TOKENS, Compiled, Published, Unit
from swarmgate.core.limits import BudgetKind
from swarmgate.core.price import MILLION
from swarmgate.core.routing import Budget
from swarmgate.stores.journal.in_force import StandingLimit, standing
from swarmgate.wiring import limits, plan

EXAMPLE = "Example: swarmgate check gate.toml --json"
LITTLE_PERCENT = 25  # below it a limit is said to yield little
KINDS = {BudgetKind.LEVEL: "bucket", BudgetKind.LEASES: "slots", BudgetKind.COUNTER: "counter"}
SECTIONS = (
    "problems",
    "warnings",
    "missing",
    "connections",
    *WARNINGS,
    "standing",
    "identity",
    "limits",
)  # of what programs get


class Yield(NamedTuple):
    """What one limit becomes: whose it is, the kind of the budget that keeps it, and what that lets through in words."""

    of: str
    kind: str
    lets_through: str
    published: Published
    compiled: Compiled

    @property
    def percent(self) -> float:
        """The mean rate, as a percentage of the published one."""
        return self.compiled.yield_permille / 10

    @property
    def reserve(self) -> int:
        """Units of the burst that only P0 may take."""
        return self.compiled.limits.floors[1]

    def as_json(self) -> dict[str, object]:
        """The row for programs; `quota` drains per `window_ms` of the compiled budget."""
        told, published = self.compiled.limits, self.published
        return {
            "of": self.of,
            "kind": self.kind,
            "published": {"amount": published.amount, "unit": published.unit, "window_ms": published.window_ms},
            "compiled": {
                "burst": told.burst,
                "quota": told.quota,
                "window_ms": told.window_ms,
                "hold_ms": told.hold_ms,
            },
            "lets_through": self.lets_through,
            "yield_percent": self.percent,
            "reserve": self.reserve,
        }


def check(
    file: Annotated[Path, typer.Argument(help="The configuration to read.", metavar="FILE")] = DEFAULT_FILE,
    state: Annotated[Path | None, typer.Option(help="The gate's state folder, to see what operators have set.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Tell every mistake of a configuration at once, and what each of its limits yields."""
    secrets = Secrets(os.environ)
    try:
        config = load(file, secrets)
        rows = [yield_of(of, budget) for of, budget in limits(config)]
    except FileError as error:
        _refuse(error, sorted(secrets.missing), as_json=as_json)
        raise typer.Exit(Exit.USAGE) from None
    except OSError as error:
        print(f"{file} cannot be read: {error.strerror}", file=sys.stderr)
        raise typer.Exit(Exit.USAGE) from None
    over = standing(state or state_folder(config.listen), plan(config).published)
    found = _Found(config, sorted(secrets.missing), rows, over)
    if as_json:
        print(json.dumps(found.as_json(), indent=2))
    else:
        _show(file, found)


class _Found(NamedTuple):
    """A configuration without a mistake, and what is to be said of it."""

    config: Config
    missing: list[str]
    rows: list[Yield]
    over: list[StandingLimit]

    @property
    def refused(self) -> list[str]:
        """Why it cannot be served on this machine, though another may."""
        return descriptors.refused(self.config.connections, len(self.config.targets))

    @property
    def warnings(self) -> list[Warned]:
        """Everything that is said of it, in the order in which people read it."""
        return [
            *(Warned("connections", "connections", sentence) for sentence in self.refused),
            *_missing(self.missing),
            *warned(Asked(self.config, os.environ, self.config.listen)),
            *(Warned("standing", one.budget, _stands(one)) for one in self.over),
            *(Warned("yields_little", row.of, _little(row)) for row in self.rows if _yields_little(row)),
        ]

    def as_json(self) -> dict[str, Sequence[object]]:
        """For programs, by `SECTIONS`."""
        warnings = self.warnings
        told: dict[str, Sequence[object]] = {
            "problems": [],
            "warnings": [one._asdict() for one in warnings],
            "missing": self.missing,
            "connections": self.refused,
            **{kind: [one.name for one in warnings if one.kind == kind] for kind in WARNINGS},
            "standing": [one._asdict() for one in self.over],
            "identity": self.config.access.identity,
            "limits": [row.as_json() for row in self.rows],
        }
        return {name: told[name] for name in SECTIONS}


def _show(file: Path, found: _Found) -> None:
    identity = found.config.access.identity
    print(f"{file}: no mistakes{', but this machine cannot serve it' * bool(found.refused)}")
    if identity:
        print(f"a call that does not say its {', '.join(identity)} is refused")
    for one in found.warnings:
        print(one.sentence)
    Console().print(
        _table(found.rows)
        if found.rows
        else "There are no limits of models or callers: all of their calls are let through."
    )


def _missing(names: list[str]) -> list[Warned]:
    return [Warned("missing", name, f"the environment has no {name}; `swarmgate up` needs it") for name in names]


def _stands(one: StandingLimit) -> str:
    money = f" {shown_unit(one.unit)}" if one.unit == Unit.MICRO else ""
    said = f"{shown(one.amount, one.unit)}{money}{_per(one.window_ms)}"
    return f"{one.budget}: {said} stands over the file until a restart; {one.author} set it: {one.reason}"


def _yields_little(row: Yield) -> bool:
    return row.percent < LITTLE_PERCENT and row.published.unit in OF_TOKENS


def _little(row: Yield) -> str:
    """Why a limit yields so little, and what changes it."""
    knob = "largest_output" if row.published.unit is Unit.OUTPUT_TOKENS else "largest_tokens"
    return (
        f"{row.of}: of {_published(row.published)} only {row.percent:g} % can be used, since a call of "
        f"{max(row.published.largest):,} must fit at once; a smaller {knob} lets more through"
    )


def yield_of(of: str, budget: Budget) -> Yield:
    """One row: a limit of a target or of one of its keys."""
    published, compiled = budget.published, budget.compiled
    return Yield(of, KINDS[compiled.limits.kind], _lets_through(published, compiled), published, compiled)


def _published(published: Published) -> str:
    if published.unit is Unit.MICRO:
        return f"{published.amount / MILLION:g} USD{_per(published.window_ms)}"
    return f"{published.amount:,} {published.unit}{_per(published.window_ms)}"


def _per(window_ms: int) -> str:
    return f" per {window_ms / 1_000:.10g}s" if window_ms else ""


def _lets_through(published: Published, compiled: Compiled) -> str:
    """What a budget lets through, in words."""
    told = compiled.limits
    if told.kind is BudgetKind.LEVEL:
        fine = told.window_ms // published.window_ms
        return f"{told.burst:,} at once, {_number(told.quota / fine)}{_per(published.window_ms)}"
    if published.unit is Unit.MICRO:
        return f"{told.burst / MILLION:g} USD in any{_per(told.window_ms).removeprefix(' per')}"
    if told.kind is BudgetKind.COUNTER:
        return f"{told.burst:,} in any{_per(told.window_ms).removeprefix(' per')}"
    if told.hold_ms:  # of a window
        return f"{told.burst:,} slots, each busy for {told.hold_ms / 1_000:g}s from its answer on"
    return f"{told.burst:,} in progress"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _refuse(error: FileError, missing: list[str], *, as_json: bool) -> None:
    warnings = _missing(missing)
    if as_json:
        problems = [problem._asdict() for problem in error.problems]
        told = {"problems": problems, "warnings": [one._asdict() for one in warnings], "missing": missing}
        print(json.dumps({**{name: [] for name in SECTIONS}, **told}, indent=2))
        return
    print(error, file=sys.stderr)
    for one in warnings:
        print(one.sentence, file=sys.stderr)


def _table(rows: list[Yield]) -> Listing:
    title = "What each limit yields"
    table = Listing("Of", "Published", "Kind", "What the gate lets through", "Yield", "Kept for P0", title=title)
    for row in rows:
        published = _published(row.published)
        table.add_row(row.of, published, row.kind, row.lets_through, f"{row.percent:g} %", f"{row.reserve:,}")
    return table
