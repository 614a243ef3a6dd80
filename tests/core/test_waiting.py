"""The waiting room against a brute-force model: whom it wakes and when, the agents' cap, no stale alarm, bounded memory."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from records import a_call
from swarmgate.core.answers import Blocker, BlockKind, Denied
from swarmgate.core.limits import Tier
from swarmgate.core.record import Step
from swarmgate.core.waiting import FEWEST_ALARMS, REMEMBERED, Room

LINE_OF = {"k1": "pool", "k2": "pool"}
BUDGETS = ("a", "b", "k1", "k2")
LINES = ("a", "b", "pool")
BUDGET_OF = {"a": "a", "b": "b", "pool": "k2"}
CAP = 2


def waiter(number):
    """One of eight calls: the first is nobody's, the next four are of one agent."""
    call = a_call(f"c{number}")
    call.step = Step(agent="" if number == 0 else "one" if number < 5 else "other")
    call.score = 100 - number // 2 * 10
    return call


def denied(kind, blocking, tier):
    """What a call is told that these lines hold up, which blocks at such tiers."""
    blockers = tuple(Blocker(BUDGET_OF[line], kind, 0, 0, 0, 0, 0, 1, tier[line]) for line in blocking)
    return Denied(0, kind, 0, 0, 0, 0, blockers, 0, (), 0, 0)


indexes = st.integers(0, 7)


class RoomModel(RuleBasedStateMachine):
    """Calls ask, sleep, wake, leave; reservations end; time passes."""

    def __init__(self):
        super().__init__()
        self.room = Room(CAP)
        self.room.line_of.update(LINE_OF)
        self.calls = [waiter(number) for number in range(8)]
        self.held = {call: set() for call in self.calls}  # the lines that held it up when it asked last
        self.now_ms = 0
        self.waits = 0
        self.places = {}
        self.sleeping = {}  # call -> (due_ms, number of the wait)
        self.ended = {call: set() for call in self.calls}  # lines in which something ended since the call asked

    def order(self, line):
        return sorted((call for call in self.places if line in self.held[call]), key=lambda c: (c.score, c.id))

    def depth(self, line):
        return sum(line in lines for lines in self.places.values())

    def something_ended(self, line):
        for lines in self.ended.values():
            lines.add(line)

    def expect(self, ready, already=()):
        assert sorted(self.room.ready, key=repr) == sorted([*ready, *already], key=repr)
        for call in ready:
            del self.sleeping[call]
        self.room.ready.clear()

    def told(self, line, first, ready):
        """The first who sleeps and waits for more than time, unless somebody before it is awake."""
        for call in self.order(line)[first:]:
            if call not in self.sleeping or call in ready:
                break
            if call.denied.kind is not BlockKind.TIME:
                ready.append(call)
                break

    def passed_on(self, call):
        """Whom a call that sleeps again lets ask in the lines that do not hold it up."""
        ready = []
        for line in call.standing if len(call.standing) > 1 else ():
            if line not in self.held[call]:
                self.told(line, self.before(line, call), ready)
        return ready

    def before(self, line, call):
        return sum((one.score, one.id) < (call.score, call.id) for one in self.order(line))

    def stepped_out(self, call, line, was_held):
        """Who asks because that line does not hold the call up any more."""
        behind = self.order(line)[self.before(line, call) :][:1]
        leads = was_held and self.before(line, call) == 0
        return [one for one in behind if one in self.sleeping and (leads or one.denied.kind is BlockKind.LINE)]

    def asleep(self, call):
        return call in self.sleeping

    @rule(index=indexes)
    def ask(self, index):
        call = self.calls[index]
        if not self.asleep(call):
            call.asked_turn = self.room.turn
            self.ended[call] = set()

    @rule(
        index=indexes,
        more=st.sets(st.sampled_from(LINES)),
        kind=st.sampled_from(BlockKind),
        elsewhere=st.sets(st.sampled_from(LINES)),
        tiers=st.tuples(*[st.sampled_from(Tier)] * len(LINES)),
        for_ms=st.integers(0, 500),
        first_ms=st.integers(0, 500),
    )
    def sleep(self, index, more, kind, elsewhere, tiers, for_ms, first_ms):
        call = self.calls[index]
        if self.asleep(call):
            return
        call.standing = tuple(dict.fromkeys((*self.places.get(call, ()), *sorted(more))))
        blocking = set(call.standing) - elsewhere  # of none is known what blocks: a store that is lost
        tier = dict(zip(LINES, tiers, strict=True))
        first = min((tier[line] for line in blocking), default=None)
        was, self.held[call] = self.held[call], {line for line in blocking if tier[line] == first} or set(call.standing)
        call.denied = denied(kind, blocking, tier)
        self.places[call] = call.standing
        out = {one for line in was - self.held[call] for one in self.stepped_out(call, line, was_held=True)}
        for one in out:
            self.sleeping.pop(one)
        self.room.wait(call, self.now_ms + for_ms, self.now_ms + first_ms)
        self.waits += 1
        leads = {line for line in self.held[call] if self.order(line)[0] is call}
        if leads:
            for_ms = min(for_ms, first_ms)
        self.sleeping[call] = (self.now_ms + for_ms, self.waits)
        ready = [call] if call.standing and kind is not BlockKind.TIME and leads & self.ended[call] else []
        ready = ready or self.passed_on(call)
        self.expect(ready, out)

    @rule(index=indexes)
    def wake(self, index):
        call = self.calls[index]
        self.room.wake(call)
        self.sleeping.pop(call, None)
        if self.places.get(call) == ():
            del self.places[call]
        self.expect([])

    @rule(index=indexes)
    def leave(self, index):
        call = self.calls[index]
        lines = self.places.pop(call, ())
        was, self.held[call] = self.held[call], set()
        ready = {one for line in lines for one in self.stepped_out(call, line, line in was)}
        for line in lines:
            self.something_ended(line)
        self.room.leave(call)
        self.sleeping.pop(call, None)
        self.expect(ready)
        call.standing = ()

    @rule(budgets=st.lists(st.sampled_from(BUDGETS), max_size=3))
    def freed(self, budgets):
        ready = []
        for budget in budgets:
            line = LINE_OF.get(budget, budget)
            self.something_ended(line)
            self.told(line, 0, ready)
        self.room.freed(tuple(budgets))
        self.expect(ready)

    @rule(for_ms=st.integers(0, 300))
    def time_passes(self, for_ms):
        self.now_ms += for_ms
        due = sorted((when, call) for call, when in self.sleeping.items() if when[0] <= self.now_ms)
        assert self.room.due(self.now_ms) == [call for _, call in due]
        for _, call in due:
            del self.sleeping[call]

    @precondition(lambda self: self.sleeping)
    @rule(data=st.data())
    def often_woken_often_asleep(self, data):
        """Alarms that no longer count do not pile up."""
        call = data.draw(st.sampled_from(sorted(self.sleeping, key=repr)))
        due_ms = self.sleeping[call][0]
        for _ in range(200):
            self.room.wake(call)
            call.asked_turn = self.room.turn
            self.room.wait(call, due_ms)
            self.waits += 1
        self.ended[call] = set()
        self.sleeping[call] = (due_ms, self.waits)
        self.places.setdefault(call, call.standing)
        self.expect(self.passed_on(call))

    @invariant()
    def agrees(self):
        assert len(self.room) == len(self.places)
        assert self.room.next_ms() == min((due_ms for due_ms, _ in self.sleeping.values()), default=None)
        for line in LINES:
            order = self.order(line)
            assert [call for _, _, call in self.room._lines.get(line, ())] == order
            assert self.room.depth(line) == self.depth(line)
            for call in self.calls:
                there = [one for one, lines in self.places.items() if line in lines]
                others = [one for one in there if one.step.agent == call.step.agent and one is not call]
                assert self.room.crowded(call, (line,)) == (call.step.agent != "" and len(others) >= CAP)

    @invariant()
    def stays_small(self):
        assert len(self.room._alarms) <= 2 * len(self.calls) + FEWEST_ALARMS + 1
        assert len(self.room._freed) <= REMEMBERED
        if not self.places:
            assert (self.room._lines, self.room._tickets, self.room.sleeping) == ({}, {}, {})
            assert (self.room._held, self.room._depths) == ({}, {})


RoomModel.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestRoom = RoomModel.TestCase
