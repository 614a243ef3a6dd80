"""
Which budgets one key takes from, and how: the one place where compiled limits become the demands of a route.

A bucket takes at once and keeps a place on the way until the request is delivered; a window's slot is busy until the
answer begins, a concurrency slot until it ends; tokens take the prompt at once and reserve the output, bytes do the same
with the request's body and the answer's (design 4: Level).
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from swarmgate.core.compiler import WAY, Compiled, Published, Unit, compile_limit
from swarmgate.core.limits import BadLimit, BudgetKind, Limits
from swarmgate.core.record import Route


class Budget(NamedTuple):
    """
    One limit of a target or of a key, as published and as compiled, under the name of its budget.

    `cost` is what one request takes of it where it counts requests or points.
    """

    name: str
    published: Published
    compiled: Compiled
    cost: int = 1

    @property
    def unit(self) -> Unit:
        """What it counts."""
        return self.published.unit

    def limits(self) -> list[tuple[str, Limits]]:
        """The budgets that a store must know for it: itself, and its places on the way."""
        way = self.compiled.way()
        own = [(self.name, self.compiled.limits)]
        return own if way is None else [*own, (self.name + WAY, way)]


def budget(name: str, published: Published, kind: BudgetKind | None = None) -> Budget:
    """The budget that keeps a published limit, of that kind if one is in use. Errors: `BadLimit` if none can."""
    try:
        return Budget(name, published, compile_limit(published, kind))
    except BadLimit as bad:
        raise BadLimit(name, bad.value, bad.reason) from None


def route(key: str, budgets: Iterable[Budget]) -> Route:
    """The route of a key through these budgets."""
    parts: dict[str, list[Any]] = {name: [] for name in _PARTS}
    fresh_ms = Route._field_defaults["fresh_ms"]
    for one in budgets:
        fresh_ms = min(fresh_ms, one.compiled.fresh_ms)
        way = one.name + WAY if one.compiled.way() is not None else ""
        for part, what in _share(one, way):
            parts[part].append(what)
    return Route(key, fresh_ms=fresh_ms, **{name: tuple(found) for name, found in parts.items()})


_PARTS: Final = tuple(name for name in Route._fields if name not in {"key", "fresh_ms"})
_BY_SIZE: Final = {  # what a call takes of it depends on its size, which is known in part at admission, in full at the end
    Unit.TOKENS: "metered",
    Unit.BYTES: "metered",
    Unit.INPUT_TOKENS: "inputs",
    Unit.OUTPUT_TOKENS: "outputs",
    Unit.MICRO: "money",
}


def _share(one: Budget, way: str) -> Iterator[tuple[str, Any]]:
    """The parts of a route in which a budget stands, and its places on the way, if it has them."""
    if way:
        yield "ways", way
    if one.unit in _BY_SIZE:
        yield _BY_SIZE[one.unit], one.name
        if way:
            yield "weighed", way
    elif one.compiled.limits.kind is BudgetKind.LEASES:
        yield "fixed", (one.name, 0, 1)
        yield ("whole" if one.unit is Unit.CONCURRENT else "first_byte"), one.name
    else:
        yield "fixed", (one.name, one.cost, 0)
        if way:
            yield "fixed", (way, 0, one.cost)
