"""
Which price an attempt has: told by the data process at its start and at a reload, kept in the state folder, applied by the importer.

The file has the operator's own prices and whose dialect each target speaks; it holds no secret. Without it the public list is
asked by the model's name alone. A price that nobody knows stays unknown.
The data process imports this module: nothing here may load SQLAlchemy.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from swarmgate.core.errors import BadInput
from swarmgate.core.price import Price, Rate, Used
from swarmgate.facts.prices import PriceBook
from swarmgate.providers.tables import dialect_named

FILE: Final = "prices.json"

# (target, model, prompt tokens, output tokens, cached tokens, instant): millionths; None where no price is known.
Pricer = Callable[[str, str, int, int, int, int], int | None]


class Tariff(msgspec.Struct, frozen=True):
    """Own prices by `target/model` or `model`, and the provider of each target."""

    own: dict[str, Price] = {}
    providers: dict[str, str] = {}


class _Written(msgspec.Struct, frozen=True):
    """The same as it is read: each price as the tuple that it is, since a compiled one does not tell msgspec what it holds."""

    own: dict[str, tuple[Rate, Rate, Rate, Rate, int]] = {}
    providers: dict[str, str] = {}


def keep(folder: Path, own: Mapping[str, Price], providers: Mapping[str, str]) -> None:
    """Put it where the control process finds it. Errors: OSError."""
    fresh = folder / f"{FILE}.new"
    fresh.write_bytes(msgspec.json.encode(Tariff(dict(own), dict(providers))))
    fresh.chmod(0o600)
    fresh.replace(folder / FILE)


def kept(folder: Path) -> Tariff:
    """What was kept in a state folder; nothing before its first start. Errors: OSError, `BadInput` for another file."""
    try:
        found = msgspec.json.decode((folder / FILE).read_bytes(), type=_Written)
    except FileNotFoundError:
        return Tariff()
    except msgspec.DecodeError as error:
        raise BadInput(str(folder / FILE), f"cannot be read ({error}); the next start writes it anew") from None
    return Tariff({name: Price(*price) for name, price in found.own.items()}, found.providers)


def free_of_cache(folder: Path) -> set[str]:
    """The targets whose provider counts no cached prompts against its limits. Errors: as `kept`."""
    return {target for target, name in kept(folder).providers.items() if not dialect_named(name).charge.counts_cached}


def pricer(folder: Path) -> Pricer:
    """The prices of a state folder, looked at anew for the attempts of each second. Errors: as `kept`, also later."""
    tariff = kept(folder)
    book, seen_ns, second = PriceBook(tariff.own), _written_ns(folder), -1

    def price(target: str, model: str, prompt: int, output: int, cached: int, at_ms: int) -> int | None:
        nonlocal tariff, seen_ns, second
        if at_ms // 1_000 != second:
            second = at_ms // 1_000
            if (written_ns := _written_ns(folder)) != seen_ns:  # the gate has read its configuration again
                tariff, seen_ns = kept(folder), written_ns
                book.replace(PriceBook(tariff.own))
        return book.cost_micro(model, tariff.providers.get(target, ""), Used(prompt, output, cached), target)

    return price


def _written_ns(folder: Path) -> int:
    try:
        return (folder / FILE).stat().st_mtime_ns
    except FileNotFoundError:
        return 0
