"""
The only arithmetic that exists twice: take, settle, release, renew, revise (its twin: stores/valkey/kernel.lua).

Here may live what a store must decide by itself, in integers, in one step: time, expiry, draining, lines, the test of
all budgets, the commit. Choice of keys, compiling of limits, hints and learning are elsewhere. A budget admits iff
`level + (pending + need) * scale <= cap of the class`; nothing is ever refunded into the level (design 4: Level).
"""

from typing import Final

from swarmgate.core.answers import Denied, Granted, Revised
from swarmgate.core.book import LEASE_MS, Book, BudgetCell, Lease, Take, Used
from swarmgate.core.denial import deny
from swarmgate.core.errors import BadInput
from swarmgate.core.limits import EXACT, BudgetKind, Limits
from swarmgate.core.line import holds_back, leave
from swarmgate.core.passage import charge, count, end_hold, hold, touch

CLOCK_STEP_MS: Final = 1_000
_new: Final = tuple.__new__  # every admission makes one: without the Python code of a named tuple's constructor
# a member of an enumeration takes 0.1 us to look up, and a settlement asks for each budget
_LEASES: Final = BudgetKind.LEASES
COLD: Final = "cold"  # the hold of a store that cannot know who still holds


def advance(book: Book, raw_ms: int) -> int:
    """
    The instant to decide at: never earlier than the last one.

    A clock that stepped back by more than a second is re-anchored without credit, so that nothing stalls
    (reliability RB-10, ST-13); a smaller regression simply waits.
    """
    now_ms = raw_ms + book.offset_ms
    if now_ms < book.now_ms:
        if book.now_ms - now_ms > CLOCK_STEP_MS:
            book.offset_ms += book.now_ms - now_ms
            book.clock_steps += 1
        return book.now_ms
    book.now_ms = now_ms
    return now_ms


def define(book: Book, name: str, limits: Limits) -> bool:
    """
    Give a budget its limits; False if it exists, and then a newer revision takes an older one's place.

    It starts as cold as the store's birth demands: a bucket that may have been forgotten holds what could have been
    used since, and holds are awaited (design 4: Cold start). A copy of a store may have missed the last revision.
    """
    known = book.cells.get(name)
    if known is not None:
        if limits.revision > known.limits.revision:
            revise(book, name, known.limits.revision, limits, book.now_ms - book.offset_ms)
        return False
    cell = BudgetCell(name, limits, book.line(limits.line or name), book.now_ms)
    book.cells[name] = cell
    if cell.slices is not None:
        book.counters.add(name)
    chill(cell, book.birth_ms)
    return True


def chill(cell: BudgetCell, birth_ms: int) -> None:
    """A budget that may have been forgotten since the birth holds what could have been used, and holds are awaited."""
    limits, since_ms = cell.limits, cell.at_ms - birth_ms
    if limits.kind is BudgetKind.LEVEL:
        cell.level = max(cell.level, limits.burst * limits.scale - limits.drain * since_ms)
    elif limits.kind is BudgetKind.LEASES and limits.lease_ms > since_ms and limits.burst:
        hold(cell, COLD, limits.burst, birth_ms + limits.lease_ms)
        cell.leases[COLD].firm = True


def take(book: Book, request: Take, raw_ms: int) -> Granted | Denied:
    """
    Take one alternative whole, the first that fits, or change nothing but the caller's place in line.

    Errors: KeyError names a budget that is not defined, `BadInput` a demand below zero; nothing was taken.
    """
    now_ms = raw_ms + book.offset_ms
    if now_ms >= book.now_ms:  # the usual case of `advance`, without the call
        book.now_ms = now_ms
    else:
        now_ms = advance(book, raw_ms)
    cells = book.cells
    rank = request.rank
    for index, demands in enumerate(request.alternatives):
        for name, cost, reserve in demands:
            cell = cells[name]
            if now_ms != cell.at_ms:
                if cell.due_ms <= now_ms or (cell.slices and cell.forget_ms <= now_ms):
                    touch(cell, now_ms)
                elif cell.level and cell.drain:  # as `touch` does where nothing ends
                    level = cell.level - cell.drain * (now_ms - cell.at_ms)
                    cell.level = level if level > 0 else 0
                cell.at_ms = now_ms
            if cost | reserve < 0:  # one look at both signs
                raise BadInput("demands", f"{cost} and {reserve} units of {name}: nothing can be taken backwards")
            if cell.level + (cell.pending + cost + reserve) * cell.scale > cell.caps[rank]:
                break
            if cell.order and holds_back(cell, request, (cost, reserve), now_ms) is not None:
                break
        else:
            return _commit(book, request, index, now_ms)
    return deny(book, request, now_ms)


def _commit(book: Book, request: Take, chosen: int, now_ms: int) -> Granted:
    expires_ms = now_ms + request.lease_ms
    cells, key = book.cells, request.lease
    for name, cost, reserve in request.alternatives[chosen]:
        cell = cells[name]
        if cost:
            slices = cell.slices
            if slices is None:
                cell.level += cost * cell.scale
            else:
                cell.level += cost  # a counter's scale is 1
                index = (now_ms - cell.anchor_ms) // cell.slice_ms
                if index in slices:  # as `count` does, but for the first of a slice
                    slices[index] += cost
                else:
                    count(cell, cost, now_ms)
        if reserve:
            leases = cell.leases
            if key in leases:
                hold(cell, key, reserve, expires_ms)
                continue
            lease = leases[key] = Lease()  # as `hold` does, for the first of a name
            lease.amount, lease.expires_ms, lease.firm = reserve, expires_ms, False
            cell.pending += reserve
            if expires_ms < cell.due_ms:
                cell.due_ms = expires_ms
    if request.standing:
        for line in request.standing:
            leave(book.line(line), request.ticket)
    return _new(Granted, (now_ms, chosen, expires_ms))


def settle(book: Book, lease: str, usage: tuple[Used, ...], raw_ms: int, *, last: bool) -> tuple[int, int]:
    """
    Move what was used from pending to the level; `last` ends the reservation, otherwise the rest stays reserved.

    Use beyond the reservation is debt. After the lease expired (its reservation was charged) only the excess is added.
    Places in use under a lease that is not known were granted without this store (P10): they are held from now on.
    Returns (now, units of debt). Budgets no longer known are skipped: a lost store forgot the reservation too.
    """
    now_ms = raw_ms + book.offset_ms
    if now_ms >= book.now_ms:
        book.now_ms = now_ms
    else:
        now_ms = advance(book, raw_ms)
    debt = 0
    cells = book.cells
    for name, reserved, told in usage:
        cell = cells.get(name)
        if cell is None:
            continue
        if now_ms != cell.at_ms:
            touch(cell, now_ms)
        held = cell.leases.get(lease)
        if cell.limits.kind is not _LEASES:
            debt += _spend(cell, lease, held, reserved, told, last=last)
        elif held is None:
            _adopt(cell, lease, told, now_ms)
        elif held.firm or cell.limits.hold_ms:
            end_hold(cell, lease, now_ms)
        else:  # as `end_hold` does where nothing is to be held
            cell.pending -= held.amount
            del cell.leases[lease]
    return now_ms, debt if debt < EXACT else EXACT - 1


def _spend(cell: BudgetCell, lease: str, held: Lease | None, reserved: int, told: int, *, last: bool) -> int:
    """Charge what was used to a cell that was brought to now; returns the units beyond the reservation."""
    used = told if 0 <= told < EXACT else min(max(0, told), EXACT - 1)
    if held is None:  # it lapsed and was charged
        used = over = max(0, used - reserved)
    else:
        over = used - held.amount if used > held.amount else 0
        freed = held.amount if last or over else used
        held.amount -= freed
        cell.pending -= freed
        if last:
            del cell.leases[lease]
    added = used * cell.scale
    if cell.slices is None and added < EXACT - cell.level:  # the usual case of `charge`, without the call
        cell.level += added
    else:
        charge(cell, used, cell.at_ms)
    return over


def _adopt(cell: BudgetCell, lease: str, told: int, now_ms: int) -> None:
    """Places in use that were granted without this store are held from now on; nothing is no hold."""
    units = min(told, EXACT - 1 - cell.pending)
    if units > 0:
        hold(cell, lease, units, now_ms + LEASE_MS)


def release(book: Book, lease: str, names: tuple[str, ...], raw_ms: int) -> int:
    """End a reservation of which nothing left: pending shrinks, the level keeps what was taken at once (lost)."""
    now_ms = advance(book, raw_ms)
    for name in names:
        cell = book.cells.get(name)
        if cell is not None:
            touch(cell, now_ms)
            held = cell.leases.get(lease)
            if held is not None and not held.firm:
                cell.pending -= cell.leases.pop(lease).amount
    return now_ms


def renew(book: Book, lease: str, names: tuple[str, ...], lease_ms: int, raw_ms: int) -> int:
    """Keep a living reservation for `lease_ms` more; an expired one stays expired."""
    now_ms = advance(book, raw_ms)
    for name in names:
        cell = book.cells.get(name)
        if cell is not None:
            touch(cell, now_ms)
            held = cell.leases.get(lease)
            if held is not None and not held.firm:
                held.expires_ms = now_ms + lease_ms
                cell.due_ms = min(cell.due_ms, held.expires_ms)
    return now_ms


def revise(book: Book, name: str, expected: int, limits: Limits, raw_ms: int) -> Revised:
    """
    Replace a budget's limits if its revision is still `expected`; what was used stays used.

    The new bound holds from this instant, the old one until it (reliability RB-13). Kind, line and the slices of a
    counter cannot change.
    """
    now_ms = advance(book, raw_ms)
    cell = book.cells.get(name)
    if cell is None or cell.limits.revision != expected:
        return Revised(now_ms, done=False, revision=cell.limits.revision if cell else 0)
    if shape(limits) != shape(cell.limits):
        return Revised(now_ms, done=False, revision=expected)
    touch(cell, now_ms)
    if cell.scale != limits.scale:
        units, rest = divmod(cell.level, cell.scale)
        cell.level = min(EXACT - 1, units * limits.scale + -(-rest * limits.scale // cell.scale))
    cell.apply(limits)
    return Revised(now_ms, done=True, revision=limits.revision)


def shape(limits: Limits) -> tuple[int, str, int, int, int]:
    """What a revision cannot change."""
    window_ms = limits.window_ms if limits.kind is BudgetKind.COUNTER else 0
    return limits.kind, limits.line, limits.slices, limits.anchor_ms, window_ms
