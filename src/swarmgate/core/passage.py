"""
What the passing of time does to a budget: draining, forgetting, expiry; and the two ways to fill it.

Part of the kernel (its twin: stores/valkey/passage.lua). An expired reservation is charged at its own instant: charged
earlier it would drain for time that had passed before it (over-admission), charged later it would not drain at all.
"""

from typing import Final

from swarmgate.core.book import BudgetCell, Lease
from swarmgate.core.limits import EXACT, BudgetKind

EXPIRE_AT_MOST: Final = 100


def touch(cell: BudgetCell, now_ms: int) -> None:
    """Bring a budget to `now_ms`: charge or free what expired, each at its own instant; forget what drained."""
    if cell.due_ms <= now_ms:
        expire(cell, now_ms)
    if cell.drain:
        level = cell.level - cell.drain * (now_ms - cell.at_ms)
        cell.level = level if level > 0 else 0
    elif cell.slices:
        _forget(cell, cell.slices, now_ms)
    cell.at_ms = now_ms


def _forget(cell: BudgetCell, slices: dict[int, int], now_ms: int) -> None:
    """Drop a counter's slices that are over, the oldest first: they stand in the order in which they were begun."""
    while slices:
        oldest = next(iter(slices))
        cell.forget_ms = cell.anchor_ms + oldest * cell.slice_ms + cell.keep_ms
        if cell.forget_ms > now_ms:
            return
        units = slices.pop(oldest)
        cell.level -= units
        cell.dropped += units


def expire(cell: BudgetCell, now_ms: int) -> None:
    """
    End at most 100 overdue leases: what was reserved counts as used, a slot is free (design 4: Level).

    A slot whose owner fell silent was used all the same: its hold begins where its lease ended.
    """
    ended = sorted((lease.expires_ms, key) for key, lease in cell.leases.items() if lease.expires_ms <= now_ms)
    cell.due_ms = EXACT
    for expires_ms, key in ended[:EXPIRE_AT_MOST]:
        at_ms = max(cell.at_ms, expires_ms)
        touch(cell, at_ms)
        held = cell.leases[key]
        free_ms = expires_ms if held.firm else expires_ms + cell.limits.hold_ms
        if free_ms > now_ms:
            held.firm, held.expires_ms = True, free_ms
            continue
        amount = cell.leases.pop(key).amount
        cell.pending -= amount
        if cell.limits.kind is not BudgetKind.LEASES:
            charge(cell, amount, at_ms)
    cell.due_ms = min((lease.expires_ms for lease in cell.leases.values()), default=EXACT)


def charge(cell: BudgetCell, units: int, now_ms: int) -> None:
    """Count units as used, now; a debt never grows past what is exact."""
    added = units * cell.scale
    if added >= EXACT - cell.level:
        added = EXACT - 1 - cell.level
    cell.level += added
    if cell.slices is not None:
        count(cell, added, now_ms)  # a counter's scale is 1


def count(cell: BudgetCell, units: int, now_ms: int) -> None:
    """Note in a counter's slice what its level already holds."""
    slices = cell.slices
    if slices is not None:
        index = (now_ms - cell.anchor_ms) // cell.slice_ms
        if not slices:
            cell.forget_ms = cell.anchor_ms + index * cell.slice_ms + cell.keep_ms
        slices[index] = slices.get(index, 0) + units


def hold(cell: BudgetCell, key: str, units: int, expires_ms: int) -> None:
    """Reserve units under `key`, on top of what it holds: who asks again after a lost answer must not leak the first."""
    held = cell.leases.get(key)
    lease = cell.leases[key] = Lease()
    lease.amount = units + held.amount if held else units
    lease.expires_ms = expires_ms
    lease.firm = False
    cell.pending += units
    if expires_ms < cell.due_ms:
        cell.due_ms = expires_ms


def end_hold(cell: BudgetCell, key: str, now_ms: int) -> None:
    """A slot stays busy for its hold, at a known end; without one it is free."""
    held = cell.leases.get(key)
    if held is None or held.firm:
        return
    if cell.limits.hold_ms:
        held.firm = True
        held.expires_ms = now_ms + cell.limits.hold_ms
        cell.due_ms = min(cell.due_ms, held.expires_ms)
    else:
        cell.pending -= held.amount
        del cell.leases[key]
