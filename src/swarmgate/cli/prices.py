"""`swarmgate prices`: models side by side: what they cost, how much they read, what they can do."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console

from swarmgate.cli import configured
from swarmgate.cli.exits import Exit
from swarmgate.cli.listing import Listing
from swarmgate.config import Config, NoKeys, Target
from swarmgate.core.price import Price, Rate, Used, cost_micro
from swarmgate.facts import prices as price_list
from swarmgate.wiring.models import dialect_at

EXAMPLE = "Example: swarmgate prices gpt-4o-mini groq/llama-3.3-70b-versatile"
_USUAL = Used(prompt=8_000, output=500)  # tokens of the call that the last column prices
_SHORT = {"function_calling": "tools", "parallel_tool_calls": "parallel tools", "structured_output": "JSON schema"}


class Candidate(NamedTuple):
    """One model as it was asked for; `price` None = nobody knows it, then `nearest` are names that are like it."""

    asked: str
    provider: str
    model: str
    price: Price | None
    context_tokens: int | None
    can: list[str]
    nearest: list[str]

    def as_json(self) -> dict[str, object]:
        """Micro-dollars per million tokens; None = not known, never 0."""
        price = self.price
        return {
            "asked": self.asked,
            "provider": self.provider or None,
            "model": self.model,
            "input_micro": _json_rate(price.prompt if price else ()),
            "output_micro": _json_rate(price.output if price else ()),
            "cached_micro": _json_rate(price.cached if price else ()),
            "cache_written_micro": _json_rate(price.cache_written if price else ()),
            "usual_call_micro": cost_micro(price, _USUAL),
            "context_tokens": self.context_tokens,
            "capabilities": self.can,
            "nearest": self.nearest,
        }


def prices(
    models: Annotated[
        list[str], typer.Argument(help="MODEL, PROVIDER/MODEL, or TARGET/MODEL with --config.", metavar="MODEL")
    ],
    config: Annotated[
        Path | None, typer.Option(help="TOML file whose \\[prices] and windows outrank the public list.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Compare models by price, context window and capability."""
    told = Config() if config is None else configured.read(config, NoKeys())
    book = price_list.PriceBook({name: table.price for name, table in told.prices.items()})
    rows = [candidate(model, book, told.targets) for model in models if model.strip()]
    if not rows:
        print(f"no model is named. {EXAMPLE}", file=sys.stderr)
        raise typer.Exit(Exit.USAGE)
    if as_json:
        print(json.dumps([row.as_json() for row in rows], indent=2))
    else:
        Console().print(_table(rows))
        for row in rows:
            if row.price is None:
                near = f"; nearest: {', '.join(row.nearest)}" if row.nearest else ""
                print(f"{row.asked}: no price is known{near}", file=sys.stderr)
    if any(row.price is None for row in rows):
        raise typer.Exit(Exit.FAILED)


def candidate(asked: str, book: price_list.PriceBook, targets: Mapping[str, Target]) -> Candidate:
    """What is known of a model that was asked for: with its provider or the operator's target, or by its name alone."""
    provider, slash, model = asked.partition("/")
    if slash and (target := targets.get(provider)) is not None:
        return _at(target, provider, model, asked, book)
    listing = price_list.listed(model, provider) if slash else None
    if listing is None:
        provider, model = "", asked
        listing = price_list.listed(asked)
    price = book.of(model, provider) or book.of(asked, "")
    can = price_list.capabilities().get(listing.model if listing else model, [])
    return Candidate(
        asked,
        listing.provider if listing else "",
        listing.model if listing else model,
        price,
        listing.context_tokens if listing else None,
        can,
        [] if price else price_list.nearest(asked),
    )


def _at(target: Target, name: str, model: str, asked: str, book: price_list.PriceBook) -> Candidate:
    """The same of a model at one of the operator's targets, whose word on prices and windows comes first."""
    provider = dialect_at(target).name
    listing, price = price_list.listed(model, provider), book.of(model, provider, name)
    window = target.window(model) or (listing.context_tokens if listing else None)
    can = price_list.capabilities().get(listing.model, []) if listing else []
    return Candidate(asked, name, model, price, window, can, [] if price else price_list.nearest(model))


def _table(rows: list[Candidate]) -> Listing:
    title = f"US dollars per million tokens; a usual call has {_USUAL.prompt:,} tokens of prompt and {_USUAL.output:,} of output"
    table = Listing("Model", "Provider", "Input", "Cached", "Output", "A usual call", "Context", "Can", title=title)
    for row in rows:
        price = row.price
        usual = cost_micro(price, _USUAL)
        table.add_row(
            row.model,
            row.provider or "?",
            _dollars(price.prompt if price else ()),
            _dollars(price.cached if price else ()),
            _dollars(price.output if price else ()),
            "unknown" if usual is None else f"{usual / 1e6:.6f}".rstrip("0").rstrip("."),
            f"{row.context_tokens:,}" if row.context_tokens else "?",
            ", ".join(_SHORT.get(one, one.replace("_", " ")) for one in row.can) or "?",
        )
    return table


def _dollars(rate: Rate) -> str:
    """`1.25, 2.5 above 200,000`."""
    if not rate:
        return "unknown"
    return ", ".join(f"{micro / 1e6:g}" + (f" above {start:,}" if start else "") for start, micro in rate)


def _json_rate(rate: Rate) -> object:
    if not rate:
        return None
    return rate[0][1] if len(rate) == 1 else [{"above_tokens": start, "micro": micro} for start, micro in rate]
