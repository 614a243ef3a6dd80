"""
Prices of models: the operator's own first, then what `genai-prices` lists for the provider.

The list is large and loaded when the first price is looked up, not when this module is. It is kept by others; nothing
is fetched from the network here.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

from swarmgate.core.price import Price, Rate, Used, cost_micro

if TYPE_CHECKING:
    from decimal import Decimal

    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import TieredPrices

MOST_REMEMBERED = 4_096
_LISTED_AS = {"gemini": "google", "moonshot": "moonshotai"}  # our dialect -> their provider


class Listing(NamedTuple):
    """A model at a provider as the list has it; `context_tokens` None = not told."""

    provider: str
    model: str
    price: Price
    context_tokens: int | None
    deprecated: bool


class PriceBook:
    """Prices by provider and model; `own` are the operator's, by `target/model`, `model`, or the beginning of one and `*`, of which the longest counts."""

    def __init__(self, own: Mapping[str, Price] | None = None) -> None:
        self._own = own or {}
        self._known: dict[tuple[str, str, str], Price | None] = {}

    def replace(self, other: "PriceBook") -> None:
        """Go on with the operator's prices of another book."""
        self._own = other._own  # noqa: SLF001  of our own kind
        self._known.clear()

    def of(self, model: str, provider: str, target: str = "") -> Price | None:
        """The price of a model; None if nobody knows it. `provider` "" = by the model's name alone."""
        key = (model, provider, target)
        if key not in self._known:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[key] = self._look_up(*key)
        return self._known[key]

    def cost_micro(self, model: str, provider: str, used: Used, target: str = "") -> int | None:
        """What a call costs in millionths of a US dollar; None if that is not known."""
        return cost_micro(self.of(model, provider, target), used)

    def window(self, model: str, provider: str) -> int:
        """The context window of a model in tokens; 0 = not known, also while the list is not in memory."""
        found = listed(model, provider) if is_read() else None
        return (found.context_tokens or 0) if found is not None else 0

    def own(self, model: str, target: str = "") -> Price | None:
        """
        The operator's own price; the list is not read.

        A name outranks a beginning, what names the target outranks the model alone, and a longer beginning a shorter one.
        """
        full = f"{target}/{model}"
        beginnings = [
            key for key in self._own if key[-1:] == "*" and (full.startswith(key[:-1]) or model.startswith(key[:-1]))
        ]
        beginnings.sort(key=len, reverse=True)
        at_target = [key for key in beginnings if key.startswith(f"{target}/")]
        return next((self._own[key] for key in (full, *at_target, model, *beginnings) if key in self._own), None)

    def _look_up(self, model: str, provider: str, target: str) -> Price | None:
        own = self.own(model, target)
        found = listed(model, provider) if own is None else None
        return found.price if found else own


def cost_of(model: str, provider: str, used: Used) -> int | None:
    """What a call costs by the public list, in millionths of a US dollar; None if that is not known."""
    found = listed(model, provider)
    return cost_micro(found.price, used) if found else None


@lru_cache(maxsize=MOST_REMEMBERED)
def listed(model: str, provider: str = "") -> Listing | None:
    """What the public list says of a model; without a provider, of that provider to whom the name belongs."""
    try:
        found, info = _list().find_provider_model(model, None, _LISTED_AS.get(provider, provider) or None, None)
    except LookupError:
        return None
    told = info.get_prices(datetime.now(UTC))
    per_request = _rate(told.requests_kcount)  # dollars for a thousand requests
    price = Price(
        _rate(told.input_mtok),
        _rate(told.output_mtok),
        _rate(told.cache_read_mtok),
        _rate(told.cache_write_mtok),
        -(-per_request[0][1] // 1_000) if per_request else 0,
    )
    if not price.prompt and not price.output:
        return None
    return Listing(found.id, info.id, price, info.context_window, bool(info.deprecated))


def nearest(model: str, count: int = 3) -> list[str]:
    """Names in the list that are most like one that is not there."""
    names = {info.id for provider in _list().providers if provider.id != "openrouter" for info in provider.models}
    return get_close_matches(model.rpartition("/")[2].lower(), sorted(names), n=count)


@lru_cache(maxsize=1)
def capabilities() -> dict[str, list[str]]:
    """What models of well-known providers can do, by name; the file says where that comes from."""
    text = (resources.files("swarmgate.facts") / "capabilities.json").read_text(encoding="utf-8")
    models: dict[str, list[str]] = json.loads(text)["models"]
    return models


def is_read() -> bool:
    """Whether the public list is in memory: until then a price from it takes half a second."""
    return _list.cache_info().currsize > 0


@lru_cache(maxsize=1)
def _list() -> "DataSnapshot":
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415  only who asks pays for the list

    return get_snapshot()


def _rate(told: "Decimal | TieredPrices | None") -> Rate:
    """Dollars for so many tokens as micro-units, rounded up."""
    if told is None:
        return ()
    tiers = [(tier.start, tier.price) for tier in getattr(told, "tiers", ())]
    return tuple((start, -int(-usd * 1_000_000 // 1)) for start, usd in [(0, getattr(told, "base", told)), *tiers])
