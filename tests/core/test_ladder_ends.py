"""Where a ladder ends because no rung below can serve: each is told, and the answer is that of the rung above."""

import pytest

from life import (
    FAILS,
    KEY_DEAD,
    NOT_OURS,
    OVERLOADED,
    REFUSES,
    STREAM,
    Life,
    World,
    answered,
    route,
    rung,
)
from swarmgate.core.commands import End
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.reasons import Reason
from swarmgate.core.rungs import Tried

BUDGETS = {
    "small": Limits(BudgetKind.LEVEL, burst=1, quota=1, window_ms=1_000),
    "slow": Limits(BudgetKind.LEVEL, burst=1, quota=1, window_ms=9_000),
}
FREE = route(fixed=(), metered=(), whole=())
TOO_SMALL = (Reason.POLICY_LARGER_THAN_LIMIT, "", -1)
LATER = answered(429, 0, hint_ms=60_000)


def small(target):
    """A rung whose budget can never hold a call of 6 tokens."""
    return rung(target, route(fixed=(), metered=("small",), whole=()))


def narrow(target="narrow"):
    return rung(target, FREE)._replace(window=lambda _model: 9)


def play(*rungs, sends=(), **given):
    world = World(BUDGETS)
    call = world.call("x", Life(sends=sends), rungs=rungs, context_tokens=10, **given)
    world.run(600_000)
    world.check_clean()
    return world, call


def told(call):
    return [(one.rung, one.reason) for one in call.trail]


@pytest.mark.parametrize(
    ("event", "end", "reason", "sends"),
    [
        (FAILS, End.DEAD_LETTERED, Reason.TARGET_ERROR, 4),
        (OVERLOADED, End.DEAD_LETTERED, Reason.TARGET_CAPACITY, 4),
        (KEY_DEAD, End.FAILED, Reason.TARGET_KEY_REFUSED, 1),
        (LATER, End.DEFERRED, Reason.TARGET_RATE, 1),
    ],
)
@pytest.mark.parametrize("deadline_ms", [1_300_000, 1_050_000])
def test_what_cannot_serve_below_is_told_where_the_ladder_ends(event, end, reason, sends, deadline_ms):
    below = narrow(), rung("other", FREE)._replace(serves=frozenset({"messages"}))
    _, call = play(rung("a", FREE), *below, sends=(((5, event),),) * 4, surface="chat", deadline_ms=deadline_ms)
    assert (call.end, call.reason, call.rung, call.attempt) == (end, reason, 0, sends)
    assert told(call) == [
        *[(0, reason)] * sends,
        (1, Reason.POLICY_WINDOW_TOO_SMALL),
        (2, Reason.POLICY_OTHER_DIALECT),
    ]


def test_what_no_rung_could_mend_passes_over_none():
    for sends in (((5, NOT_OURS),),), ((*STREAM[:1], (5, FAILS)),):
        _, call = play(rung("a", FREE), narrow(), sends=sends)
        assert call.end is End.FAILED
        assert [one.rung for one in call.trail] == [0]


def test_a_wait_that_no_rung_below_can_shorten_tells_why():
    world = World(BUDGETS)
    first = rung("slow", route(fixed=(("slow", 1, 0),), metered=(), whole=()))
    world.call("before", rungs=(first,))
    call = world.call("x", rungs=(first, narrow()), context_tokens=10, wait_until_ms=1_005_000)
    world.run()
    assert (call.end, call.reason) == (End.DEFERRED, Reason.POLICY_RATE)
    assert call.trail == (Tried(1, Reason.POLICY_WINDOW_TOO_SMALL),)


@pytest.mark.parametrize(
    ("event", "end", "reason", "sends"),
    [
        (FAILS, End.DEAD_LETTERED, Reason.TARGET_ERROR, 2),
        (OVERLOADED, End.DEAD_LETTERED, Reason.TARGET_CAPACITY, 1),
        (KEY_DEAD, End.FAILED, Reason.TARGET_KEY_REFUSED, 1),
        (LATER, End.DEFERRED, Reason.TARGET_RATE, 1),
    ],
)
def test_a_last_rung_that_is_too_small_leaves_the_word_to_the_one_that_failed(event, end, reason, sends):
    _, call = play(rung("a", FREE), small("b"), narrow(), sends=(((5, event),),) * 4)
    assert (call.end, call.reason, call.rung, call.attempt) == (end, reason, 0, sends)
    assert told(call) == [
        *[(0, reason)] * sends,
        (1, Reason.POLICY_LARGER_THAN_LIMIT),
        (2, Reason.POLICY_WINDOW_TOO_SMALL),
    ]
    if end is End.DEFERRED:
        assert call.denied.not_before_ms >= 1_060_000


def test_so_does_one_whose_keys_are_all_out_for_good():
    last = rung("b", FREE)
    last.ring.observe("k1", KEY_DEAD.outcome, 1_000_000, 1_000_001)
    _, call = play(rung("a", FREE), last, sends=(((5, OVERLOADED),),) * 4)
    assert (call.end, call.reason, call.rung) == (End.DEAD_LETTERED, Reason.TARGET_CAPACITY, 0)
    assert told(call) == [(0, Reason.TARGET_CAPACITY), (1, Reason.POLICY_KEYS_OUT)]


@pytest.mark.parametrize("useless", ["too small", "no key"])
def test_a_call_that_would_have_waited_above_goes_back_to_wait(useless):
    world = World(BUDGETS)
    first = rung("slow", route(fixed=(("slow", 1, 0),), metered=(), whole=()))
    last = small("b") if useless == "too small" else rung("b", FREE)
    if useless == "no key":
        last.ring.observe("k1", KEY_DEAD.outcome, 1_000_000, 1_000_001)
    world.call("before", rungs=(first,))
    call = world.call("x", rungs=(first, last))
    world.run()
    assert (call.end, call.rung, call.attempt) == (End.ANSWERED, 0, 1)
    assert len(call.trail) == 2
    world.check_clean()


def test_a_call_goes_back_to_keys_that_return():
    first = rung("a", FREE)
    first.ring.observe("k1", REFUSES.outcome._replace(eject_ms=15_000), 1_000_000, 1_000_001)
    _, call = play(first, small("b"))
    assert (call.end, call.rung, call.attempt) == (End.ANSWERED, 0, 1)
    assert told(call) == [(0, Reason.POLICY_KEYS_OUT), (1, Reason.POLICY_LARGER_THAN_LIMIT)]
