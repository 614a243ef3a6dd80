"""Where a price is wanted and nobody can know it: caps in money refuse such calls, and costs are told as unknown."""

from swarmgate.config import ANY_MODEL, Config, Deployment
from swarmgate.facts.prices import PriceBook
from swarmgate.providers.tables import GENERIC
from swarmgate.wiring import unpriced_models
from swarmgate.wiring.caps import counts_money
from swarmgate.wiring.models import dialect_at


def unpriced(config: Config) -> dict[str, str]:
    """Deployments whose price nobody knows, where a cap in money asks for it, each with a sentence."""
    why = "where a cap in money holds it is refused, until [prices] tells one"
    return {name: f"no price is known for {name}; {why}" for name in unpriced_models(config)}


def unpriced_targets(config: Config) -> dict[str, str]:
    """Targets that serve models whose price no list and no table can know, where money is capped, each with a sentence."""
    if not counts_money(config):
        return {}
    return {
        name: f"{name}: {why}, so a cap in money refuses its calls; {mend}"
        for name, (why, mend) in _without_prices(config).items()
    }


def uncounted_costs(config: Config) -> dict[str, str]:
    """The same where no money is capped: what their calls cost is never known."""
    if counts_money(config):
        return {}
    return {
        name: f"{name}: {why}, so the cost of its calls is told as unknown; {mend}"
        for name, (why, mend) in _without_prices(config).items()
    }


def _without_prices(config: Config) -> dict[str, tuple[str, str]]:
    """Targets without a list of prices at which a route serves models that [prices] does not name, with why and what to write."""
    routes = config.routes or {ANY_MODEL: tuple(Deployment(name, ANY_MODEL) for name in config.targets)}
    book = PriceBook({name: table.price for name, table in config.prices.items()})
    wanting = {
        rung.target
        for alias, ladder in routes.items()
        for rung in ladder
        if rung.model == ANY_MODEL and not _prices_all(book, rung.target, alias)
    }
    found = {}
    for name, target in config.targets.items():
        if name in wanting and dialect_at(target) is GENERIC:
            own = f'[prices."{name}/MODEL"]'
            found[name] = (
                ('nobody lists prices of "generic"', f"write {own}, or a provider that has some")
                if target.provider
                else (f"nobody knows whose prices hold at {target.base_url.host}", f'write provider = "..." or {own}')
            )
    return found


def _prices_all(book: PriceBook, target: str, alias: str) -> bool:
    """Whether the operator's own prices have every model that a route of that name can serve at a target."""
    return (
        book.own(alias, target) is not None
    )  # of `claude-*` as of a model that is called so: by beginnings that hold for all
