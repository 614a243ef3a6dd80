"""
Why not now, and when: the answer of the kernel when no alternative fits (design 2: P3, P6; design 4: Line).

Every blocking budget is named. When every blocker is time, `not_before_ms` is a promise; the ticket keeps its place
in the lines that blocked it, and asks again at `due_ms`.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from swarmgate.core.answers import Blocker, BlockKind, Denied, held_up_at
from swarmgate.core.book import Book, BudgetCell, Demand, Take, first_score
from swarmgate.core.limits import EXACT, BudgetKind
from swarmgate.core.line import CLASS_STEP, Need, changed, drained_ms, earliest, holds_back, join, leave, passes_ms
from swarmgate.core.passage import touch

ASK_AGAIN_MS: Final = 250  # a ticket that waits for an event, or behind others, asks at least this often ...
ASK_AGAIN_AT_MOST_MS: Final = 5_000  # ... or this often when many stand before it
# callers who were sent away come back spread over so long, unless the budget needs longer
SENT_AWAY_AT_MOST_MS: Final = 20_000


class _Found(NamedTuple):
    """What of a demand does not fit, and when its turn may come; `polls` = nobody knows, so it has to ask now and then."""

    blocker: Blocker
    turn_ms: int
    polls: bool


_Seen = dict[Demand, _Found | None]


class _Case(NamedTuple):
    """One alternative that does not fit: when it is ready by itself, when its turn may come, when it is certain."""

    chosen: int
    kind: BlockKind
    ready_ms: int
    turn_ms: int
    certain_ms: int
    polls: bool
    blockers: tuple[Blocker, ...]


def deny(book: Book, request: Take, now_ms: int) -> Denied:
    """The denial of the alternative that will fit first; joins the lines that block it if the caller waits."""
    case = min(_cases(book, request, now_ms), key=_order)
    score = request.score
    lines = request.standing
    position, depth = _place(book, case, score)
    not_before_ms = due_ms = max(case.ready_ms, min(case.turn_ms, now_ms + SENT_AWAY_AT_MOST_MS))
    if case.kind is not BlockKind.NEVER:
        if score == first_score(request.rank):
            score = _first_place(book, request, case, now_ms)
        if request.waits:
            due_ms = _due(case, position, now_ms)
            lines = _stand(book, request, case, score, due_ms)
        else:
            not_before_ms = due_ms = _send_away(book, request, case, not_before_ms)
            lines = ()
    return Denied(
        now_ms,
        case.kind,
        not_before_ms,
        max(case.certain_ms, not_before_ms),
        due_ms,
        case.chosen,
        case.blockers,
        score,
        lines,
        position,
        depth,
    )


def _cases(book: Book, request: Take, now_ms: int) -> Iterator[_Case]:
    """Each alternative, until nothing blocks but what blocks all of them: none that follows will fit sooner."""
    seen: _Seen = {}  # most budgets of a call stand in each of its alternatives
    first, *others = request.alternatives
    common = {demand[0] for demand in set(first).intersection(*others)}
    for index in range(len(request.alternatives)):
        case = _examine(book, request, index, now_ms, seen)
        yield case
        if common.issuperset([blocker.budget for blocker in case.blockers]):
            break


def _order(case: _Case) -> tuple[bool, int, BlockKind, int]:
    """The one that will fit first; nobody knows when an event comes, so it counts from when its ticket asks again."""
    later_ms = ASK_AGAIN_MS if case.kind is BlockKind.EVENT else 0
    return case.kind is BlockKind.NEVER, case.ready_ms + later_ms, case.kind, case.chosen


def _examine(book: Book, request: Take, index: int, now_ms: int, seen: _Seen) -> _Case:
    kind = BlockKind.TIME
    ready_ms = turn_ms = certain_ms = now_ms
    polls = False
    blockers = []
    for demand in request.alternatives[index]:
        if demand not in seen:
            seen[demand] = _blocker(book.cells[demand[0]], request, demand, now_ms)
        found = seen[demand]
        if found is not None:
            blocker, its_turn_ms, its_polls = found
            blockers.append(blocker)
            polls = polls or its_polls
            kind = max(kind, blocker.kind)
            ready_ms = max(ready_ms, blocker.at_ms)
            turn_ms = max(turn_ms, its_turn_ms)
            certain_ms = max(certain_ms, blocker.certain_ms)
    return _Case(index, kind, ready_ms, turn_ms, certain_ms, polls, tuple(blockers))


def _blocker(cell: BudgetCell, request: Take, demand: Demand, now_ms: int) -> _Found | None:
    """What of a demand does not fit; None if it fits."""
    if now_ms != cell.at_ms:  # what take saw must still block
        touch(cell, now_ms)
    rank = request.rank
    need = demand[1:]
    if not cell.order and cell.level + (cell.pending + need[0] + need[1]) * cell.scale <= cell.caps[rank]:
        return None  # the usual case of what follows, without the calls
    turn_ms = None
    found = obstacle(cell, rank, need, now_ms)
    if found is None:
        ahead = holds_back(cell, request, need, now_ms)
        if ahead is None:
            return None
        found = Obstacle(BlockKind.LINE, now_ms, now_ms)
        turn_ms = passes_ms(cell, ahead, request, need, now_ms)
    limits = cell.limits
    limit = 0 if limits.paused else limits.quota or limits.burst
    blocker = Blocker(cell.name, *found, remaining(cell, rank), limit, limits.window_ms, limits.revision, limits.tier)
    if turn_ms is not None:
        return _Found(blocker, turn_ms, polls=False)
    return _Found(blocker, _turn(cell, request, need, now_ms), found.kind is not BlockKind.TIME)


class Obstacle(NamedTuple):
    """Why a budget has no room, the earliest instant at which it may have, and the one by which it will."""

    kind: BlockKind
    at_ms: int
    certain_ms: int


def obstacle(cell: BudgetCell, rank: int, need: Need, now_ms: int) -> Obstacle | None:
    """What keeps `need` of that class out of a cell that was brought to now, lines aside; None if it fits."""
    cap = cell.caps[rank]
    if cap < 0:
        return Obstacle(BlockKind.EVENT, now_ms, EXACT)  # paused: whoever did that may end it at once, or never
    if sum(need) * cell.scale > cap:
        return Obstacle(BlockKind.NEVER, EXACT, EXACT)
    at_ms = earliest(cell, rank, need, now_ms)
    if at_ms is None:
        return Obstacle(BlockKind.EVENT, _possible(cell, rank, need, now_ms), _certain(cell, rank, need, now_ms))
    return Obstacle(BlockKind.TIME, at_ms, at_ms) if at_ms > now_ms else None


def remaining(cell: BudgetCell, rank: int) -> int:
    """Units that the class may still take from a cell that was brought to now."""
    return max(0, (cell.caps[rank] - cell.level) // cell.scale - cell.pending)


def _possible(cell: BudgetCell, rank: int, need: Need, now_ms: int) -> int:
    """The earliest instant if every reservation ended at once and unused."""
    missing = cell.level + sum(need) * cell.scale - cell.caps[rank]
    return now_ms + drained_ms(cell, missing) if missing > 0 and cell.drain else now_ms


def _certain(cell: BudgetCell, rank: int, need: Need, now_ms: int) -> int:
    """
    The instant by which there is room even if every reservation is used whole and nothing new is taken.

    None can be named where more is overdue than one step may end: the next steps end it, whenever they come.
    """
    if cell.due_ms <= now_ms:
        return EXACT
    ends_ms = max((held.expires_ms for held in cell.leases.values()), default=now_ms)
    if cell.limits.kind is BudgetKind.LEASES:
        return ends_ms + cell.limits.hold_ms if cell.leases else now_ms
    if cell.limits.kind is BudgetKind.COUNTER:
        return cell.limits.forgotten_at_ms(cell.limits.slice_at(ends_ms))
    if not cell.drain:
        return EXACT
    level = max(0, cell.level - cell.drain * (ends_ms - now_ms)) + cell.pending * cell.scale
    missing = level + sum(need) * cell.scale - cell.caps[rank]
    return ends_ms + max(0, drained_ms(cell, missing))


def _turn(cell: BudgetCell, request: Take, need: Need, now_ms: int) -> int:
    """A guess when the caller's turn comes, as if everybody before it needed as much; so repeats come paced."""
    position = cell.line.position(request.score) // cell.limits.sharing
    if not position or not cell.drain:
        return now_ms
    ahead = cell.pending + (position + 1) * sum(need)
    return now_ms + max(0, drained_ms(cell, cell.level + ahead * cell.scale - cell.caps[request.rank]))


def _due(case: _Case, position: int, now_ms: int) -> int:
    """When a waiting ticket asks again by itself; it is woken earlier when it may go."""
    latest_ms = now_ms + ASK_AGAIN_AT_MOST_MS
    if case.kind is BlockKind.TIME or case.kind is BlockKind.NEVER:
        return max(case.ready_ms, min(case.turn_ms, latest_ms))
    soon_ms = now_ms + ASK_AGAIN_MS * (1 + position) if case.polls else now_ms
    return min(max(soon_ms, case.ready_ms, case.turn_ms), latest_ms)


def _first_place(book: Book, request: Take, case: _Case, now_ms: int) -> int:
    """The place that the ticket has already if the answer that told it was lost, else the last of its class."""
    for blocker in case.blockers:
        entry = book.cells[blocker.budget].line.entries.get(request.ticket)
        if entry is not None:
            return entry.score
    book.sequence = max(book.sequence + 1, now_ms * 1_000)
    return request.rank * CLASS_STEP + book.sequence


def _stand(book: Book, request: Take, case: _Case, score: int, due_ms: int) -> tuple[str, ...]:
    tier = held_up_at(case.kind, case.blockers)
    lines = dict.fromkeys(request.standing)
    demands = {name: (cost, reserve) for name, cost, reserve in request.alternatives[case.chosen]}
    for blocker in case.blockers:
        cell = book.cells[blocker.budget]
        entry = join(cell.line, request.ticket, score)
        entry.at = cell.name
        entry.need = demands[blocker.budget]
        lines[cell.line.name] = None
    for name in lines:
        entry = join(book.line(name), request.ticket, score)
        entry.ready_ms = case.ready_ms
        entry.due_ms = due_ms
        entry.expires_ms = due_ms + request.expires_after_ms
        entry.kind = case.kind
        entry.tier = tier
        changed(book.line(name), entry)
    return tuple(lines)


def _send_away(book: Book, request: Take, case: _Case, from_ms: int) -> int:
    """
    When the caller should come back: not with everybody else, but one call after the last who was sent away.

    Who is sent away may never return, so it stands in no line; its place is the score it carries.
    """
    for name in request.standing:
        leave(book.line(name), request.ticket)
    cell = book.cells[max(case.blockers, key=lambda blocker: blocker.at_ms).budget]
    need = next(cost + reserve for name, cost, reserve in request.alternatives[case.chosen] if name == cell.name)
    gap_ms = drained_ms(cell, need * cell.scale) if cell.drain else ASK_AGAIN_MS
    if from_ms < cell.promised_ms <= from_ms + SENT_AWAY_AT_MOST_MS:
        from_ms = cell.promised_ms
    cell.promised_ms = from_ms + gap_ms
    return from_ms


def _place(book: Book, case: _Case, score: int) -> tuple[int, int]:
    """How many stand before the caller, and how many at all, in the fullest line that blocks it."""
    lines = [book.cells[blocker.budget].line for blocker in case.blockers]
    line = max(lines, key=lambda one: len(one.order))
    return line.position(score), len(line.order)
