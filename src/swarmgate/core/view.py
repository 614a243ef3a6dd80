"""
What budgets show to whoever plans: read from the store's own records with the kernel's own arithmetic.

Nothing here changes a book. A cell is copied, the copy is brought to now and asked what a call would be told; so a
reader can neither drain, expire nor promise anything (design 5: Data port).
"""

from bisect import bisect_left
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from swarmgate.core.answers import BlockKind
from swarmgate.core.book import Book, BudgetCell, Lease
from swarmgate.core.denial import Obstacle, obstacle, remaining
from swarmgate.core.limits import CLASSES, EXACT
from swarmgate.core.line import CLASS_STEP, Line
from swarmgate.core.passage import touch

# who must wait for longer, or until a person acts, should hear of it (Crawlee's stall limit)
STALLED_MS: Final = 900_000
BEST: Final = 0
PerClass = tuple[int, int, int]


class BudgetState(StrEnum):
    """What a scheduler does with a target whose budget is so."""

    READY = "ready"  # a unit is free for the best class
    BACKOFF = "backoff"  # none is, and one will be
    STALLED = "stalled"  # none will be for long, or nobody knows when
    PAUSED = "paused"  # the operator said so


class RoomLeft(NamedTuple):
    """When `units` fit, per class: the instant or None if an event decides; and the instant by which they will."""

    units: int
    free_at_ms: tuple[int | None, int | None, int | None]
    certain_ms: PerClass


class BudgetView(NamedTuple):
    """One budget at `now_ms`; amounts in its unit per class, instants on the store's clock."""

    budget: str
    now_ms: int
    state: BudgetState
    revision: int
    remaining: PerClass
    room: RoomLeft
    backlog: PerClass


class KeyView(NamedTuple):
    """One key, or a host that needs none: its state, and from when it may be used (EXACT = when a person acts)."""

    state: BudgetState
    back_at_ms: int


def key_view(back_at_ms: int, now_ms: int) -> KeyView:
    """A key that is back at that instant."""
    if back_at_ms <= now_ms:
        return KeyView(BudgetState.READY, now_ms)
    stalled = back_at_ms >= now_ms + STALLED_MS
    return KeyView(BudgetState.STALLED if stalled else BudgetState.BACKOFF, back_at_ms)


def view(book: Book, name: str, now_ms: int, units: int = 1) -> BudgetView:
    """
    The budget as a call that needs `units` of it would find it. Errors: KeyError for one that is not defined.

    The backlog is that of its line, which interchangeable budgets share.
    """
    cell = book.cells[name]
    now_ms = max(now_ms, cell.at_ms)
    cell = copied(cell, now_ms) if cell.due_ms <= now_ms else _brought(_twin(cell), now_ms)
    room = _room(cell, units, now_ms)
    first = room if units == 1 else _room(cell, 1, now_ms)
    p0, p1, p2 = (remaining(cell, rank) for rank in range(CLASSES))
    return BudgetView(
        name,
        now_ms,
        _state(cell, first, now_ms),
        cell.limits.revision,
        (p0, p1, p2),
        room,
        backlog(cell.line),
    )


def copied(cell: BudgetCell, now_ms: int) -> BudgetCell:
    """A cell of its own, brought to now or to where the cell is if that is later; it shows the same line."""
    twin = _twin(cell)
    twin.leases = {}
    for key, lease in cell.leases.items():
        kept = twin.leases[key] = Lease()
        kept.amount, kept.expires_ms, kept.firm = lease.amount, lease.expires_ms, lease.firm
    return _brought(twin, now_ms)


def _twin(cell: BudgetCell) -> BudgetCell:
    """A cell that shows the leases of its original: nothing may end in it."""
    twin = BudgetCell(cell.name, cell.limits, cell.line, cell.at_ms)
    twin.level, twin.pending, twin.leases = cell.level, cell.pending, cell.leases
    twin.promised_ms, twin.due_ms = cell.promised_ms, cell.due_ms
    if cell.slices is not None:
        twin.slices = dict(cell.slices)
    return twin


def _brought(twin: BudgetCell, now_ms: int) -> BudgetCell:
    touch(twin, max(now_ms, twin.at_ms))
    return twin


def backlog(line: Line) -> PerClass:
    """How many tickets of each class stand in a line."""
    ends = [bisect_left(line.order, (rank * CLASS_STEP, "")) for rank in range(CLASSES + 1)]
    return (ends[1], ends[2] - ends[1], ends[3] - ends[2])


def at_rest(book: Book, seen: BudgetView) -> bool:
    """Whether a budget that was seen full and untouched is so still, so that it need not be looked at again."""
    cell = book.cells[seen.budget]
    return (
        cell.at_ms <= seen.now_ms
        and seen.remaining[BEST] * cell.scale == cell.caps[BEST]
        and seen.revision == cell.limits.revision
        and not cell.order
    )


def changed(before: Mapping[str, BudgetView], after: Mapping[str, BudgetView]) -> list[BudgetView]:
    """The views of `after` that tell something else than those of `before`: state, revision, remaining or backlog."""
    return [one for name, one in after.items() if name not in before or _told(before[name]) != _told(one)]


def _told(one: BudgetView) -> tuple[BudgetState, int, PerClass, PerClass]:
    return one.state, one.revision, one.remaining, one.backlog


def _room(cell: BudgetCell, units: int, now_ms: int) -> RoomLeft:
    p0, p1, p2 = (_fits(obstacle(cell, rank, (units, 0), now_ms), now_ms) for rank in range(CLASSES))
    return RoomLeft(units, (p0[0], p1[0], p2[0]), (p0[1], p1[1], p2[1]))


def _fits(found: Obstacle | None, now_ms: int) -> tuple[int | None, int]:
    if found is None:
        return now_ms, now_ms
    return (found.at_ms if found.kind is BlockKind.TIME else None), found.certain_ms


def _state(cell: BudgetCell, one: RoomLeft, now_ms: int) -> BudgetState:
    if cell.limits.paused:
        return BudgetState.PAUSED
    free_at_ms, certain_ms = one.free_at_ms[BEST], one.certain_ms[BEST]
    if free_at_ms == now_ms:
        return BudgetState.READY
    is_known = certain_ms < min(EXACT, now_ms + STALLED_MS) or cell.due_ms <= now_ms  # the next steps end the rest
    return BudgetState.BACKOFF if is_known else BudgetState.STALLED
