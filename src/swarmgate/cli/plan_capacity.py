"""`swarmgate plan-capacity`: keys, connections and money for a swarm, from numbers or from a trace."""

import json
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from swarmgate.cli.exits import Exit
from swarmgate.core.price import MILLION
from swarmgate.facts.prices import Listing, listed, nearest
from swarmgate.lab.capacity import Capacity, Key, capacity, recorded, steady
from swarmgate.lab.errors import LabError
from swarmgate.lab.traces.mix import workload

EXAMPLE = "Example: swarmgate plan-capacity --agents 2000 --context 32000 --key-tpm 4000000 --model gpt-4o-mini"
MINUTES = 10


def plan_capacity(  # noqa: PLR0913, PLR0917  one option each
    agents: Annotated[int, typer.Option(min=1, help="How many agents.")] = 2_000,
    rate: Annotated[float, typer.Option(help="Calls a minute of each agent.")] = 3.0,
    context: Annotated[int, typer.Option(min=0, help="Tokens of a prompt, where no trace is given.")] = 8_000,
    output: Annotated[int, typer.Option(min=0, help="Tokens of an answer, where no trace is given.")] = 0,
    trace: Annotated[str, typer.Option(help="The mix, a shipped trace's name, or a file, instead of one size.")] = "",
    response_s: Annotated[float, typer.Option(min=0.001, help="Mean seconds of an answer.")] = 2.0,
    key_rpm: Annotated[int, typer.Option(min=0, help="Calls a minute that one key allows; 0 = no limit.")] = 0,
    key_tpm: Annotated[int, typer.Option(min=0, help="Tokens a minute that one key allows; 0 = no limit.")] = 4_000_000,
    headroom: Annotated[int, typer.Option(min=1, max=100, help="Percentage of a limit that is used.")] = 80,
    model: Annotated[str, typer.Option(help="Whose price is taken; without it no cost is told.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """How many keys and connections a swarm needs, what it costs, and what tiers save against sizing by peak."""
    response_ms = round(response_s * 1_000)
    try:
        if trace:
            found = workload(trace, agents=agents, calls_per_s=agents * rate / 60, seconds=MINUTES * 60.0)
            load, warning = recorded(found.players, MINUTES, response_ms), found.warning
        else:
            load, warning = steady(agents, rate, context, output), ""
        price = _priced(model)
        needed = capacity(load, Key(key_rpm, key_tpm, headroom), response_ms, price.price if price else None)
    except (LabError, OSError) as error:
        print(error, file=sys.stderr)
        raise typer.Exit(Exit.USAGE) from None
    if as_json:
        print(json.dumps({**needed._asdict(), "saved_percent": needed.saved_percent, "warning": warning}))
        return
    Console().print(_table(needed, price, is_trace=bool(trace)))
    if warning:
        print(warning)


def _priced(model: str) -> Listing | None:
    if not model:
        return None
    found = listed(model)
    if found is None:
        raise LabError("model", f"no price is known for {model!r}; nearest: {', '.join(nearest(model))}")
    return found


def _table(needed: Capacity, price: Listing | None, *, is_trace: bool) -> Table:
    table = Table("what", "how much", title="capacity", expand=False)
    table.add_row("calls a second, at the peak", f"{needed.calls_per_s:,.1f}")
    table.add_row("tokens a minute, at the peak", f"{needed.peak_tokens:,}")
    if is_trace:
        table.add_row("tokens a minute, mean", f"{needed.mean_tokens:,}")
        table.add_row("tokens a minute, in tiers", f"{needed.tiered_tokens:,}")
        table.add_row("keys, sized by the peak", f"{needed.keys_by_peak:,}")
        table.add_row("keys, sized by the mean (fails at the peak)", f"{needed.keys_by_mean:,}")
    table.add_row("keys" + (", in tiers: P2 takes what P0 and P1 leave" if is_trace else ""), f"{needed.keys:,}")
    if is_trace:
        table.add_row("saved by tiers", f"{needed.saved_percent} % of the keys")
    table.add_row("connections in the pool", f"{needed.pool:,}")
    cost = needed.cost_micro_per_hour
    if price is not None:
        told = "not known" if cost is None else f"{cost / MILLION:,.2f} USD"
        table.add_row(f"cost an hour with {price.model}", told)
    return table
