"""Which key at which rung: what is offered, when a rung is left, who waits for a key (design 4: Keys, Retry)."""

from itertools import repeat

import pytest

from life import (
    FAILS,
    HELD,
    KEY_DEAD,
    OK,
    OVERLOADED,
    REFUSES,
    SLOT,
    Life,
    World,
    held_for,
    route,
    rung,
    slot_only,
)
from swarmgate.core.commands import End
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.reasons import Reason
from swarmgate.core.record import State
from swarmgate.core.rungs import Tried, remember

FREE = route(fixed=(), metered=(), whole=())


def test_who_steps_down_a_rung_stands_in_no_line_of_the_old_one():
    world = World({"slot": SLOT, "other": SLOT})
    world.call("holder", HELD, rungs=(rung("t", slot_only()),))
    call = world.call(
        "x",
        Life(connects=((5, True), (5, False), (5, False), (9_000, True)), sends=((),)),
        rungs=(rung("t", slot_only()), rung("u", slot_only("u1", "other"))),
    )
    world.run(20)
    assert world.standing("slot") == ["x"]
    world.run(4_000)
    assert (call.state, call.rung) == (State.CONNECTING, 1)
    assert world.standing("slot") == []
    assert len(world.room) == 0


def test_llm_gateways_70_a_deferral_says_whether_keys_or_the_store_are_missing():
    world = World(delays=repeat(150))
    lost = world.call("lost", wait_until_ms=1_000_000)
    keyless = world.call("keyless", rungs=(rung(),), wait_until_ms=1_000_000)
    keyless.rungs[0].ring.observe("k1", REFUSES.outcome, 1_000_000, 1_000_001)
    world.run()
    assert (lost.end, lost.reason) == (End.DEFERRED, Reason.GATE_STORE_LOST)
    assert (keyless.end, keyless.reason) == (End.DEFERRED, Reason.POLICY_KEYS_OUT)
    assert keyless.denied.not_before_ms == 1_000_001 + 2_000


def test_a_free_key_is_found_at_once_when_another_was_asked_first():
    for asked_first in ("k1", "k2"):
        world = World({"s1": SLOT, "s2": SLOT})
        routes = [slot_only("k1", "s1"), slot_only("k2", "s2")]
        world.call("holder", HELD, rungs=(rung("t", routes[asked_first == "k2"]),))
        call = world.call("x", HELD, rungs=(rung("t", *routes),), after_ms=1)
        world.run(10)
        assert call.state is State.SENDING


def test_a_key_that_is_too_small_does_not_speak_for_the_others():
    large = Limits(BudgetKind.LEVEL, burst=100, quota=1, window_ms=1_000)
    small = Limits(BudgetKind.LEVEL, burst=1, quota=1, window_ms=1_000)
    for first, second in (("large", "small"), ("small", "large")):
        world = World({"large": large, "small": small})
        routes = [route(name, (), (name,), whole=()) for name in (first, second)]
        call = world.call("x", rungs=(rung("t", *routes),), prompt=50, reserve=0)
        world.run(100)
        assert call.end is End.ANSWERED


def test_keys_that_are_out_for_long_are_not_waited_for_where_another_rung_stands():
    for out_ms, used in ((60_000, 1), (2_000, 0)):
        world = World()
        first, second = rung("first"), rung("second")
        outcome = REFUSES.outcome._replace(eject_ms=out_ms)
        first.ring.observe("k1", outcome, 1_000_000, 1_000_001)
        call = world.call("x", rungs=(first, second))
        world.run()
        assert (call.end, call.rung) == (End.ANSWERED, used)


def test_who_waits_for_a_key_is_woken_when_one_comes_back():
    world = World()
    one, other = rung("one", FREE), rung("other", FREE)
    for ring in (one.ring, other.ring):
        ring.observe("k1", REFUSES.outcome._replace(eject_ms=60_000), 1_000_000, 1_000_001)
    call = world.call("x", rungs=(one,), wait_until_ms=1_080_000)
    elsewhere = world.call("elsewhere", rungs=(other,), wait_until_ms=1_080_000)
    world.run(70_000)
    assert (call.end, elsewhere.end) == (End.ANSWERED, End.ANSWERED)
    assert not world.room.keyless


def test_a_good_probe_wakes_those_who_wait_for_its_key_and_nobody_else():
    world = World()
    one, other = rung("one", FREE), rung("other", FREE)
    for ring in (one.ring, other.ring):
        ring.observe("k1", REFUSES.outcome._replace(eject_ms=1_000), 1_000_000, 1_000_001)
    world.time.run(1_001_100)
    probe = world.call("probe", held_for(500), rungs=(one,))
    world.call("lost probe", HELD, rungs=(other,))
    waits = [world.call(f"x{ring.target}", rungs=(ring,)) for ring in (one, other)]
    world.run(400)
    assert [call.reason for call in waits] == [Reason.POLICY_KEYS_OUT] * 2
    world.run(250)
    assert probe.end is End.ANSWERED
    assert [world.asks_of(call) for call in waits] == [2, 1]


def test_dead_keys_of_the_last_rung_fail_the_call():
    world = World()
    last = rung()
    last.ring.observe("k1", KEY_DEAD.outcome, 1_000_000, 1_000_001)
    call = world.call("x", rungs=(last,))
    world.run()
    assert (call.end, call.reason) == (End.FAILED, Reason.POLICY_KEYS_OUT)
    world.check_clean()


def test_what_never_fits_tries_the_next_rung_and_is_refused_on_the_last():
    world = World()
    small = rung("small", route(metered=(), fixed=(("slot", 0, 2),)))
    fits = world.call("fits", rungs=(small, rung("next")))
    never = world.call("never", rungs=(rung("next"), small, small), prompt=2_000)
    world.run()
    assert (fits.end, fits.rung) == (End.ANSWERED, 1)
    assert (never.end, never.reason, never.rung) == (End.REFUSED, Reason.POLICY_LARGER_THAN_LIMIT, 2)
    world.check_clean()


def test_every_rung_has_its_own_time_to_begin():
    world = World()
    call = world.call("x", Life(sends=((), ((7_500, OK),))), rungs=(rung("first"), rung("second")))
    world.run()
    assert (call.end, call.rung) == (End.ANSWERED, 1)


def speaks(target, *surfaces, window=0):
    return rung(target)._replace(serves=frozenset(surfaces), window=lambda _model: window)


def test_llm_gateways_68_a_rung_that_cannot_is_passed_over_with_its_reason_and_never_sent_to():
    world = World()
    rungs = (speaks("a", "messages"), speaks("b", "chat", window=99), speaks("c", "chat", window=100))
    call = world.call("x", rungs=rungs, surface="chat", context_tokens=100)
    world.run()
    assert (call.end, call.rung, call.attempt) == (End.ANSWERED, 2, 1)
    assert call.trail == (Tried(0, Reason.POLICY_OTHER_DIALECT), Tried(1, Reason.POLICY_WINDOW_TOO_SMALL))


def test_without_a_rung_that_can_the_call_is_refused_with_the_last_reason():
    world = World()
    call = world.call(
        "x", rungs=(speaks("a", "messages"), speaks("b", "chat", window=9)), surface="chat", context_tokens=10
    )
    world.run()
    assert (call.end, call.reason, call.attempt) == (End.REFUSED, Reason.POLICY_WINDOW_TOO_SMALL, 0)
    world.check_clean()


@pytest.mark.parametrize(("least", "second", "used"), [(100, 200, 1), (99, 200, 0), (0, 200, 0), (100, 150, 0)])
def test_the_first_rung_is_passed_over_where_the_prompt_certainly_does_not_fit_and_another_does(least, second, used):
    world = World()
    rungs = (speaks("a", "chat", window=99), speaks("b", "chat", window=second))
    call = world.call("x", rungs=rungs, surface="chat", context_tokens=160, least_tokens=least)
    world.run()
    assert (call.end, call.rung, call.attempt) == (End.ANSWERED, used, 1)
    assert call.trail == ((Tried(0, Reason.POLICY_WINDOW_TOO_SMALL),) if used else ())


def test_what_failed_attempts_took_is_no_time_in_line():
    world = World()
    call = world.call("x", Life(sends=(((7_000, FAILS),), ((20, OK),))), rungs=(rung("first"), rung("second")))
    world.run()
    assert (call.end, call.attempt) == (End.ANSWERED, 2)
    assert call.sent_ms - call.arrived_ms >= 7_000
    assert 0 <= call.queued_ms < 2_000


def test_an_error_knows_every_attempt():
    world = World()
    sends = (((20, OVERLOADED),), ((30, FAILS._replace(status=503)),), ((40, FAILS),), ((50, FAILS),))
    call = world.call("x", Life(sends=sends), rungs=(rung("a"), rung("b")))
    world.run()
    assert call.end is End.DEAD_LETTERED
    assert [(one.rung, one.reason, one.key, one.status, one.ms) for one in call.trail] == [
        (0, Reason.TARGET_CAPACITY, "k1", 0, 20),
        (1, Reason.TARGET_ERROR, "k1", 503, 30),
        (1, Reason.TARGET_ERROR, "k1", 0, 40),
        (1, Reason.TARGET_ERROR, "k1", 0, 50),
    ]


def test_llm_gateways_69_a_wait_that_is_longer_than_a_slow_target_leads_to_the_next_rung():
    rate = Limits(BudgetKind.LEVEL, burst=1, quota=1, window_ms=9_000)
    for window_ms, wait_ms, used in ((9_000, 60_000, 1), (7_000, 60_000, 0), (7_000, 6_000, 1)):
        world = World({"r": Limits(BudgetKind.LEVEL, burst=1, quota=1, window_ms=window_ms), "free": rate})
        first, second = (rung(name, route("k1", ((name, 1, 0),), (), whole=())) for name in ("r", "free"))
        world.call("before", rungs=(first,))
        call = world.call("x", rungs=(first, second), after_ms=1, wait_until_ms=1_000_000 + wait_ms)
        world.run()
        assert (call.end, call.rung) == (End.ANSWERED, used), (window_ms, wait_ms)
        if used:
            assert call.trail == (Tried(0, Reason.POLICY_RATE),)


def test_of_what_was_tried_the_newest_16_are_kept():
    call = World().call("x")
    for number in range(40):
        remember(call, Tried(number, Reason.TARGET_RATE))
    assert [one.rung for one in call.trail] == list(range(24, 40))
