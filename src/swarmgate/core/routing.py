"""
Which budgets one key takes from, and how: the one place where compiled limits become the demands of a route.

A bucket takes at once and keeps a place on the way until the request is delivered; a window's slot is busy until the
answer begins, a concurrency slot until it ends; tokens take the prompt at once and reserve the output, bytes do the same
with the request's body and the answer's (design 4: Level).
"""

from collections.abc import Iterable
from typing import NamedTuple

from swarmgate.core.book import Demand
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
    fixed: list[Demand] = []
    metered: list[str] = []  # known in part at admission, in full at the end
    first_byte: list[str] = []
    whole: list[str] = []
    ways: list[str] = []
    weighed: list[str] = []
    money: list[str] = []
    inputs: list[str] = []
    outputs: list[str] = []
    sized = {
        Unit.TOKENS: metered,
        Unit.BYTES: metered,
        Unit.INPUT_TOKENS: inputs,
        Unit.OUTPUT_TOKENS: outputs,
        Unit.MICRO: money,
    }
    fresh_ms = Route._field_defaults["fresh_ms"]
    for name, published, compiled, cost in budgets:
        fresh_ms = min(fresh_ms, compiled.fresh_ms)
        has_way = compiled.way() is not None
        if has_way:
            ways.append(name + WAY)
        if published.unit in sized:
            sized[published.unit].append(name)
            weighed += ways[-1:] if has_way else []
        elif compiled.limits.kind is BudgetKind.LEASES:
            fixed.append((name, 0, 1))
            (whole if published.unit is Unit.CONCURRENT else first_byte).append(name)
        else:
            fixed.append((name, cost, 0))
            fixed += [(name + WAY, 0, cost)] if has_way else []
    return Route(
        key,
        tuple(fixed),
        tuple(metered),
        tuple(first_byte),
        tuple(whole),
        tuple(ways),
        tuple(weighed),
        fresh_ms,
        tuple(money),
        tuple(inputs),
        tuple(outputs),
    )
