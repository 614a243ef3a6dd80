"""
Whether everybody in a line lets a caller pass, without a look at each of them (design 2: P14).

What a ticket needs and when it may start say, once and for all, how full a budget may get without holding it up. The
least of these bounds over a line answers for all of it. It stays low when tickets leave, so it is never wrong: if it
does not let the caller pass, `line.holds_back` looks at each, and now and then bounds are made anew from what it saw.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from swarmgate.core.answers import BlockKind
from swarmgate.core.limits import Tier

if TYPE_CHECKING:
    from swarmgate.core.book import BudgetCell
    from swarmgate.core.line import Entry

ANY: Final = 1 << 62
# bounds are made anew once in so many looks as are an eighth of the line: they cost as much as a look
LOOKS_SHARE: Final = 8
Shape = tuple[int, int, tuple[int, int, int], Tier]  # scale, drain, caps and tier of a budget


class Calm:
    """
    The least over a line's tickets, for budgets of one shape.

    `room`: the fill beside which each could start at once; `event_room`: the same of those that wait for an event;
    `start`: the fill, as if nothing had drained since instant 0, beside which each starts at its own earliest instant;
    `ready_ms`: the first of these instants; `best`: the best class; `looks`: how often it did not help since it was made.
    """

    __slots__ = ("_shape", "best", "event_room", "expires_ms", "looks", "ready_ms", "room", "start")

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self.looks = 0
        self.best = self.room = self.event_room = self.start = self.ready_ms = self.expires_ms = ANY

    def note(self, rank: int, entry: "Entry") -> None:
        """A ticket stands in the line, or stands there otherwise than before."""
        scale, drain, caps, tier = self._shape
        room = caps[rank] - (entry.need[0] + entry.need[1]) * scale
        self.expires_ms = min(self.expires_ms, entry.expires_ms)
        if entry.stands_aside(tier):
            return
        if not entry.is_aside(tier):
            self.best = min(self.best, rank)
        if entry.kind is BlockKind.EVENT:
            self.event_room = min(self.event_room, room)
        else:
            self.room = min(self.room, room)
            self.start = min(self.start, drain * entry.ready_ms + room)
            self.ready_ms = min(self.ready_ms, entry.ready_ms)

    def is_spent(self, size: int) -> bool:
        """Count a look at each ticket of a line of that size; whether new bounds are worth their cost by now."""
        self.looks += 1
        return self.looks * LOOKS_SHARE >= size

    def lets_pass(self, cell: "BudgetCell", need: tuple[int, int], now_ms: int) -> bool:
        """Whether nobody is held up if `need` is taken now from a budget of this shape that was brought to now."""
        if self.expires_ms <= now_ms:
            return False  # who is gone must be dropped
        scale = cell.scale
        reserved = cell.pending + need[1]
        fill = cell.level + (reserved + need[0]) * scale
        if fill > self.event_room:
            return False
        if fill <= self.room:
            return True
        drains = cell.drain > 0 and now_ms <= self.ready_ms and reserved * scale <= self.room
        return drains and fill + cell.drain * now_ms <= self.start


def calm_of(shape: Shape, entries: Iterable[tuple[int, "Entry"]]) -> Calm:
    """The bounds of these tickets, given with their classes."""
    calm = Calm(shape)
    for rank, entry in entries:
        calm.note(rank, entry)
    return calm
