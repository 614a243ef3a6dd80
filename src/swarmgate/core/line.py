"""
Who goes first: lines of waiting tickets, and the rule when a worse one may pass (design 4: Line).

A ticket stands in the line of every budget that blocked it, ordered by class, then sequence. A call takes from a
budget although a better live ticket stands there only if that ticket would still fit at its own earliest instant;
when the ticket waits for an event, only if there is room for both now; when it waits at an earlier tier (for its caller's
own cap, say), it stands aside here: it holds back nobody whom it would hold back until that is over. So a large call is not starved by small
ones and nothing idles. A due ticket that nobody claims for 250 ms lets the next pass and keeps its place.
"""

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Final

from swarmgate.core.answers import BlockKind
from swarmgate.core.calm import Calm, Shape, calm_of
from swarmgate.core.limits import EXACT, BudgetKind, Tier

if TYPE_CHECKING:
    from swarmgate.core.book import BudgetCell, Take

CLASS_STEP: Final = 2**51
UNCLAIMED_MS: Final = 250
LOOK_AT_MOST: Final = 256  # better tickets that wait elsewhere may be many; behind more than these one may pass
SCAN_AT_MOST: Final = 512
FEW: Final = 8  # tickets are looked at sooner than counted on
SHAPES_AT_MOST: Final = 8  # of budgets that share a line
IDLE_RANK: Final = 2  # P2 runs only where nobody better waits

Need = tuple[int, int]  # (cost, reserve)
NOTHING: Need = (0, 0)


class Entry:
    """
    One ticket's place in one line; `ready_ms` = its own earliest instant, `due_ms` = when it will ask again.

    `kind` is what holds it up until then, `tier` the earliest of the budgets that do.
    """

    __slots__ = ("at", "due_ms", "expires_ms", "kind", "need", "ready_ms", "score", "ticket", "tier")

    def __init__(self, ticket: str, score: int) -> None:
        self.ticket = ticket
        self.score = score
        self.at = ""
        self.need = NOTHING
        self.ready_ms = 0
        self.due_ms = 0
        self.expires_ms = 0
        self.kind = BlockKind.TIME
        self.tier = Tier.WAYS

    def is_aside(self, tier: Tier) -> bool:
        """Whether it is held up at an earlier tier than that."""
        return self.tier < tier

    def stands_aside(self, tier: Tier) -> bool:
        """Whether nobody has to wait for it at that tier: nobody knows until when it is held up earlier."""
        return self.tier < tier and self.kind is not BlockKind.TIME


class Line:
    """Waiting tickets in order of (score, ticket); `calms` are bounds over all of them, by the shape of a budget."""

    __slots__ = ("calms", "entries", "name", "order")

    def __init__(self, name: str) -> None:
        self.name = name
        self.order: list[tuple[int, str]] = []
        self.entries: dict[str, Entry] = {}
        self.calms: dict[Shape, Calm] = {}

    def position(self, score: int) -> int:
        """How many tickets stand before `score`."""
        return bisect_left(self.order, (score, ""))


def join(line: Line, ticket: str, score: int) -> Entry:
    """The ticket's entry in the line, made at its place if it is new."""
    entry = line.entries.get(ticket)
    if entry is None:
        entry = line.entries[ticket] = Entry(ticket, score)
        insort(line.order, (score, ticket))
    return entry


def changed(line: Line, entry: Entry) -> None:
    """What is known of the whole line holds for this ticket as it stands now."""
    for calm in line.calms.values():
        calm.note(entry.score // CLASS_STEP, entry)


def leave(line: Line, ticket: str) -> None:
    """Remove the ticket; nothing happens if it does not stand there."""
    entry = line.entries.pop(ticket, None)
    if entry is not None:
        del line.order[bisect_left(line.order, (entry.score, ticket))]


def holds_back(cell: "BudgetCell", request: "Take", need: Need, now_ms: int) -> Entry | None:
    """
    The better live ticket because of which the caller must not take `need` from `cell` now.

    Looks at the first 256 better live tickets among 512; expired ones are dropped on the way. The caller's own ticket may
    stand there without its knowledge, since an answer was lost: it ends the look, for nobody waits for himself.
    """
    line = cell.line
    calm = line.calms.get(cell.shape)
    if calm is not None and (request.rank < IDLE_RANK or calm.best >= IDLE_RANK) and calm.lets_pass(cell, need, now_ms):
        return None
    dead: list[str] = []
    found: Entry | None = None
    looked = 0
    for place, ticket in line.order[:SCAN_AT_MOST]:
        if place >= request.score or ticket == request.ticket or looked >= LOOK_AT_MOST:
            break
        entry = line.entries[ticket]
        if entry.expires_ms <= now_ms:
            dead.append(ticket)
        elif entry.due_ms + UNCLAIMED_MS >= now_ms and not entry.stands_aside(cell.limits.tier):
            looked += 1
            if not _may_pass(cell, entry, request.rank, need, now_ms):
                found = entry
                break
    for ticket in dead:
        leave(line, ticket)
    if found is None and FEW < len(line.order) <= SCAN_AT_MOST and (calm is None or calm.is_spent(len(line.order))):
        if len(line.calms) > SHAPES_AT_MOST:
            line.calms.clear()
        everybody = [(score // CLASS_STEP, line.entries[ticket]) for score, ticket in line.order]
        line.calms[cell.shape] = calm_of(cell.shape, everybody)
    return found


def _may_pass(cell: "BudgetCell", entry: Entry, rank: int, need: Need, now_ms: int) -> bool:
    better = entry.score // CLASS_STEP
    is_aside = entry.is_aside(cell.limits.tier)
    if rank == IDLE_RANK and better < IDLE_RANK and not is_aside:
        return False
    if entry.kind is BlockKind.EVENT:
        taken = cell.pending + sum(need) + sum(entry.need)
        return cell.level + taken * cell.scale <= cell.caps[better]
    alone_ms = earliest(cell, better, entry.need, now_ms)
    if cell.limits.line and cell.name != entry.at and now_ms < entry.ready_ms <= (alone_ms or EXACT):
        return True  # interchangeable budgets share a line: this ticket will start at another one, no later than here
    after_ms = earliest(cell, better, entry.need, now_ms, need)
    if after_ms is None:  # what the caller reserves may last
        return is_aside
    return after_ms <= entry.ready_ms or after_ms == alone_ms


def passes_ms(cell: "BudgetCell", entry: Entry, request: "Take", need: Need, now_ms: int) -> int | None:
    """
    When a ticket that waits for an event lets the caller pass by time alone: there is room for both; None = nobody knows.

    Whoever stands between them is taken to need as much as the caller.
    """
    better = entry.score // CLASS_STEP
    if entry.kind is not BlockKind.EVENT or (request.rank == IDLE_RANK and better < IDLE_RANK):
        return None
    place = max(1, cell.line.position(request.score) // cell.limits.sharing)
    first = min(place * need[0], EXACT), min(place * need[1], EXACT)
    return earliest(cell, better, entry.need, now_ms, first)


def earliest(cell: "BudgetCell", rank: int, need: Need, now_ms: int, first: Need = NOTHING) -> int | None:
    """
    The first instant at which `cell` has room for `need` of class `rank`, if nothing but `first` is taken, now.

    None = not by time alone: a reservation must end.
    """
    scale = cell.scale
    cap = cell.caps[rank]
    pending = cell.pending + first[1]
    missing = cell.level + (pending + first[0] + need[0] + need[1]) * scale - cap
    if missing <= 0:
        return now_ms
    if cell.limits.kind is BudgetKind.LEASES:
        return _after_holds(cell, missing)
    if (pending + need[0] + need[1]) * scale > cap:
        return None
    if cell.slices is not None:
        return _after_slices(cell, missing, first[0], now_ms)
    return now_ms + drained_ms(cell, missing) if cell.drain else None


def drained_ms(cell: "BudgetCell", amount: int) -> int:
    """Milliseconds until so much has drained; cut where doubles stop being exact, which is as good as never."""
    return -(-min(amount, EXACT) // cell.drain)


def _after_holds(cell: "BudgetCell", missing: int) -> int | None:
    for expires_ms, amount in sorted((held.expires_ms, held.amount) for held in cell.leases.values() if held.firm):
        missing -= amount
        if missing <= 0:
            return expires_ms
    return None


def _after_slices(cell: "BudgetCell", missing: int, first: int, now_ms: int) -> int | None:
    """When so much is forgotten; `first`, which would be taken now, goes with the last slice."""
    for index in sorted(cell.slices or ()):
        missing -= cell.slices[index] if cell.slices else 0
        if missing <= 0:
            return cell.limits.forgotten_at_ms(index)
    return cell.limits.forgotten_at_ms(cell.limits.slice_at(now_ms)) if missing <= first else None
