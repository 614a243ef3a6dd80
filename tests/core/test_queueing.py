"""Until its request leaves: what a call asks, where it stands, when it is woken, how it is deferred (P5, P6, P9)."""

from itertools import chain, cycle, repeat

from hypothesis import given, settings
from hypothesis import strategies as st

from life import (
    FAILS,
    HELD,
    SLOT,
    STALE,
    Life,
    World,
    held_for,
    route,
    rung,
    slot_only,
)
from swarmgate.core.answers import BlockKind, Denied
from swarmgate.core.book import first_score
from swarmgate.core.commands import End
from swarmgate.core.events import CLIENT_LEFT, DEADLINE_PASSED, Woken
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.outcome import Signal, classify
from swarmgate.core.reasons import Reason
from swarmgate.core.record import State
from swarmgate.testing.kit import most_in_any_window


def test_a_late_release_ends_no_newer_reservation():
    world = World({"slot": Limits(BudgetKind.LEASES, burst=2)}, delays=chain([600], repeat(1)))
    call = world.call("x", HELD, rungs=(rung("t", slot_only()),))
    world.run(500)
    assert (call.state, call.asks) == (State.SENDING, 2)
    assert world.book.cells["slot"].pending == 2
    world.run(500)
    assert world.book.cells["slot"].pending == 1


def test_backoff_is_outside_every_line_and_nobody_shortens_it():
    world = World()
    holder = world.call("holder", HELD)
    call = world.call("x", Life(connects=((5, True), (5, False))))
    world.run(50)
    assert world.standing("slot") == ["x"]
    world.pump.fire(holder, CLIENT_LEFT)
    world.run(10)
    assert call.state is State.BACKOFF
    assert world.standing("slot") == []
    ends_ms = call.alarm_ms
    assert ends_ms >= world.time.now_ms() + 400
    world.call("y", agent="a", rungs=(rung("t", slot_only()),))
    world.run(ends_ms - world.time.now_ms())
    assert world.end_of(world.calls[-1]) is End.ANSWERED
    assert call.state is State.BACKOFF
    world.run()
    assert call.end is End.ANSWERED


def test_an_agent_with_too_many_tickets_is_sent_away_from_every_line():
    world = World({"a": SLOT, "b": SLOT}, agent_tickets=1)
    world.call("holds a", HELD, rungs=(rung("t", slot_only("k", "a")),))
    world.run(10)
    both = route("k", (("a", 0, 1), ("b", 0, 1)), (), whole=("a", "b"))
    call = world.call("x", agent="a", rungs=(rung("t", both),))
    world.call("behind", agent="b", rungs=(rung("t", slot_only("k", "a")),))
    world.call("holds b", HELD, rungs=(rung("t", slot_only("k", "b")),))
    world.call("stands in b", agent="a", rungs=(rung("t", slot_only("k", "b")),))
    world.run(100)
    assert call.standing == ("a",)
    world.run(1_000)
    assert (call.end, call.reason) == (End.DEFERRED, Reason.POLICY_AGENT_BACKLOG)
    assert call.score == first_score(1)
    assert [one.id for _, _, one in world.room._lines["a"]] == world.standing("a") == ["behind"]
    assert [one.id for _, _, one in world.room._lines["b"]] == world.standing("b") == ["stands in b"]


def test_a_store_that_is_lost_while_the_agent_fills_its_places_is_waited_for():
    world = World({"a": SLOT, "b": SLOT}, delays=chain([1, 1, 1, 150], repeat(1)), agent_tickets=1)
    for name in ("a", "b"):
        world.call(f"holds {name}", HELD, rungs=(rung("t", slot_only("k", name)),))
    world.run(20)
    two_keys = (rung("t", slot_only("k1", "a"), slot_only("k2", "b")),)
    call = world.call("x", Life(wire_ms=0), agent="a", rungs=two_keys)
    world.run(5)
    for name in ("a", "b"):
        world.call(f"fills {name}", agent="a", rungs=(rung("t", slot_only("k", name)),))
    world.run(150)
    assert (call.state, call.reason) == (State.WAITING, Reason.GATE_STORE_LOST)


def test_the_alarm_of_a_stale_attempt_does_not_ring_in_line():
    world = World({"rate": Limits(BudgetKind.LEVEL, burst=1, quota=1, window_ms=15_000)})
    only_rate = (rung("t", route(fixed=(("rate", 1, 0),), metered=(), whole=())),)
    call = world.call("x", Life(sends=(((0, STALE),),)), rungs=only_rate, content_ms=1_000)
    world.run(14_000)
    assert call.state is State.WAITING
    assert world.asks_of(call) == 2


def test_a_store_slower_than_tokens_live_is_not_asked_in_a_loop():
    world = World(delays=repeat(60))
    call = world.call("x", rungs=(rung("t", route(fresh_ms=20)),), wait_until_ms=1_003_000)
    world.run()
    assert (call.end, call.reason) == (End.DEFERRED, Reason.GATE_STORE_LOST)
    assert 3 <= call.old_tokens <= 30
    assert call.attempt == 0
    world.check_clean()


def test_who_gets_no_connection_is_deferred_when_patience_ends():
    world = World()
    call = world.call("x", Life(connects=((3_600_000, True),)), wait_until_ms=1_010_000)
    world.run(9_900)
    assert call.end is None
    world.run(500)
    assert (call.end, call.reason) == (End.DEFERRED, Reason.POLICY_SLOTS)
    world.check_clean()


def test_a_dial_has_its_time_even_where_nobody_waits():
    world = World()
    call = world.call("x", Life(connects=((4_900, True),)), wait_until_ms=1_000_000)
    world.run(5_000)
    assert call.end is End.ANSWERED


def test_a_ticket_that_is_due_when_patience_ends_is_served():
    world = World({"rate": Limits(BudgetKind.LEVEL, burst=1, quota=1, window_ms=1_000)})
    only_rate = (rung("t", route(fixed=(("rate", 1, 0),), metered=(), whole=())),)
    world.call("first", rungs=only_rate)
    world.run(5)
    due_ms = world.time.now_ms() + 1_000
    call = world.call("x", Life(wire_ms=0), rungs=only_rate, wait_until_ms=due_ms)
    world.run(1_100)
    assert call.end is End.ANSWERED


def test_no_wake_up_is_lost_while_a_denial_is_on_its_way():
    for early_ms in range(60):
        world = World({"slot": SLOT}, delays=repeat(30))
        only_slot = (rung("t", slot_only()),)
        holder = world.call("holder", held_for(100), rungs=only_slot)
        while not holder.sent_ms:
            world.run(1)
        world.run(100 - early_ms)
        call = world.call("x", Life(wire_ms=0), rungs=only_slot)
        world.run(200)
        assert call.end is End.ANSWERED, early_ms


def test_what_the_first_cannot_use_yet_does_not_idle_until_the_next_asks_by_itself():
    world = World({"slots": Limits(BudgetKind.LEASES, burst=4), "own": SLOT})
    busy, both = (
        slot_only(slot="own"),
        route(fixed=(("slots", 0, 1), ("own", 0, 1)), metered=(), whole=("slots", "own")),
    )
    world.call("own", held_for(10_000), rungs=(rung("t", busy),))
    for number in range(4):
        world.call(f"holder {number}", held_for(100), rungs=(rung("t", slot_only(slot="slots")),))
    world.run(50)
    first = world.call("first", rank=0, rungs=(rung("t", both),))
    others = [world.call(f"c{n}", held_for(100), rungs=(rung("t", slot_only(slot="slots")),)) for n in range(30)]
    world.run(1_300)  # three at once, ten times, and 5 ms to connect; the fourth place is kept for the first
    assert {call.end for call in others} == {End.ANSWERED}
    world.run()
    assert first.end is End.ANSWERED
    world.check_clean()


def test_what_time_makes_free_behind_a_head_that_waits_for_something_else_does_not_idle():
    world = World({"rate": Limits(BudgetKind.LEVEL, burst=2, quota=10, window_ms=1_000), "own": SLOT})
    both = route(fixed=(("rate", 1, 0), ("own", 0, 1)), metered=(), whole=("own",))
    only_rate = route(fixed=(("rate", 1, 0),), metered=(), whole=())
    world.call("own", held_for(20_000), rungs=(rung("t", slot_only(slot="own")),), content_ms=30_000)
    world.run(20)
    first = world.call("first", rank=0, rungs=(rung("t", both),), wait_until_ms=1_100_000)
    others = [world.call(f"c{n}", Life(wire_ms=0), rungs=(rung("t", only_rate),)) for n in range(30)]
    world.run(3_000)  # ten in a second, and one stays free for the first
    assert {call.end for call in others} == {End.ANSWERED}
    assert first.end is None
    world.run()
    assert first.end is End.ANSWERED
    world.check_clean()


def test_who_waits_is_woken_by_a_grant_that_came_too_late():
    world = World({"slot": SLOT}, delays=repeat(40))
    only_slot = (rung("t", slot_only()),)
    gone = world.call("gone", rungs=only_slot)
    world.run(10)
    call = world.call("x", rungs=only_slot)
    world.run(10)
    world.pump.fire(gone, CLIENT_LEFT)
    world.run(150)
    assert call.state in {State.SENDING, State.ENDED}


delays_ms = st.lists(st.one_of(st.integers(0, 99), st.sampled_from((0, 20, 99, 150, 600))), min_size=1, max_size=60)
FEW = Limits(BudgetKind.LEVEL, burst=4, quota=20, window_ms=1_000)


@settings(max_examples=30, deadline=None)
@given(delays_ms, st.lists(st.integers(0, 4_900), min_size=1, max_size=40), st.integers(5, 250))
def test_rb_02_no_window_of_what_leaves_holds_more_than_burst_and_rate_and_what_a_token_lives(store, dials, fresh_ms):
    world = World({"rate": FEW}, delays=cycle(store))
    way = rung("t", route(fixed=(("rate", 1, 0),), metered=(), whole=(), fresh_ms=fresh_ms))
    for number, dial_ms in enumerate(dials):
        world.call(
            f"c{number}", Life(connects=((dial_ms, True),)), rungs=(way,), agent=f"a{number}", after_ms=7 * number
        )
    world.run()
    sent = [(at_ms, FEW.window_ms) for *_, at_ms in world.wire.seen]
    assert most_in_any_window(
        sent, FEW.burst * FEW.window_ms + FEW.quota * fresh_ms, FEW.quota * FEW.window_ms, FEW.window_ms
    )
    world.check_clean()


def test_rb_30_two_thousand_who_wait_ask_seldom():
    """At most once in five seconds each, and once more whoever is served."""
    world = World({"rate": FEW})
    way = rung("t", route(fixed=(("rate", 1, 0),), metered=(), whole=()))
    calls = [world.call(f"c{n}", rungs=(way,), agent=f"a{n}", wait_until_ms=1_200_000) for n in range(2_000)]
    world.run(10_000)
    asked, served = (sum(call.asks for call in calls), sum(call.attempt for call in calls))
    world.run(20_000)
    asked, served = sum(call.asks for call in calls) - asked, sum(call.attempt for call in calls) - served
    assert served == 400
    assert asked <= 2_000 * 4 + 2 * served


def test_nothing_leaves_after_the_deadline():
    world = World(delays=repeat(60))
    call = world.call("x", deadline_ms=1_000_060)
    world.run(1_000)
    assert (call.end, call.reason) == (End.FAILED, Reason.CALLER_DEADLINE)
    assert not world.wire.seen
    world.check_clean()


def test_every_take_of_a_call_has_its_own_lease():
    world = World(delays=chain([150, 150, 60, 60], repeat(1)))
    world.call("x", Life(sends=(((5, FAILS),), ((5, STALE),))), rungs=(rung("t", route(fresh_ms=20)),))
    world.run()
    leases = [request.lease for request in world.store.taken]
    assert len(leases) == len(set(leases)) > 4


def test_a_call_that_was_due_and_late_ends_once():
    world = World()
    world.call("holder", HELD)
    call = world.call("x", deadline_ms=1_000_300, wait_until_ms=1_000_300)
    world.run(200)
    world.pump.fire(call, DEADLINE_PASSED)
    world.run(500)
    assert [answer.end for answer in world.answers["x"]] == [End.FAILED]
    assert all(event is not Woken for _, state, event, _ in world.events_of(call) if state is State.ENDED)


def test_a_denial_in_line_keeps_the_place_that_the_store_gave():
    world = World()
    world.call("holder", HELD)
    call = world.call("x")
    world.run(30)
    assert isinstance(call.denied, Denied)
    assert call.denied.kind is BlockKind.EVENT
    score = call.score
    world.run(2_000)
    assert world.asks_of(call) > 1
    assert call.score == score
    assert call.standing == ("slot",)


def test_only_who_will_wait_asks_for_a_place_and_only_it_is_first_asked_for_one_key():
    world = World({"a": SLOT, "b": SLOT})
    two_keys = (rung("t", slot_only("k1", "a"), slot_only("k2", "b")),)
    for name in ("a", "b"):
        world.call(f"holds {name}", HELD, rungs=(rung("t", slot_only("k", name)),))
    world.run(20)
    world.call("waits", Life(wire_ms=0), rungs=two_keys, wait_until_ms=world.time.now_ms() + 1)
    world.call("does not", Life(wire_ms=0), rungs=two_keys, wait_until_ms=world.time.now_ms())
    seen = world.store.taken[2:]
    assert [(one.ticket, one.waits, len(one.alternatives)) for one in seen] == [
        ("waits", True, 1),
        ("waits", True, 2),
        ("does not", False, 2),
    ]
    assert seen[1].standing
    assert seen[1].score < first_score(1)


def test_who_finds_its_agents_places_taken_is_paced_without_one():
    world = World(agent_tickets=1)
    world.call("holder", HELD)
    for name in ("one", "two"):
        world.call(name, HELD, agent="a")
        world.run(20)
    assert [(one.ticket, one.waits) for one in world.store.taken][-2:] == [("two", True), ("two", False)]
    assert world.standing("slot") == ["one"]


def test_a_call_that_connects_again_has_no_key_yet():
    world = World()
    call = world.call("x", Life(connects=((0, True), (50, True)), sends=(((5, STALE),),)))
    world.run(10)
    assert (call.state, call.route) == (State.CONNECTING, None)


def test_patience_and_time_end_at_their_instant():
    world = World()
    late = world.call("late", Life(wire_ms=0), deadline_ms=1_000_000)
    unserved = world.call("unserved", Life(connects=((3_600_000, True),)), wait_until_ms=1_010_000)
    assert (late.end, late.reason) == (End.FAILED, Reason.CALLER_DEADLINE)
    world.run(10_001)
    assert unserved.end is End.DEFERRED
    assert unserved.denied.not_before_ms - unserved.denied.now_ms == 1_000


def test_a_connection_that_dies_while_the_store_is_asked_costs_a_token_and_a_retry():
    world = World(delays=repeat(30))
    call = world.call("x")
    world.run(20)
    assert call.state is State.ASKING
    world.wire.die(call)
    assert call.state is State.ASKING
    world.run()
    assert (call.end, call.attempt, call.retries, len(world.wire.seen)) == (End.ANSWERED, 2, 1, 1)
    world.check_clean()


def test_a_connection_that_dies_while_the_store_says_no_is_given_up():
    world = World(delays=repeat(30))
    world.call("holder", held_for(500))
    world.run(50)
    call = world.call("x")
    world.run(20)
    world.wire.die(call)
    world.run()
    assert (call.end, call.retries) == (End.ANSWERED, 0)
    world.check_clean()


def test_who_was_deferred_comes_back_before_those_who_came_later():
    world = World({"slot": SLOT})
    only_slot = (rung("t", slot_only()),)
    world.call("holder", held_for(500), rungs=only_slot)
    world.run(20)
    away = world.call("away", rungs=only_slot, wait_until_ms=1_000_000)
    world.run(20)
    assert away.end is End.DEFERRED
    later = world.call("later", held_for(300), rungs=only_slot)
    world.run(20)
    again = world.call("again", held_for(300), rungs=only_slot, ticket=away.ticket, score=away.denied.score)
    world.run()
    assert (later.end, again.end) == (End.ANSWERED, End.ANSWERED)
    assert again.sent_ms < later.sent_ms


def test_a_call_that_was_crowded_once_may_wait_later():
    world = World({"slot": SLOT}, delays=repeat(30), agent_tickets=1)
    only_slot = (rung("t", slot_only()),)
    world.call("holder", held_for(115), rungs=only_slot)
    world.run(50)
    world.call("one", held_for(2_000), rungs=only_slot, agent="a")
    world.run(70)
    call = world.call("x", Life(sends=(((20, FAILS),),)), rungs=only_slot, agent="a", rank=0)
    world.run()
    assert call.attempt == 2
    assert (call.end, call.reason) == (End.ANSWERED, None)
    assert [one.waits for one in world.store.taken if one.ticket == "x"][:3] == [True, False, True]


def test_a_denied_take_uses_up_no_probe():
    world = World()
    holder = world.call("holder", HELD)
    world.run(10)
    keys = rung("t", slot_only())
    keys.ring.observe("k1", classify(Signal(429, hint_ms=1)), 0, world.time.now_ms())
    world.run(10)
    waits = world.call("x", HELD, rungs=(keys,))
    world.run(10)
    assert waits.state is State.WAITING
    assert keys.ring.ready(world.time.now_ms())
    world.pump.fire(holder, CLIENT_LEFT)
    world.run(300)
    assert waits.state is State.SENDING
