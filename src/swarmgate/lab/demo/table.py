"""The demo's result as a table and as JSON."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from swarmgate.lab.demo.figures import CLASSES, ArmFigures
from swarmgate.lab.demo.plan import WINDOW_MS, DemoPlan


def as_table(plan: DemoPlan, found: Sequence[ArmFigures]) -> Table:
    """One column an arm."""
    table = Table(title=f"{plan.agents:,} agents, {plan.keys} keys, the same trace in each arm; first window left out")
    table.add_column("")
    for arm in found:
        table.add_column(arm.name, justify="right")
    for label, cells in rows_of(found):
        table.add_row(label, *cells)
    return table


def rows_of(found: Sequence[ArmFigures]) -> list[tuple[str, list[str]]]:
    """What is shown of the arms, line by line."""
    rows = [
        ("wanted: model calls/s", [f"{one.wanted_qps:,.0f}" for one in found]),
        ("answered: model calls/s", [f"{one.answered_qps:,.0f}" for one in found]),
        ("answered: tokens/min", [f"{one.answered_tpm / 1e6:,.1f} M" for one in found]),
        ("goodput against compiled limits", [f"{one.compiled_share:.1%}" for one in found]),
        ("refusals of targets that agents saw", [f"{one.refused:,}" for one in found]),
        ("arrivals over a published limit", [f"{sum(one.over_limit.values()):,}" for one in found]),
        ("... at so many keys and hosts", [f"{len(one.over_limit):,}" for one in found]),
        ("calls given up", [f"{one.gave_up + one.failed:,}" for one in found]),
    ]
    for rank in CLASSES:
        waits = [one.waits.get(rank) for one in found]
        rows.append(
            (f"wait {rank}, P50 / P99", ["-" if w is None else f"{w.p50_ms:,} / {w.p99_ms:,} ms" for w in waits])
        )
    rows += [
        ("deferrals, share of sends", [f"{one.deferral_share:.1%}" for one in found]),
        ("connections reused at the provider", [f"{one.reuse:.1%}" for one in found]),
        ("pages fetched of hosts", [f"{one.fetched:,} of {one.hosts:,}" for one in found]),
    ]
    return rows


def as_json(plan: DemoPlan, found: Sequence[ArmFigures]) -> dict[str, Any]:
    """All of it, for scripts."""
    told = plan._asdict() | {
        "lengths": plan.lengths._asdict(),
        "window_ms": WINDOW_MS,
        "compiled_tpm": plan.tokens_compiled * plan.keys * 60_000 // WINDOW_MS,
        "offered_tpm": plan.offered_tokens * 60_000 // WINDOW_MS,
    }
    arms = [one._asdict() | {"waits": {rank: waits._asdict() for rank, waits in one.waits.items()}} for one in found]
    return {"plan": told, "arms": arms}
