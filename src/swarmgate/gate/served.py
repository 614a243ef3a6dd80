"""
How a call was served, in the fields that its answer carries (design 5: Out).

What does not change from call to call is made once per key. `RateLimit` and `RateLimit-Policy` follow
draft-ietf-httpapi-ratelimit-headers; they tell of our budget, never of the target's own counters.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from swarmgate.core.book import BudgetCell
from swarmgate.core.compiler import WAY, Published, Unit
from swarmgate.core.denial import remaining
from swarmgate.core.record import Call, Route
from swarmgate.http1.head import Header, ResponseHead
from swarmgate.http1.head_memo import LONGEST_KEPT
from swarmgate.http1.render import HARMLESS_WISHES, REPLACED, header_lines, passed_on

# What an answer says of the key's account, or of repeating, which is the gate's business.
_KEPT_HERE: Final = frozenset(
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
_RATES: Final = (b"x-ratelimit-", b"ratelimit", b"anthropic-ratelimit-", b"x-swarmgate-")
CLIENT_ID: Final = b"x-swarmgate-client-request-id"  # the name that the caller gave its call
_END: Final = b"\r\n"
# Values in these are ours, or made so that none begins a line.
_CALL: Final = b"x-request-id: %b\r\nx-swarmgate-attempts: %d\r\nx-swarmgate-rung: %d\r\nx-swarmgate-queue-ms: %d\r\n"
_OWN: Final = CLIENT_ID + b": %b\r\n"
_BUDGET: Final = b"%bx-swarmgate-limit-revision: %d\r\nratelimit: %b;r=%d;t=%d\r\n"
_NO_TIME: Final = b"%bx-swarmgate-limit-revision: %d\r\nratelimit: %b;r=%d\r\n"
UNKNOWN: Final = -1
_UNITS: Final = {Unit.REQUESTS: "", Unit.CONCURRENT: ';qu="concurrent-requests"', Unit.BYTES: ';qu="content-bytes"'}


class _Key(NamedTuple):
    """What is always said of one key at one target, as lines."""

    lines: bytes
    budget: str  # whose state is told; empty if none is published
    item: bytes


class ServedFields:
    """Makes the fields; `published` has limits by budget, `cell_of` the live state of a budget where it is near."""

    def __init__(
        self, published: Mapping[str, Published], cell_of: Callable[[str], BudgetCell | None] = lambda _name: None
    ) -> None:
        self.published = published
        self.cell_of = cell_of
        self._keys: dict[tuple[str, str], _Key] = {}

    def lines(self, call: Call) -> bytes:
        """What is known of a call when its answer begins, as lines of a head."""
        rung, route = call.rungs[call.rung], call.route
        said = _CALL % (call.id.encode(), call.attempt, call.rung, call.queued_ms)
        if call.client_request_id:
            said += _OWN % call.client_request_id.encode()
        if model := rung.model or call.model:  # nobody reads which one a file or a batch is for
            said += _model_line(model)
        if route is None:
            return said
        name = (rung.target, route.key)
        key = self._keys.get(name)
        if key is None:
            key = self._keys[name] = self._key(rung.routes.get(route.key, route))
        always, budget, item = key
        cell = self.cell_of(budget)
        if cell is None:
            return said + always
        left, until_ms = remaining(cell, call.rank), cell.level // cell.drain if cell.drain else _more_ms(cell)
        if until_ms < 0:
            return said + _NO_TIME % (always, cell.limits.revision, item, left)
        return said + _BUDGET % (always, cell.limits.revision, item, left, -(-until_ms // 1_000))

    def of(self, call: Call) -> list[Header]:
        """The same as fields."""
        lines = self.lines(call).split(_END)[:-1]
        return [(name, value) for name, _, value in (line.partition(b": ") for line in lines)]

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
        return _Key(header_lines(headers), name, _quoted(name))


def own_id(call: Call) -> list[Header]:
    """The caller's own name for its call, if it has one."""
    return [(CLIENT_ID, call.client_request_id.encode())] if call.client_request_id else []


def shown_headers(head: ResponseHead) -> list[Header]:
    """The fields of a model target's answer that a caller may see."""
    fields = passed_on(head) if b"connection" in head.fields else head.headers
    return [field for field in fields if _is_shown(field[0])]


def shown_lines(head: ResponseHead) -> bytes:
    """The same as lines of a head; most lines of an answer came with the one before it, too."""
    if head.fields.get(b"connection") in HARMLESS_WISHES and len(head.raw) <= LONGEST_KEPT:
        return b"".join(map(_shown_line, head.headers))
    return header_lines(shown_headers(head))


@lru_cache(maxsize=512)
def _shown_line(field: Header) -> bytes:
    return b"%b: %b\r\n" % field if _is_shown(field[0]) else b""


@lru_cache(maxsize=256)
def _is_shown(name: bytes) -> bool:
    """Targets answer with the same few names each time."""
    return name not in _KEPT_HERE and not name.startswith(_RATES)


def policy(name: str, published: Published) -> bytes:
    """One item: the limit as its owner states it."""
    unit = _UNITS.get(published.unit, f';qu="{published.unit}"')
    window = f";w={-(-published.window_ms // 1_000)}" if published.window_ms else ""
    return _quoted(name) + f";q={published.amount}{window}{unit}".encode()


def exhausted(name: str, wait_ms: int) -> bytes:
    """The item of `RateLimit` for a budget that is used up; UNKNOWN = nobody knows until when."""
    return _quoted(name) + (b";r=0" if wait_ms < 0 else b";r=0;t=%d" % -(-wait_ms // 1_000))


def _more_ms(cell: BudgetCell) -> int:
    """
    When more comes back to a budget that does not drain: of a counter its oldest slice, of slots the next one.

    UNKNOWN where a call's end decides. Who is answered has its own slot held from now on, so no answer waits longer.
    """
    if cell.slices is not None:
        oldest = next(iter(cell.slices), None)
        return 0 if oldest is None else max(0, cell.anchor_ms + oldest * cell.slice_ms + cell.keep_ms - cell.at_ms)
    hold_ms = cell.limits.hold_ms
    if not hold_ms:
        return UNKNOWN
    held_ms = [lease.expires_ms - cell.at_ms for lease in cell.leases.values() if lease.firm]
    return max(0, min([hold_ms, *held_ms]))


def base_of(budget: str) -> str:
    """The budget whose places on the way this is, or itself."""
    return budget.removesuffix(WAY)


def _narrowness(published: Published) -> tuple[bool, float]:
    """Requests first, since a caller counts those; of them the one that allows least per time."""
    return published.unit is not Unit.REQUESTS, published.amount / max(1, published.window_ms)


@lru_cache(maxsize=256)
def _model_line(model: str) -> bytes:
    """A model's name as a field: where no route renames it, it is what the caller wrote, in any characters."""
    said = model.encode("ascii", "replace") if model.isprintable() else ascii(model).encode()
    return b"x-swarmgate-model: %b\r\n" % said


def _quoted(name: str) -> bytes:
    """A string of RFC 9651 3.3.3."""
    return b'"%b"' % name.encode("ascii", "replace").replace(b"\\", b"\\\\").replace(b'"', b'\\"')
