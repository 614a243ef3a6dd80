"""`swarmgate plan-capacity`: keys, connections and money for a swarm, from numbers or from a trace."""

import json
import sys
from collections.abc import Iterator
from typing import Annotated, NamedTuple

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from swarmgate.cli.exits import Exit
from swarmgate.core.pool_size import MOST, SPARE_PERCENT
from swarmgate.core.price import MILLION
from swarmgate.facts.prices import Listing, listed, nearest
from swarmgate.lab.capacity import MINUTES, Capacity, Key, capacity, scaled, steady
from swarmgate.lab.errors import LabError

EXAMPLE = "Example: swarmgate plan-capacity --agents 2000 --context 32000"
Row = tuple[str, str, str]


class Asked(NamedTuple):
    """What the user told, as it is told back beside each result."""

    agents: int
    rate: float
    context: int
    output: int
    trace: str
    response_s: float
    key: Key


def plan_capacity(  # noqa: PLR0913, PLR0917  one option each
    agents: Annotated[int, typer.Option(min=1, max=10_000_000, help="How many agents.")] = 2_000,
    rate: Annotated[float, typer.Option(help="Calls a minute of each agent.")] = 3.0,
    context: Annotated[int, typer.Option(min=0, help="Tokens of a prompt, where no trace is given.")] = 8_000,
    output: Annotated[int, typer.Option(min=0, help="Tokens of an answer, where no trace is given.")] = 0,
    trace: Annotated[str, typer.Option(help="The mix, a shipped trace's name, or a file, instead of one size.")] = "",
    response_s: Annotated[float, typer.Option(min=0.001, max=3_600, help="Mean seconds of an answer.")] = 2.0,
    key_rpm: Annotated[int, typer.Option(min=0, help="Calls a minute that one key allows; 0 = no limit.")] = 0,
    key_tpm: Annotated[int, typer.Option(min=0, help="Tokens a minute that one key allows; 0 = no limit.")] = 4_000_000,
    headroom: Annotated[int, typer.Option(min=1, max=100, help="Percentage of a limit that is used.")] = 80,
    model: Annotated[str, typer.Option(help="Whose price is taken; without it no cost is told.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """How many keys and connections a swarm needs, what it costs, and what tiers save against sizing by peak."""
    asked = Asked(agents, rate, context, output, trace, response_s, Key(key_rpm, key_tpm, headroom))
    response_ms = round(response_s * 1_000)
    try:
        load, warning = (
            scaled(trace, agents, rate, response_ms) if trace else (steady(agents, rate, context, output), "")
        )
        price = _priced(model)
        needed = capacity(load, asked.key, response_ms, price.price if price else None)
    except (LabError, OSError) as error:
        print(error, file=sys.stderr)
        raise typer.Exit(Exit.USAGE) from None
    if as_json:
        print(json.dumps({**needed._asdict(), "saved_percent": needed.saved_percent, "warning": warning}))
        return
    Console().print(_table(asked, needed, price))
    if warning:
        print(warning)


def _priced(model: str) -> Listing | None:
    if not model:
        return None
    found = listed(model)
    if found is None:
        raise LabError("model", f"no price is known for {model!r}; nearest: {', '.join(nearest(model))}")
    return found


def _table(asked: Asked, needed: Capacity, price: Listing | None) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=f"Capacity for {asked.agents:,} agents", title_justify="left")
    table.add_column("")
    table.add_column("", justify="right")
    table.add_column("how it comes about")
    for row in (
        *(_of_trace(asked, needed) if asked.trace else _of_numbers(asked, needed)),
        *_rest(asked, needed, price),
    ):
        table.add_row(*row)
    return table


def _of_numbers(asked: Asked, needed: Capacity) -> Iterator[Row]:
    tokens = f"{asked.context:,}" if not asked.output else f"({asked.context:,} + {asked.output:,})"
    yield "calls a second", f"{needed.calls_per_s:,.1f}", f"{asked.agents:,} agents x {asked.rate:g} a minute / 60"
    yield "tokens a minute", f"{needed.peak_tokens:,}", f"{needed.peak_calls:,} calls x {tokens} tokens"
    yield "keys", f"{needed.keys:,}", _each(asked.key)


def _of_trace(asked: Asked, needed: Capacity) -> Iterator[Row]:
    saved = f"saves {needed.saved_percent} % of the keys for the peak"
    yield (
        "calls a second, mean",
        f"{needed.mean_calls_per_s:,.1f}",
        f"{asked.agents:,} agents x {asked.rate:g} a minute",
    )
    yield "calls a second, peak", f"{needed.calls_per_s:,.1f}", f"busiest of {MINUTES} parts of {asked.trace}"
    yield "tokens a minute, mean", f"{needed.mean_tokens:,}", ""
    yield "tokens a minute, peak", f"{needed.peak_tokens:,}", "all classes together"
    yield "tokens a minute, tiers", f"{needed.tiered_tokens:,}", "P0 and P1 at their peak, P2 in what is left"
    yield "keys, sized by peak", f"{needed.keys_by_peak:,}", _each(asked.key)
    yield "keys, sized by mean", f"{needed.keys_by_mean:,}", "fails at the peak"
    yield "keys, in tiers", f"{needed.keys:,}", saved


def _rest(asked: Asked, needed: Capacity, price: Listing | None) -> Iterator[Row]:
    how = f"{needed.calls_per_s:,.1f}/s x {asked.response_s:g} s x {SPARE_PERCENT / 100:g}"
    yield "connections", f"{needed.pool:,}", f"the most that one target gets; {how}" if needed.pool == MOST else how
    if price is not None:
        cost = needed.cost_micro_per_hour
        told = "not known" if cost is None else f"{cost / MILLION:,.2f} USD"
        yield "cost an hour", told, f"{price.model}, nothing from a cache"


def _each(key: Key) -> str:
    limits = [f"{amount:,} {unit}" for amount, unit in ((key.tokens, "tokens"), (key.calls, "calls")) if amount]
    return f"each {' and '.join(limits)} a minute, {key.headroom_percent} % used" if limits else "no limit was given"
