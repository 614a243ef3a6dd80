"""
In which order steps should run, and from when: the kernel itself, run ahead on a copy of the budgets.

Steps stand in line behind everybody who waits there already. Of steps that need the same, in the same class, only the
first asks; so what cannot run now costs nothing, and a step whose budgets are free starts at once whatever the others
wait for. Reservations of calls that run now are taken to last until they lapse: a plan may be late, never early. The
work is cut into turns (`advance`), since whoever plans has a loop to serve.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from types import MappingProxyType
from typing import Final, NamedTuple

from swarmgate.core import kernel
from swarmgate.core.answers import BlockKind, Denied, Granted, held_up_at
from swarmgate.core.book import LEASE_MS, STAY_MS, Book, Demand, Take, Usage
from swarmgate.core.limits import EXACT, Limits
from swarmgate.core.line import CLASS_STEP, changed
from swarmgate.core.view import copied
from swarmgate.core.waiting import LOOK_AT_MOST

DELIVERED_MS: Final = 20  # until a request is no longer on its way
USUAL_MS: Final = 1_000  # how long somebody who waits already will take
NOTHING_FRESH: Mapping[str, Limits] = MappingProxyType({})
MOST_BACKLOG: Final = 1_000
MOST_HOPELESS: Final = 20  # more leases than one step ends take some, too
MOST_LOOKS: Final = 200_000  # budgets examined by one plan

ENDS, ASKS = 0, 1  # at one instant, what ends comes first
WAITS: Final = "\0"  # begins the tickets of those who wait already; no step's id does


class Way(NamedTuple):
    """One way to serve a step, whole; of its reservations, `early` end once the request is delivered."""

    demands: tuple[Demand, ...]
    early: tuple[str, ...] = ()


class PlannedStep(NamedTuple):
    """One call to come: its class, its ways in order of preference, how long it lasts, when it may begin (store's ms)."""

    id: str
    rank: int
    ways: tuple[Way, ...]
    lasts_ms: int = USUAL_MS
    not_before_ms: int = 0


class Planned(NamedTuple):
    """
    When a step starts, by which of its ways; `start_ms` is None if never, or if the plan ended before (`kind` TIME).

    `kind` is what it waits for first: None = it can run now; TIME = the instant is a promise without rivals; EVENT = it
    may start earlier, when a reservation ends or a person acts; NEVER = its class may not take as much.
    """

    id: str
    start_ms: int | None
    way: int
    kind: BlockKind | None
    waits_for: tuple[str, ...]


class _Ending(NamedTuple):
    """Reservations of a step that end."""

    lease: str
    usage: tuple[Usage, ...]


class _Queue:
    """Steps that need the same, in the order of their scores; the first of them asks."""

    __slots__ = (
        "blocked_by",
        "from_ms",
        "hopeless",
        "kind",
        "lasts_ms",
        "rank",
        "since_ms",
        "standing",
        "steps",
        "turn",
        "waits_for",
        "ways",
    )

    def __init__(self, rank: int, ways: tuple[Way, ...], lasts_ms: int, from_ms: int) -> None:
        self.rank = rank
        self.ways = ways
        self.lasts_ms = lasts_ms
        self.from_ms = from_ms
        self.turn = 0  # of its newest place in the agenda; older ones are void
        self.steps: deque[tuple[int, str]] = deque()
        self._forget()

    def _forget(self) -> None:
        self.hopeless = 0  # denials in a row that name no certain instant: a pause, a budget that does not drain
        self.since_ms = 0  # its first step waits
        self.standing: tuple[str, ...] = ()
        self.kind: BlockKind | None = None
        self.blocked_by: BlockKind | None = None  # when it asked last
        self.waits_for: tuple[str, ...] = ()

    def take(self) -> Take:
        """What its first step asks."""
        score, ticket = self.steps[0]
        alternatives = tuple([way.demands for way in self.ways])
        return Take(ticket, ticket, self.rank, score, alternatives, self.lasts_ms + LEASE_MS, self.standing)

    def blocked(self, denied: Denied) -> None:
        """Its first step waits; what for is told by the first denial."""
        self.standing = denied.lines
        self.blocked_by = denied.kind
        self.hopeless = self.hopeless + 1 if denied.certain_ms >= EXACT else 0
        if self.kind is None:
            self.since_ms = denied.now_ms
            self.note(denied)

    def note(self, denied: Denied) -> None:
        """Remember what the first step waits for."""
        self.kind = denied.kind
        self.waits_for = tuple([blocker.budget for blocker in denied.blockers])

    def pop(self) -> str:
        """Its first step has started, or never will; the next one has not asked yet."""
        self._forget()
        return self.steps.popleft()[1]


class Planning:
    """
    A plan in the making: `advance` until it is done, then `planned` has every step in order of its start.

    `fresh` are budgets that are defined only when they are first used: they begin as the kernel lets them.
    """

    def __init__(
        self, book: Book, steps: Sequence[PlannedStep], now_ms: int, fresh: Mapping[str, Limits] = NOTHING_FRESH
    ) -> None:
        names = {demand[0] for step in steps for way in step.ways for demand in way.demands}
        self.now_ms = max(now_ms, book.now_ms)
        self._world = _ahead(book, names, self.now_ms, fresh)
        self._own = {step.id for step in steps}
        self._looks = 0
        self._number = 0
        self._agenda: list[tuple[int, int, int, int, _Queue | _Ending]] = []
        self._done: list[Planned] = []
        self._heads: dict[str, _Queue] = {}  # by the ticket that asks for its queue
        waiting = _waiting(book, names & book.cells.keys(), self.now_ms)
        self._queues = _queues([*waiting, *_coming(steps, self._world)])
        for queue in self._queues:
            if queue.from_ms >= EXACT:  # nobody knows when it may begin
                queue.kind = BlockKind.EVENT
            else:
                self._ask_at(max(queue.from_ms, self.now_ms), queue)

    @property
    def planned(self) -> list[Planned]:
        """What is known so far; steps beyond the work that one plan may cost have no start."""
        waiting = [
            Planned(ticket, None, 0, queue.kind or BlockKind.TIME, queue.waits_for)
            for queue in self._queues
            for _, ticket in queue.steps
            if ticket in self._own
        ]
        return self._done + waiting

    def advance(self, looks: int) -> bool:
        """Go on for about so many looks at a budget; True when the plan is done."""
        until = min(self._looks + looks, MOST_LOOKS)
        while self._agenda and self._looks < until:
            at_ms, _, _, turn, it = heappop(self._agenda)
            if isinstance(it, _Ending):
                kernel.settle(self._world, it.lease, it.usage, at_ms, last=True)
                self._looks += len(it.usage)
                self._wake([self._world.cells[name].line.name for name, *_ in it.usage], at_ms)
            elif it.turn == turn:
                self._ask(it, at_ms)
        return not self._agenda or self._looks >= MOST_LOOKS

    def _ask(self, queue: _Queue, now_ms: int) -> None:
        self._looks += sum([len(way.demands) for way in queue.ways]) + 1
        answer = kernel.take(self._world, queue.take(), now_ms)
        if isinstance(answer, Granted):
            self._start(queue, answer, now_ms)
        elif answer.kind is BlockKind.NEVER:
            queue.note(answer)
            self._end(queue, None, 0)
            self._ask_at(now_ms, queue)
        else:
            queue.blocked(answer)
            if queue.hopeless < MOST_HOPELESS:
                self._ask_at(self._again_ms(queue, answer), queue)
            self._pass_on(queue, answer)

    def _again_ms(self, queue: _Queue, denied: Denied) -> int:
        """
        When it asks by itself: as the kernel says, or ever later while it waits for an event.

        What the plan itself ends wakes it; only what runs already may lapse meanwhile. It keeps its place until then.
        """
        again_ms = max(denied.due_ms, denied.now_ms + 1)
        if denied.kind is not BlockKind.EVENT:
            return again_ms
        waited_ms = denied.now_ms - queue.since_ms
        again_ms = max(again_ms, min(denied.now_ms + waited_ms // 2, denied.certain_ms))
        for name in denied.lines:
            line = self._world.line(name)
            entry = line.entries[queue.steps[0][1]]
            entry.due_ms, entry.expires_ms = again_ms, again_ms + STAY_MS
            changed(line, entry)
        return again_ms

    def _start(self, queue: _Queue, granted: Granted, now_ms: int) -> None:
        way, ticket = queue.ways[granted.chosen], queue.steps[0][1]
        early = [Usage(name, reserve, 0) for name, _, reserve in way.demands if reserve and name in way.early]
        whole = [Usage(name, reserve, reserve) for name, _, reserve in way.demands if reserve and name not in way.early]
        for usage, after_ms in ((early, min(DELIVERED_MS, queue.lasts_ms)), (whole, queue.lasts_ms)):
            if usage:
                self._note(now_ms + after_ms, ENDS, 0, _Ending(ticket, tuple(usage)))
        if queue.kind is None and now_ms > self.now_ms:
            queue.kind = BlockKind.TIME  # it was not to begin earlier
        self._end(queue, now_ms, granted.chosen)
        self._ask_at(now_ms, queue)

    def _end(self, queue: _Queue, start_ms: int | None, way: int) -> None:
        kind, waits_for, lines = queue.kind, queue.waits_for, queue.standing
        ticket = queue.pop()
        self._heads.pop(ticket, None)
        if ticket in self._own:
            self._done.append(Planned(ticket, start_ms, way, kind, waits_for))
        if start_ms is not None:
            self._wake(lines, start_ms)

    def _wake(self, lines: Sequence[str], now_ms: int) -> None:
        """Who is first in a line now asks at once, as core/waiting.py has it."""
        for name in lines:
            order = self._world.line(name).order
            if order:
                self._ask_at(now_ms, self._heads[order[0][1]])

    def _pass_on(self, queue: _Queue, denied: Denied) -> None:
        """Where a step is not held up, the next one that time does not wake asks, as core/waiting.py has it."""
        tier, cells = held_up_at(denied.kind, denied.blockers), self._world.cells
        held = {cells[blocker.budget].line.name for blocker in denied.blockers if blocker.tier <= tier}
        for name in denied.lines:
            if name not in held:
                order = self._world.line(name).order
                behind = bisect_right(order, queue.steps[0])
                for _, ticket in order[behind : behind + LOOK_AT_MOST]:
                    if self._heads[ticket].blocked_by is not BlockKind.TIME:
                        self._ask_at(denied.now_ms, self._heads[ticket])
                        break

    def _ask_at(self, at_ms: int, queue: _Queue) -> None:
        if queue.steps:
            score, ticket = queue.steps[0]
            self._heads[ticket] = queue
            queue.turn = self._note(at_ms, ASKS, score, queue)

    def _note(self, at_ms: int, what: int, score: int, it: _Queue | _Ending) -> int:
        self._number += 1  # of equal entries the older comes first
        heappush(self._agenda, (at_ms, what, score, self._number, it))
        return self._number


def _ahead(book: Book, names: set[str], now_ms: int, fresh: Mapping[str, Limits]) -> Book:
    """The budgets that the steps touch, in a book of their own in which nobody waits. Errors: KeyError."""
    world = Book(book.birth_ms)
    world.now_ms, world.sequence = now_ms, book.sequence
    for name in sorted(names - book.cells.keys()):
        kernel.define(world, name, fresh[name])
    for name in names & book.cells.keys():
        cell = world.cells[name] = copied(book.cells[name], now_ms)
        cell.line = world.line(cell.line.name)
        cell.order = cell.line.order
    return world


class _Place(NamedTuple):
    """Somebody in line: its score and ticket, and the step that it stands for."""

    score: int
    ticket: str
    step: PlannedStep


def _waiting(book: Book, names: set[str], now_ms: int) -> list[_Place]:
    """Who waits already, by what its entries in the lines say of these budgets; the best if they are many."""
    needs: dict[tuple[int, str], dict[str, Demand]] = {}
    for line in {book.cells[name].line.name: book.cells[name].line for name in names}.values():
        for place in line.order[:MOST_BACKLOG]:
            entry = line.entries[place[1]]
            if entry.expires_ms > now_ms and entry.at in names:
                needs.setdefault(place, {})[entry.at] = (entry.at, *entry.need)
    return [
        _Place(score, WAITS + ticket, PlannedStep(ticket, score // CLASS_STEP, (Way(tuple(demands.values())),)))
        for (score, ticket), demands in sorted(needs.items())[:MOST_BACKLOG]
    ]


def _coming(steps: Sequence[PlannedStep], world: Book) -> list[_Place]:
    """The steps behind everybody of their class who waits."""
    first = max(world.sequence, world.now_ms * 1_000) + 1
    return [_Place(step.rank * CLASS_STEP + first + number, step.id, step) for number, step in enumerate(steps)]


def _queues(places: Iterable[_Place]) -> list[_Queue]:
    """Everybody by what it needs, in order of score."""
    queues: dict[tuple[object, ...], _Queue] = {}
    for score, ticket, step in sorted(places, key=lambda place: place.score):
        key = step[1:]
        if key not in queues:
            queues[key] = _Queue(*key)
        queues[key].steps.append((score, ticket))
    return list(queues.values())
