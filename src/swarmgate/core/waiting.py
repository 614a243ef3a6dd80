"""
Who waits in this process, and whom to wake: by the clock, and when a turn may have come.

A waiting call sleeps until its ticket is due. It is woken earlier when it becomes the first of this process that is held up in
a line, or when a reservation ended for which that one waits; also if that happened while its denial was on its way. Who stands
in a line and is held up elsewhere, or at an earlier tier (core/line.py), does not count there. When a ticket is due is a guess
from everybody before it; of the first few in a line, who was told an earlier instant asks then, if all before it sleep on and let
it pass. So nothing idles and nobody spins (design 4: Line, "Pull"). One agent has at most four tickets in one line: a runaway
agent must not sink the rest.
"""

from bisect import bisect_left, insort
from collections import deque
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING, Final

from swarmgate.core.answers import BlockKind, held_up_at
from swarmgate.core.callers import OF_CALLERS
from swarmgate.core.limits import EXACT

if TYPE_CHECKING:
    from swarmgate.core.record import Call, Ring

TICKETS_PER_AGENT: Final = 4
NAMELESS_TICKETS: Final = 4_096  # of all calls together that name no agent; as many as wait for a connection
LOOK_AT_MOST: Final = 8  # calls at the head of a line, to find one that waits for what was freed
REMEMBERED: Final = 64  # how often something ended lately
FEWEST_ALARMS: Final = 64
STIRRED_MS: Final = 250  # who waits for an instant asks at most so often because of what happens to others


class Room:
    """
    The waiting calls of one process.

    `ready` collects calls whose turn may have come; the pump wakes them. `line_of` names the shared line of
    interchangeable budgets; every other budget has a line of its own name. `turn` numbers what happens here; `sleeping`
    has the instant and the turn of the alarm of everybody who sleeps. Of each line, `_lines` orders those who were held up
    there when they asked last, and `_depths` counts all who stand there. `_first` has the instant from which a call could
    start by what it was told, where all that it waits for is time; what was freed since makes it earlier.
    """

    __slots__ = (
        "_alarms",
        "_depths",
        "_first",
        "_freed",
        "_held",
        "_lines",
        "_places",
        "_tickets",
        "agent_tickets",
        "keyless",
        "line_of",
        "ready",
        "sleeping",
        "turn",
    )

    def __init__(self, agent_tickets: int = TICKETS_PER_AGENT) -> None:
        self.agent_tickets = agent_tickets
        self.keyless: dict[Call, Ring] = {}  # who waits for a key of a ring to come back
        self.line_of: dict[str, str] = {}
        self.ready: list[Call] = []
        self.turn = 0
        self._places: dict[Call, tuple[str, ...]] = {}
        self._held: dict[Call, tuple[str, ...]] = {}  # of its places, those in whose order it stands
        self._depths: dict[str, int] = {}
        self._lines: dict[str, list[tuple[int, str, Call]]] = {}
        self._tickets: dict[tuple[str, str, str], int] = {}
        self._first: dict[Call, int] = {}
        self.sleeping: dict[Call, tuple[int, int]] = {}
        self._alarms: list[tuple[int, int, Call]] = []
        self._freed: deque[tuple[int, tuple[str, ...]]] = deque(maxlen=REMEMBERED)

    def __len__(self) -> int:
        return len(self._places)

    def depth(self, line: str) -> int:
        """How many calls of this process stand in a line."""
        return self._depths.get(line, 0)

    def crowded(self, call: "Call", lines: tuple[str, ...]) -> bool:
        """Whether this agent already has as many other tickets in one of the lines as it may."""
        agent = call.step.agent
        own = self._places.get(call, ())
        most = self.agent_tickets if agent else NAMELESS_TICKETS
        return any(self._tickets.get((call.tenant, agent, line), 0) - (line in own) >= most for line in lines)

    def wait(self, call: "Call", due_ms: int, first_ms: int = EXACT) -> None:
        """
        Sleep until `due_ms`, standing in `call.standing`; be ready at once if what it waits for ended meanwhile.

        `due_ms` is a guess from everybody before it, who may wait for something else: whoever is the first that is held up in a
        line sleeps until `first_ms` at most, when it could start without them. So does who is behind others that sleep longer.
        """
        own = self._places.get(call, ())
        for line in call.standing:
            if line not in own:
                self._depths[line] = self._depths.get(line, 0) + 1
                key = (call.tenant, call.step.agent, line)
                self._tickets[key] = self._tickets.get(key, 0) + 1
        self._places[call] = call.standing
        self._line_up(call)
        leads = first_ms < due_ms and self._leads(call)
        self._sleep(call, first_ms if leads else due_ms)
        missed = self._missed(call)
        if call.standing and self._waits_for(call) is BlockKind.TIME:
            self._first[call] = min(first_ms, call.asked_ms + STIRRED_MS) if missed else first_ms
        else:
            self._first.pop(call, None)
        if missed and call not in self._first:
            self._call_up(call)
        elif len(call.standing) > 1:
            self._pass_on(call)
        for line in self._held[call]:
            self._look_on(line, call)

    def wake(self, call: "Call") -> None:
        """The call is awake; it keeps its places."""
        self.sleeping.pop(call, None)
        self.keyless.pop(call, None)
        if not self._places.get(call, True):
            del self._places[call], self._held[call]

    def leave(self, call: "Call") -> None:
        """Give up every place; who is held up next behind it, or is the first now, is ready to ask."""
        self.sleeping.pop(call, None)
        self.keyless.pop(call, None)
        self._first.pop(call, None)
        held = self._held.pop(call, ())
        for line in self._places.pop(call, ()):
            key = (call.tenant, call.step.agent, line)
            if self._tickets[key] > 1:
                self._tickets[key] -= 1
            else:
                del self._tickets[key]
            if self._depths[line] > 1:
                self._depths[line] -= 1
            else:
                del self._depths[line]
            self.turn += 1
            self._freed.append((self.turn, (line,)))
            self._step_out(call, line, is_held=line in held)

    def keys_changed(self, ring: "Ring") -> None:
        """A key went or came back: who waits for one of them asks again."""
        for call, its in self.keyless.items():
            if its is ring:
                self._call_up(call)

    def freed(self, budgets: tuple[str, ...]) -> None:
        """Reservations ended in these budgets: the first of each line that waits for that asks again, and who waits for time soon."""
        self.turn += 1
        self._freed.append((self.turn, budgets))
        if self._lines:
            for budget in budgets:
                line = self.line_of.get(budget, budget)
                if line in self._lines:
                    self._tell(line)
                    self._stir(line)
                    self._look_on(line)

    def revised(self, budgets: tuple[str, ...]) -> None:
        """Limits changed in these budgets: whatever the first of each line waits for, it asks again; then those whom it lets pass."""
        self.turn += 1
        self._freed.append((self.turn, budgets))
        for line in dict.fromkeys([self.line_of.get(budget, budget) for budget in budgets]):
            if line in self._lines:
                self._stir(line)
                self._call_up(self._lines[line][0][2])

    def next_ms(self) -> int | None:
        """The first instant at which somebody is due."""
        alarms = self._alarms
        while alarms and not self._counts(alarms[0]):
            heappop(alarms)
        return alarms[0][0] if alarms else None

    def due(self, now_ms: int) -> "list[Call]":
        """Everybody who is due, in the order of their instants."""
        found = []
        while (next_ms := self.next_ms()) is not None and next_ms <= now_ms:
            call = heappop(self._alarms)[2]
            del self.sleeping[call]
            found.append(call)
        return found

    def _line_up(self, call: "Call") -> None:
        """It asked, and was held up in other lines than before."""
        was = self._held.get(call, ())
        now = tuple([line for line in call.standing if self._is_held_up(call, line)])
        self._held[call] = now
        if now == was:
            return
        for line in was:
            if line not in now:
                self._step_out(call, line, is_held=True)
        for line in now:
            if line not in was:
                insort(self._lines.setdefault(line, []), (call.score, call.id, call))

    def _step_out(self, call: "Call", line: str, *, is_held: bool) -> None:
        """It is in nobody's way there any more: who is the first now asks, and who waited for this one alone."""
        order = self._lines.get(line, [])
        place = bisect_left(order, (call.score, call.id))
        if is_held:
            del order[place]
            if not order:
                del self._lines[line]
        if place < len(order) and ((is_held and place == 0) or self._waits_for(order[place][2]) is BlockKind.LINE):
            self._call_up(order[place][2])
        elif is_held and place < min(LOOK_AT_MOST, len(order)):
            self._look_on(line)

    def _tell(self, line: str, first: int = 0) -> None:
        for _, _, call in islice(self._lines.get(line, ()), first, first + LOOK_AT_MOST):
            if call not in self.sleeping:
                break  # the first is awake and asks anyway
            if self._waits_for(call) is not BlockKind.TIME:
                self._call_up(call)
                break

    def _stir(self, line: str) -> None:
        """What the first in line were told of instants may be too late now."""
        for _, _, call in islice(self._lines[line], LOOK_AT_MOST):
            first_ms = self._first.get(call)
            if first_ms is not None and call not in self.keyless:
                self._first[call] = min(first_ms, call.asked_ms + STIRRED_MS)

    def _look_on(self, line: str, asked: "Call | None" = None) -> None:
        """Of the first in line, who could start while all before it sleep on asks then; when it is due was a guess."""
        order = self._lines[line]
        if asked is not None and len(order) > LOOK_AT_MOST and order[LOOK_AT_MOST][0] <= asked.score:
            return
        until_ms = EXACT
        for _, _, call in islice(order, LOOK_AT_MOST):
            alarm = self.sleeping.get(call)
            if alarm is None:
                return  # it is awake; who stands behind it is looked at when it sleeps again
            due_ms = alarm[0]
            first_ms = self._first.get(call)
            if first_ms is not None:
                at_ms = max(first_ms, call.asked_ms + STIRRED_MS)
                if at_ms < due_ms and at_ms + STIRRED_MS <= until_ms:
                    self._sleep(call, at_ms)
                    due_ms = at_ms
            until_ms = min(until_ms, due_ms)
            if not self._lets_pass(call, line):
                return

    def _lets_pass(self, call: "Call", line: str) -> bool:
        """Whether somebody may take what is free in that line before this one: it waits for something else, or for longer."""
        denied = call.denied
        if denied is None:
            return False
        for blocker in denied.blockers:
            if self.line_of.get(blocker.budget, blocker.budget) == line:
                if blocker.budget != line or blocker.kind is BlockKind.LINE:
                    return True  # another budget of that line may have room, or room is there already
                longest_ms = max([one.at_ms for one in denied.blockers])
                is_time = blocker.kind is BlockKind.TIME
                return is_time and (denied.kind is not BlockKind.TIME or blocker.at_ms < longest_ms)
        return True

    def _sleep(self, call: "Call", due_ms: int) -> None:
        self.turn += 1
        self.sleeping[call] = due_ms, self.turn
        heappush(self._alarms, (due_ms, self.turn, call))
        if len(self._alarms) > 2 * len(self.sleeping) + FEWEST_ALARMS:
            self._alarms = [alarm for alarm in self._alarms if self._counts(alarm)]
            heapify(self._alarms)

    def _counts(self, alarm: "tuple[int, int, Call]") -> bool:
        asleep = self.sleeping.get(alarm[2])
        return asleep is not None and asleep[1] == alarm[1]

    def _pass_on(self, call: "Call") -> None:
        """Where nothing of a line holds it up any more, the next one may take what is free there."""
        held = self._held[call]
        for line in call.standing:
            if line not in held and line in self._lines:
                self._tell(line, bisect_left(self._lines[line], (call.score, call.id)))

    def _is_held_up(self, call: "Call", line: str) -> bool:
        """Whether that line was in its way when it asked last; nobody knows it of who waits for a key, or for a store."""
        denied = call.denied
        if denied is None:
            return True
        tiers = {self.line_of.get(blocker.budget, blocker.budget): blocker.tier for blocker in denied.blockers}
        if line in tiers:
            return tiers[line] <= held_up_at(denied.kind, denied.blockers)
        return tiers.keys().isdisjoint(call.standing)

    def _missed(self, call: "Call") -> bool:
        """Whether something ended after it asked and before it slept, in a line that it now leads or, if it waits for time, where it is held up."""
        if not call.standing or call in self.keyless:
            return False
        is_time = self._waits_for(call) is BlockKind.TIME
        lead = {line for line in self._held[call] if is_time or self._lines[line][0][2] is call}
        for turn, budgets in reversed(self._freed):
            if turn <= call.asked_turn:
                return False
            if not lead.isdisjoint([self.line_of.get(budget, budget) for budget in budgets]):
                return True
        return bool(lead) and len(self._freed) == REMEMBERED  # so much ended that the beginning is forgotten

    def _leads(self, call: "Call") -> bool:
        """Whether it is the first that is held up in a line of a target's, or, where only its own caps do that, in one of these."""
        held = self._held[call]
        targets = [line for line in held if not line.startswith(OF_CALLERS)]
        return any(self._lines[line][0][2] is call for line in targets or held)

    def _call_up(self, call: "Call") -> None:
        if self.sleeping.pop(call, None) is not None:
            self.ready.append(call)

    @staticmethod
    def _waits_for(call: "Call") -> BlockKind | None:
        return call.denied.kind if call.denied is not None else None
