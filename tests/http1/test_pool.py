import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from swarmgate.http1.pool import DOUBT_MS, EXTRA_MS, NOTHING, Pool, PoolFull, Todo

MOST, IDLE_MS, MAX_WAITING = 3, 3 * EXTRA_MS, 5
LONG_MS = 10**9


def make() -> Pool[str, str]:
    return Pool(MOST, idle_ms=IDLE_MS, max_waiting=MAX_WAITING)


def test_the_first_call_dials_and_gets_what_was_dialled():
    pool = make()
    assert pool.ask("call", 0) == Todo([], 1, [])
    assert pool.opened("c1", 5) == Todo([("call", "c1")], 0, [])
    assert (pool.uses, pool.dials) == (1, 1)


def test_idle_connections_are_reused_last_in_first_out():
    pool = make()
    for name in ("a", "b"):
        pool.ask(name, 0)
    for name in ("c1", "c2"):
        pool.opened(name, 0)
    pool.give_back("c1", 10, LONG_MS)
    pool.give_back("c2", 11, LONG_MS)
    assert pool.idle() == ["c1", "c2"]
    assert pool.ask("d", 12) == Todo([("d", "c2")], 0, [])
    assert (pool.uses, pool.dials) == (3, 2)


def test_a_freed_connection_goes_to_the_longest_waiting_call_and_the_dial_becomes_idle():
    pool = make()
    pool.ask("a", 0)
    pool.opened("c1", 0)
    assert pool.ask("b", 1).dial == 1
    assert pool.give_back("c1", 2, LONG_MS) == Todo([("b", "c1")], 0, [])
    assert pool.opened("c2", 3) == NOTHING
    assert pool.idle() == ["c2"]


def test_the_coldest_expire_and_never_serve():
    pool = make()
    pool.ask("a", 0)
    pool.opened("c1", 0)
    pool.give_back("c1", 10, LONG_MS)
    assert pool.expire(10 + IDLE_MS - 1, MOST) == NOTHING
    assert pool.ask("b", 10 + IDLE_MS) == Todo([], 1, ["c1"])


def test_beyond_its_size_the_coldest_go_first_and_soon_and_what_is_leased_stays():
    pool = make()
    for name in ("a", "b", "c"):
        pool.ask(name, 0)
        pool.opened(f"on {name}", 0)
    pool.give_back("on a", 10, LONG_MS)
    pool.give_back("on b", 20, LONG_MS)
    assert pool.expire(10 + EXTRA_MS - 1, 1) == NOTHING
    assert pool.expire(20 + EXTRA_MS, 2) == Todo([], 0, ["on a"])
    assert pool.expire(20 + EXTRA_MS, 2) == NOTHING
    assert pool.expire(20 + EXTRA_MS, 0) == Todo([], 0, ["on b"])
    assert pool.in_use == pool.open == 1


def test_a_failed_dial_is_told_to_the_call_that_waited_longest():
    pool = make()
    pool.ask("a", 0)
    pool.ask("b", 0)
    assert pool.failed(1) == ("a", NOTHING)
    assert pool.failed(2) == ("b", NOTHING)
    assert pool.is_empty


def test_better_classes_go_first_and_inside_a_class_the_first_that_came():
    pool = Pool(1, idle_ms=IDLE_MS, max_waiting=MAX_WAITING)
    for name, rank in (("late", 2), ("later", 2), ("usual", 1), ("urgent", 0), ("next", 0)):
        pool.ask(name, 0, rank)
    served = [pool.opened("c", 1).give[0][0]]
    while (todo := pool.give_back("c", 2, LONG_MS)).give:
        served.append(todo.give[0][0])
    assert served == ["urgent", "next", "usual", "late", "later"]


def test_where_too_many_wait_the_newest_of_a_worse_class_gives_way():
    pool = make()
    for name, rank in (("a", 1), ("b", 2), ("c", 2), ("d", 1), ("e", 1)):
        pool.ask(name, 0, rank)
    assert pool.ask("f", 0, 0).turned_away == ["c"]
    assert pool.ask("g", 0, 1).turned_away == ["b"]
    with pytest.raises(PoolFull):
        pool.ask("h", 0, 1)
    assert pool.ask("i", 0, 0).turned_away == ["g"]
    assert pool.opened("c1", 0).give == [("f", "c1")]


def test_a_withdrawn_call_gets_nothing():
    pool = make()
    pool.ask("a", 0)
    assert pool.withdraw("a")
    assert not pool.withdraw("a")
    assert pool.failed(1) == (None, NOTHING)


def left_behind(pool, at_ms=0):
    """Two dials under way whose calls have left."""
    for name in ("a", "b"):
        pool.ask(name, at_ms)
        pool.withdraw(name)


def test_a_new_dial_serves_who_comes_after_its_own_call_left():
    pool = make()
    left_behind(pool)
    assert pool.dials == 1  # the second call counted on the first one's
    assert pool.ask("c", DOUBT_MS - 1) == NOTHING
    assert pool.opened("c1", DOUBT_MS).give == [("c", "c1")]


def test_an_old_dial_of_a_call_that_left_keeps_nobody_waiting_and_its_failure_is_nobodys():
    pool = make()
    left_behind(pool)
    assert pool.ask("c", DOUBT_MS).dial == 1
    assert pool.ask("d", DOUBT_MS + 1) == NOTHING  # it counts on both
    assert pool.failed(DOUBT_MS + 2) == (None, Todo([], 1, []))
    assert pool.failed(DOUBT_MS + 3) == ("c", NOTHING)
    assert pool.failed(DOUBT_MS + 4) == ("d", NOTHING)
    assert pool.is_empty


def test_who_counted_on_a_dial_of_another_has_its_own_when_that_is_old():
    pool = make()
    left_behind(pool)
    assert pool.ask("c", 1) == NOTHING
    assert pool.expire(DOUBT_MS, MOST).dial == 1
    assert pool.expire(2 * DOUBT_MS, MOST) == NOTHING
    assert pool.opened("c1", 2 * DOUBT_MS).give == [("c", "c1")]


def test_the_dial_of_a_call_that_found_another_connection_is_one_of_nobody():
    pool = make()
    pool.ask("a", 0)
    pool.opened("c1", 0)
    assert pool.ask("b", 0).dial == 1
    pool.give_back("c1", 1, LONG_MS)  # to b
    assert pool.ask("c", DOUBT_MS).dial == 1
    assert pool.failed(DOUBT_MS + 1) == (None, NOTHING)


def test_a_call_whose_connection_was_closed_goes_first():
    pool = make()
    for name in ("a", "b", "c"):
        pool.ask(name, 0)
    pool.opened("c1", 0)
    assert pool.bounce("a", "c1", 1).dial == 1
    assert pool.opened("c2", 2).give == [("a", "c2")]


def test_a_peer_that_keeps_connections_shorter_is_believed():
    pool = make()
    for name in ("a", "b"):
        pool.ask(name, 0)
    for name in ("c1", "c2"):
        pool.opened(name, 0)
    pool.give_back("c1", 0, LONG_MS)
    pool.give_back("c2", 0, 10)
    assert pool.ask("c", 10) == Todo([("c", "c1")], 0, ["c2"])


def test_the_line_has_an_end():
    pool = make()
    for at in range(MAX_WAITING):
        pool.ask(f"w{at}", 0)
    with pytest.raises(PoolFull) as caught:
        pool.ask("one more", 0)
    assert (caught.value.field, caught.value.reason) == ("waiting", "pool_full")
    assert str(MAX_WAITING) in str(caught.value)
    assert pool.opened("c1", 0).give == [("w0", "c1")]


class AnyOrderOfEvents(RuleBasedStateMachine):
    """A model keeps who was promised what; the pool must agree after every event."""

    def __init__(self) -> None:
        super().__init__()
        self.pool, self.now_ms, self.serial = make(), 0, 0
        self.lines, self.leased, self.idle, self.dialling = [[], [], []], {}, {}, 0
        self.idle_since = {}

    @property
    def waiting(self):
        return [waiter for line in self.lines for waiter in line]

    def first(self):
        return next(line for line in self.lines if line).pop(0)

    def name(self) -> str:
        self.serial += 1
        return f"n{self.serial}"

    def carry_out(self, todo: Todo[str, str]) -> None:
        for connection in todo.close:
            assert self.idle.pop(connection) <= self.now_ms
        for waiter, connection in todo.give:
            assert waiter == self.first()
            assert self.idle.pop(connection) > self.now_ms
            self.leased[connection] = waiter
        self.dialling += todo.dial

    @property
    def total(self):
        return len(self.leased) + len(self.idle) + self.dialling

    @rule(passed_ms=st.integers(0, IDLE_MS), size=st.integers(0, MOST))
    def time_passes(self, passed_ms, size):
        """What closes was idle: for too long, or beyond the size for some time; nothing else of that kind stays."""
        self.now_ms += passed_ms
        cold_ms = self.now_ms - EXTRA_MS
        todo = self.pool.expire(self.now_ms, size)
        for connection in todo.close:
            is_extra = self.total > size and self.idle_since[connection] <= cold_ms
            assert self.idle.pop(connection) <= self.now_ms or is_extra
        self.carry_out(todo._replace(close=[]))
        assert self.total <= size or all(self.idle_since[connection] > cold_ms for connection in self.idle)

    @precondition(lambda self: len(self.waiting) < MAX_WAITING)
    @rule(rank=st.integers(0, 2))
    def ask(self, rank):
        waiter = self.name()
        self.lines[rank].append(waiter)
        self.carry_out(self.pool.ask(waiter, self.now_ms, rank))

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def withdraw(self, data):
        waiter = data.draw(st.sampled_from(self.waiting))
        next(line for line in self.lines if waiter in line).remove(waiter)
        assert self.pool.withdraw(waiter)

    @precondition(lambda self: self.dialling)
    @rule()
    def opened(self):
        self.dialling -= 1
        connection = self.name()
        self.idle[connection], self.idle_since[connection] = self.now_ms + IDLE_MS, self.now_ms
        self.carry_out(self.pool.opened(connection, self.now_ms))

    @precondition(lambda self: self.dialling)
    @rule()
    def failed(self):
        self.dialling -= 1
        victim, todo = self.pool.failed(self.now_ms)
        assert victim is None or victim == self.first()
        self.carry_out(todo)

    @precondition(lambda self: self.leased)
    @rule(data=st.data(), keep_ms=st.integers(0, 2 * IDLE_MS))
    def give_back(self, data, keep_ms):
        connection = data.draw(st.sampled_from(sorted(self.leased)))
        del self.leased[connection]
        self.idle[connection], self.idle_since[connection] = self.now_ms + min(IDLE_MS, keep_ms), self.now_ms
        self.carry_out(self.pool.give_back(connection, self.now_ms, keep_ms))

    @precondition(lambda self: self.leased)
    @rule(data=st.data(), rank=st.integers(0, 2))
    def bounce(self, data, rank):
        connection = data.draw(st.sampled_from(sorted(self.leased)))
        waiter = self.leased.pop(connection)
        self.lines[rank].insert(0, waiter)
        self.carry_out(self.pool.bounce(waiter, connection, self.now_ms, rank))

    @precondition(lambda self: self.leased or self.idle)
    @rule(data=st.data())
    def lost(self, data):
        connection = data.draw(st.sampled_from(sorted([*self.leased, *self.idle])))
        self.leased.pop(connection, None)
        self.idle.pop(connection, None)
        self.carry_out(self.pool.lost(connection, self.now_ms))

    @invariant()
    def bounded_and_nobody_waits_beside_room(self):
        assert self.total <= MOST
        assert not (self.waiting and self.idle)
        assert self.dialling >= len(self.waiting) or self.total == MOST
        assert 0 <= self.pool._promised <= min(self.dialling, len(self.waiting))
        assert self.pool.is_empty is (not self.waiting and self.total == 0)


TestAnyOrderOfEvents = AnyOrderOfEvents.TestCase
TestAnyOrderOfEvents.settings = settings(max_examples=100, stateful_step_count=40)
