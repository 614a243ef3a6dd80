"""
How a call was served, in the fields that its answer carries (design 5: Out).

What does not change from call to call is made once per key. `RateLimit` and `RateLimit-Policy` follow
draft-ietf-httpapi-ratelimit-headers; they tell of our budget, never of the target's own counters.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from swarmgate.core.book import BudgetCell
from swarmgate.core.compiler import WAY, Published, Unit
from swarmgate.core.denial import remaining
from swarmgate.core.record import Call, Route
from swarmgate.http1.head import Header, ResponseHead
from swarmgate.http1.render import REPLACED, passed_on

# What an answer says of the key's account, or of repeating, which is the gate's business.
_KEPT_HERE = frozenset(
    {
        b"set-cookie",
        b"x-request-id",
        b"retry-after",
        b"retry-after-ms",
        b"x-should-retry",
        b"proxy-status",
        b"alt-svc",
        b"via",
        *REPLACED,
    }
)
_RATES = (b"x-ratelimit-", b"ratelimit", b"anthropic-ratelimit-", b"x-swarmgate-")
_UNITS = {Unit.REQUESTS: "", Unit.CONCURRENT: ';qu="concurrent-requests"', Unit.BYTES: ';qu="content-bytes"'}


class _Key(NamedTuple):
    """What is always said of one key at one target."""

    headers: tuple[Header, ...]
    budget: str  # whose state is told; empty if none is published
    item: bytes


class ServedFields:
    """Makes the fields; `published` has limits by budget, `cell_of` the live state of a budget where it is near."""

    def __init__(
        self, published: Mapping[str, Published], cell_of: Callable[[str], BudgetCell | None] = lambda _name: None
    ) -> None:
        self.published = published
        self._cell_of = cell_of
        self._keys: dict[tuple[str, str], _Key] = {}

    def of(self, call: Call) -> list[Header]:
        """What is known of a call when its answer begins."""
        rung, route = call.rungs[call.rung], call.route
        headers: list[Header] = [
            (b"x-request-id", call.id.encode()),
            (b"x-swarmgate-attempts", b"%d" % call.attempt),
            (b"x-swarmgate-rung", b"%d" % call.rung),
            (b"x-swarmgate-queue-ms", b"%d" % (call.sent_ms - call.arrived_ms)),
        ]
        if model := rung.model or call.model:  # nobody reads which one a file or a batch is for
            headers.append((b"x-swarmgate-model", _said(model)))
        if route is None:
            return headers
        key = self._keys.get((rung.target, route.key))
        if key is None:
            key = self._keys[rung.target, route.key] = self._key(rung.routes.get(route.key, route))
        headers += key.headers
        cell = self._cell_of(key.budget)
        if cell is not None:
            headers.append((b"x-swarmgate-limit-revision", b"%d" % cell.limits.revision))
            left, until_ms = remaining(cell, call.rank), cell.level // cell.drain if cell.drain else 0
            headers.append((b"ratelimit", b"%b;r=%d;t=%d" % (key.item, left, -(-until_ms // 1_000))))
        return headers

    def forget(self) -> None:
        """What was made once is made again: a published limit changed."""
        self._keys.clear()

    def policies(self, budgets: Iterable[str]) -> list[bytes]:
        """The items of `RateLimit-Policy` for those budgets that keep a published limit."""
        return [policy(name, self.published[name]) for name in budgets if name in self.published]

    def _key(self, route: Route) -> _Key:
        headers: list[Header] = [(b"x-swarmgate-key-id", route.key.encode())]
        names = [name for name, _, _ in route.demands(0, 0) if name in self.published]
        name = min(names, key=lambda one: _narrowness(self.published[one]), default="")
        if name:
            headers.append((b"ratelimit-policy", policy(name, self.published[name])))
        return _Key(tuple(headers), name, _quoted(name))


def shown_headers(head: ResponseHead) -> list[Header]:
    """The fields of a model target's answer that a caller may see."""
    fields = passed_on(head) if b"connection" in head.fields else head.headers
    return [field for field in fields if field[0] not in _KEPT_HERE and not field[0].startswith(_RATES)]


def policy(name: str, published: Published) -> bytes:
    """One item: the limit as its owner states it."""
    unit = _UNITS.get(published.unit, f';qu="{published.unit}"')
    window = f";w={-(-published.window_ms // 1_000)}" if published.window_ms else ""
    return _quoted(name) + f";q={published.amount}{window}{unit}".encode()


def exhausted(name: str, wait_ms: int) -> bytes:
    """The item of `RateLimit` for a budget that is used up."""
    return b"%b;r=0;t=%d" % (_quoted(name), -(-wait_ms // 1_000))


def base_of(budget: str) -> str:
    """The budget whose places on the way this is, or itself."""
    return budget.removesuffix(WAY)


def _narrowness(published: Published) -> tuple[bool, float]:
    """Requests first, since a caller counts those; of them the one that allows least per time."""
    return published.unit is not Unit.REQUESTS, published.amount / max(1, published.window_ms)


def _said(model: str) -> bytes:
    """A model's name as a field's value: where no route renames it, it is what the caller wrote, in any characters."""
    return model.encode("ascii", "replace") if model.isprintable() else ascii(model).encode()


def _quoted(name: str) -> bytes:
    """A string of RFC 9651 3.3.3."""
    return b'"%b"' % name.encode("ascii", "replace").replace(b"\\", b"\\\\").replace(b'"', b'\\"')
