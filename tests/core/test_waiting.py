"""The waiting room against a brute-force model: whom it wakes and when, the agents' cap, no stale alarm, bounded memory."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from records import a_call
from swarmgate.core.answers import Blocker, BlockKind, Denied
from swarmgate.core.limits import EXACT, Tier
from swarmgate.core.record import Step
from swarmgate.core.waiting import FEWEST_ALARMS, REMEMBERED, STIRRED_MS, Room

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


def denied(kind, blocking, tier, at_ms):
    """What a call is told that these lines hold up, which blocks at such tiers until such instants."""
    blockers = tuple(Blocker(BUDGET_OF[line], kind, at_ms[line], 0, 0, 0, 0, 1, tier[line]) for line in blocking)
    return Denied(0, kind, 0, 0, 0, 0, blockers, 0, (), 0, 0)


indexes = st.integers(0, 7)
instants_ms = st.sampled_from((0, 100, 300, 500, 700, 1_500, 2_500))


class RoomModel(RuleBasedStateMachine):
    """Calls ask, sleep, wake, leave; reservations end; limits change; time passes."""

    def __init__(self):
        super().__init__()
        self.room = Room(CAP)
        self.room.line_of.update(LINE_OF)
        self.calls = [waiter(number) for number in range(8)]
        self.held = {call: set() for call in self.calls}  # the lines that held it up when it asked last
        self.now_ms = 0
        self.places = {}
        self.sleeping = {}  # until when
        self.first = {}  # of those that wait for time alone: from when they could start
        self.ended = {call: set() for call in self.calls}  # lines in which something ended since the call asked
        self.up = []

    def order(self, line):
        return sorted((call for call in self.places if line in self.held[call]), key=lambda c: (c.score, c.id))

    def held_lines(self, call):
        return [line for line in self.places[call] if line in self.held[call]]

    def depth(self, line):
        return sum(line in lines for lines in self.places.values())

    def something_ended(self, line):
        for lines in self.ended.values():
            lines.add(line)

    def call_up(self, call):
        if self.sleeping.pop(call, None) is not None:
            self.up.append(call)

    def expect_who_was_called_up(self):
        assert sorted(self.room.ready, key=repr) == sorted(self.up, key=repr)
        self.room.ready.clear()
        self.up.clear()

    def tell(self, line, first):
        """The first who sleeps and waits for more than time, unless somebody before it is awake."""
        for call in self.order(line)[first:]:
            if call not in self.sleeping:
                break
            if call.denied.kind is not BlockKind.TIME:
                self.call_up(call)
                break

    def stir(self, line):
        """What those in line were told of instants no longer counts."""
        for call in self.order(line):
            if call in self.first:
                self.first[call] = min(self.first[call], call.asked_ms + STIRRED_MS)

    def look_on(self, line):
        """Nobody sleeps longer than it was told while all before it sleep on and let it pass."""
        order = self.order(line)
        for place, call in enumerate(order):
            before = order[:place]
            if call not in self.sleeping or not all(
                one in self.sleeping and self.lets_pass(one, line) for one in before
            ):
                break
            at_ms = max(self.first[call], call.asked_ms + STIRRED_MS) if call in self.first else self.sleeping[call]
            if at_ms < self.sleeping[call] and all(at_ms + STIRRED_MS <= self.sleeping[one] for one in before):
                self.sleeping[call] = at_ms

    def lets_pass(self, call, line):
        """It waits in that line for one of several budgets, for no event, and for less long than elsewhere."""
        here = [one for one in call.denied.blockers if one.budget == BUDGET_OF[line]]
        if not here or line == "pool" or call.denied.kind is BlockKind.LINE:
            return True
        return call.denied.kind is BlockKind.TIME and here[0].at_ms < max(one.at_ms for one in call.denied.blockers)

    def pass_on(self, call):
        """Whom a call that sleeps again lets ask in the lines that do not hold it up."""
        for line in call.standing if len(call.standing) > 1 else ():
            if line not in self.held[call]:
                self.tell(line, self.before(line, call))

    def before(self, line, call):
        return sum((one.score, one.id) < (call.score, call.id) for one in self.order(line))

    def step_out(self, call, line, was_held):
        """Who asks because that line does not hold the call up any more."""
        place = self.before(line, call)
        behind = self.order(line)[place:][:1]
        if behind and ((was_held and place == 0) or behind[0].denied.kind is BlockKind.LINE):
            self.call_up(behind[0])
        elif behind and was_held:
            self.look_on(line)

    def asleep(self, call):
        return call in self.sleeping

    @rule(index=indexes)
    def ask(self, index):
        call = self.calls[index]
        if not self.asleep(call):
            call.asked_turn, call.asked_ms = self.room.turn, self.now_ms
            self.ended[call] = set()

    @rule(
        index=indexes,
        more=st.sets(st.sampled_from(LINES)),
        kind=st.sampled_from((*BlockKind, BlockKind.TIME, BlockKind.TIME)),
        elsewhere=st.sets(st.sampled_from(LINES)),
        tiers=st.tuples(*[st.sampled_from(Tier)] * len(LINES)),
        at_ms=st.tuples(*[st.integers(0, 1)] * len(LINES)),
        for_ms=instants_ms,
        first_ms=instants_ms,
    )
    def sleep(self, index, more, kind, elsewhere, tiers, at_ms, for_ms, first_ms):
        call = self.calls[index]
        if self.asleep(call):
            self.wake(index)
        was = self.held_lines(call) if call in self.places else []
        call.standing = tuple(dict.fromkeys((*self.places.get(call, ()), *sorted(more))))
        blocking = set(call.standing) - elsewhere  # of none is known what blocks: a store that is lost
        tier, at_ms = dict(zip(LINES, tiers, strict=True)), dict(zip(LINES, at_ms, strict=True))
        if kind is BlockKind.TIME:
            longest_ms = max((at_ms[line] for line in blocking), default=0)
            first = min((tier[line] for line in blocking if at_ms[line] == longest_ms), default=None)
        else:
            first = min((tier[line] for line in blocking), default=None)
        self.held[call] = {line for line in blocking if first is not None and tier[line] <= first} or set(call.standing)
        call.denied = denied(kind, blocking, tier, at_ms)
        self.places[call] = call.standing
        for line in was:
            if line not in self.held[call]:
                self.step_out(call, line, was_held=True)
        self.room.wait(call, self.now_ms + for_ms, self.now_ms + first_ms)
        self.slept(call, self.now_ms + for_ms, self.now_ms + first_ms)

    def slept(self, call, due_ms, first_ms):
        leads = {line for line in self.held[call] if self.order(line)[0] is call}
        self.sleeping[call] = min(due_ms, first_ms) if leads else due_ms
        self.first.pop(call, None)
        if call.standing and call.denied and call.denied.kind is BlockKind.TIME:
            missed = self.held[call] & self.ended[call]
            self.first[call] = min(first_ms, call.asked_ms + STIRRED_MS) if missed else first_ms
        elif leads & self.ended[call]:
            self.call_up(call)
        if call in self.sleeping:
            self.pass_on(call)
        for line in self.held_lines(call):
            self.look_on(line)
        self.expect_who_was_called_up()

    @rule(index=indexes)
    def wake(self, index):
        call = self.calls[index]
        self.room.wake(call)
        self.sleeping.pop(call, None)
        if self.places.get(call) == ():
            del self.places[call]
        self.expect_who_was_called_up()

    @rule(index=indexes)
    def leave(self, index):
        call = self.calls[index]
        was, lines = self.held[call], self.places.pop(call, ())
        self.sleeping.pop(call, None)
        self.first.pop(call, None)
        self.held[call] = set()
        self.room.leave(call)
        for line in lines:
            self.something_ended(line)
            self.step_out(call, line, line in was)
        self.expect_who_was_called_up()
        call.standing = ()

    @rule(budgets=st.lists(st.sampled_from(BUDGETS), max_size=3))
    def freed(self, budgets):
        for budget in budgets:
            line = LINE_OF.get(budget, budget)
            self.something_ended(line)
            self.tell(line, 0)
            self.stir(line)
            self.look_on(line)
        self.room.freed(tuple(budgets))
        self.expect_who_was_called_up()

    @rule(budget=st.sampled_from(BUDGETS))
    def revised(self, budget):
        line = LINE_OF.get(budget, budget)
        self.something_ended(line)
        self.stir(line)
        for call in self.order(line)[:1]:
            self.call_up(call)
        self.room.revised((budget,))
        self.expect_who_was_called_up()

    @rule(for_ms=st.integers(0, 700))
    def time_passes(self, for_ms):
        self.now_ms += for_ms
        due = {call: due_ms for call, due_ms in self.sleeping.items() if due_ms <= self.now_ms}
        found = self.room.due(self.now_ms)
        assert sorted(found, key=repr) == sorted(due, key=repr)
        assert [due[call] for call in found] == sorted(due.values())
        for call in due:
            del self.sleeping[call]

    @precondition(lambda self: self.sleeping)
    @rule(data=st.data())
    def often_woken_often_asleep(self, data):
        """Alarms that no longer count do not pile up."""
        call = data.draw(st.sampled_from(sorted(self.sleeping, key=repr)))
        due_ms = self.sleeping[call]
        for _ in range(200):
            self.room.wake(call)
            call.asked_turn = self.room.turn
            self.room.wait(call, due_ms)
        self.ended[call] = set()
        self.places.setdefault(call, call.standing)
        self.slept(call, due_ms, EXACT)

    @invariant()
    def agrees(self):
        assert len(self.room) == len(self.places)
        assert {call: due_ms for call, (due_ms, _) in self.room.sleeping.items()} == self.sleeping
        assert self.room.next_ms() == min(self.sleeping.values(), default=None)
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
            assert (self.room._held, self.room._depths, self.room._first) == ({}, {}, {})


RoomModel.TestCase.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
TestRoom = RoomModel.TestCase
