"""From a request's first byte: reservations, renewals, retries, writes that leave once (design 2: P4, P7, P9)."""

import pytest

from life import (
    BROKEN,
    BUSY,
    CONTENT,
    FAILS,
    KEY_DEAD,
    NOT_OURS,
    OK,
    OVERLOADED,
    REFUSES,
    RESET,
    STALE,
    Life,
    World,
    answered,
    route,
    rung,
)
from swarmgate.core.commands import End, Note
from swarmgate.core.effect import Effect
from swarmgate.core.events import DELIVERED, Progress
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.reasons import Reason
from swarmgate.core.record import State

SLOT = Limits(BudgetKind.LEASES, burst=1)
WRITE = {"effect": Effect.WRITE}
KEYED = {"effect": Effect.WRITE, "keyed": True}


def once(event):
    return Life(sends=(((20, event),),))


def left(world, call):
    return [(target, key) for name, target, key, _ in world.wire.seen if name == call.id]


def test_a_long_silent_answer_keeps_its_reservation():
    world = World()
    call = world.call("x", Life(sends=(((150_000, OK),),)), content_ms=200_000)
    other = world.call("other", deadline_ms=2_000_000, wait_until_ms=1_160_000)
    world.run(140_000)
    assert world.book.cells["slot"].pending == 1
    assert world.book.cells["tokens"].pending == call.reserve
    assert other.attempt == 0
    world.run(20_000)
    assert (call.end, other.end) == (End.ANSWERED, End.ANSWERED)


def test_a_long_stream_keeps_its_reservation_and_settles_what_came():
    world = World()
    stream = ((20, CONTENT), *[(20_000, Progress(1))] * 6, (20_000, answered(used=7)))
    call = world.call("x", Life(sends=(stream,)))
    world.run(130_000)
    assert world.book.cells["slot"].pending == 1
    assert world.book.cells["tokens"].pending == 0
    world.run()
    assert call.end is End.ANSWERED
    world.check_clean()


def test_silence_ends_a_stream_and_an_answer_that_never_begins():
    world = World()
    world.call("stops", Life(sends=(((20, CONTENT),),)))
    world.run(31_000)
    assert world.answers["stops"][0].reason is Reason.TARGET_SLOW
    world.call("never begins", Life(sends=((),) * 4), content_ms=1_000)
    world.run()
    assert world.answers["never begins"][0].end is End.DEAD_LETTERED
    assert len(left(world, world.calls[1])) == 4


WRITE_ENDS = {
    RESET: End.UNKNOWN_EFFECT,
    BROKEN: End.UNKNOWN_EFFECT,
    FAILS: End.FAILED,
    OVERLOADED: End.FAILED,
    KEY_DEAD: End.FAILED,
    REFUSES: End.DEFERRED,
    BUSY: End.DEFERRED,
}
WAYS = {
    "a ladder": lambda: (rung("first"), rung("second")),
    "two keys": lambda: (rung("first", route("k1"), route("k2")),),
    "one key": lambda: (rung("first"),),
}


@pytest.mark.parametrize(("event", "how"), WRITE_ENDS.items())
@pytest.mark.parametrize("ways", WAYS)
def test_a_write_of_which_a_byte_has_left_leaves_once(event, how, ways):
    world = World()
    call = world.call("x", once(event), rungs=WAYS[ways](), **WRITE)
    world.run()
    assert call.end is how
    assert len(left(world, call)) == 1


@pytest.mark.parametrize(("event", "how"), WRITE_ENDS.items())
def test_a_keyed_write_goes_nowhere_where_its_first_attempt_is_not_known(event, how):
    world = World()
    elsewhere = world.call("elsewhere", once(event), rungs=WAYS["two keys"](), **KEYED)
    below = world.call("below", once(event), rungs=WAYS["a ladder"](), **KEYED)
    world.run()
    assert elsewhere.end is how
    assert len(left(world, elsewhere)) == 1
    assert set(left(world, below)) == {("first", "k1")}


def test_a_keyed_write_is_repeated_where_it_is_known():
    world = World()
    call = world.call("x", once(RESET), **KEYED)
    world.run()
    assert (call.end, len(left(world, call))) == (End.ANSWERED, 2)


@pytest.mark.parametrize(
    ("life", "given"),
    [
        (Life(connects=((5, True),) + ((5, False),) * 9, sends=(((5, RESET),),)), {"deadline_ms": 1_002_500}),
        (Life(sends=(((5, RESET),),)), {"deadline_ms": 1_000_400}),
        (Life(connects=((5, True), (3_600_000, True)), sends=(((5, RESET),),)), {"deadline_ms": 1_009_000}),
    ],
    ids=["no connection again", "no time left", "no connection in time"],
)
def test_a_keyed_write_whose_answer_was_lost_stays_of_unknown_effect(life, given):
    world = World()
    call = world.call("x", life, **given, **KEYED)
    world.run()
    assert call.end is End.UNKNOWN_EFFECT
    world.check_clean()


def test_a_stale_connection_repeats_even_a_write_and_not_for_ever():
    world = World()
    call = world.call("x", Life(sends=(((0, STALE),),) * 2), **WRITE)
    never = world.call("never", Life(sends=(((0, STALE),),) * 9), **WRITE)
    world.run()
    assert (call.end, len(left(world, call))) == (End.ANSWERED, 1)
    assert (never.end, never.attempt) == (End.DEAD_LETTERED, 4)
    world.check_clean()


@pytest.mark.parametrize("given", [WRITE, {"deadline_ms": 1_001_500}], ids=["a write", "no time to wait"])
def test_a_relayed_limit_says_when_it_lifts(given):
    world = World()
    call = world.call("x", once(REFUSES), **given)
    world.run()
    (answer,) = world.answers["x"]
    assert (answer.end, answer.reason) == (End.DEFERRED, Reason.TARGET_RATE)
    assert answer.denied.not_before_ms - answer.denied.now_ms >= 2_000
    assert call.attempt == 1


def test_a_limit_without_a_hint_lifts_when_a_key_comes_back():
    world = World()
    call = world.call("x", once(answered(429, 0)), **WRITE)
    world.run()
    assert call.denied.not_before_ms - call.denied.now_ms == 60_000


def test_each_rung_counts_its_own_first_sends_and_retries_once():
    first, second = rung("first"), rung("second")
    world = World()
    world.call("x", Life(sends=(((5, OVERLOADED),), ((5, FAILS),))), rungs=(first, second))
    world.run()
    counts = [(one.retries._first_sends.at(1_001_000), one.retries._retries.at(1_001_000)) for one in (first, second)]
    assert counts == [(1, 0), (1, 1)]


def test_no_more_retries_than_the_target_tolerates():
    one = rung()
    world = World({name: Limits(BudgetKind.LEASES, burst=100) for name in ("slot", "tokens", "rate")})
    plain = (one._replace(routes={"k1": route(fixed=(("slot", 0, 1),), metered=())}),)
    for number in range(30):
        world.call(f"x{number}", Life(sends=(((5, FAILS),),) * 4), rungs=plain)
    world.run(300_000)
    assert len(world.wire.seen) == 30 + 10
    assert {call.end for call in world.calls} <= {End.FAILED, End.DEAD_LETTERED}


def test_an_unreachable_rung_is_left_after_two_tries():
    world = World()
    call = world.call("x", Life(connects=((5, False),) * 2), rungs=(rung("first"), rung("second")))
    world.run()
    assert (call.end, call.rung) == (End.ANSWERED, 1)
    assert left(world, call) == [("second", "k1")]


def test_content_is_the_end_of_every_choice():
    world = World()
    call = world.call("x", Life(sends=(((5, CONTENT), (5, FAILS)),)), rungs=(rung("first"), rung("second")))
    world.run()
    assert (call.end, call.rung, call.attempt) == (End.FAILED, 0, 1)


@pytest.mark.parametrize("begins", [(20, DELIVERED), (20, CONTENT)])
def test_a_place_on_the_way_is_free_once_the_request_is_delivered(begins):
    world = World({"way": SLOT, "slot": Limits(BudgetKind.LEASES, burst=9)})
    on_its_way = (rung("t", route(fixed=(("way", 0, 1), ("slot", 0, 1)), metered=(), ways=("way",))),)
    first = world.call("first", Life(sends=((begins, (5_000, OK)),)), rungs=on_its_way)
    second = world.call("second", rungs=on_its_way)
    world.run(15)
    assert second.state is State.WAITING
    world.run(50)
    assert first.end is None
    assert second.end is End.ANSWERED
    world.run()
    world.check_clean()


def test_llm_gateways_65_every_attempt_that_left_is_noted_once():
    world = World()
    call = world.call("x", Life(sends=(((5, FAILS),), ((0, STALE),), ((5, RESET),))))
    world.run()
    notes = [one.attempt for name, one in world.noted if name == "x" and isinstance(one, Note)]
    assert notes == [1, 2, 3, 4]
    assert call.end is End.ANSWERED


def test_a_deadline_while_running_says_what_may_have_happened():
    for effect, how in ((Effect.READ, End.FAILED), (Effect.WRITE, End.UNKNOWN_EFFECT)):
        world = World()
        call = world.call("x", Life(sends=((),)), effect=effect, deadline_ms=1_001_000)
        world.run()
        assert (call.end, call.reason) == (how, Reason.CALLER_DEADLINE)
        world.check_clean()


def test_what_is_answered_later_does_not_tell_what_the_lost_attempt_did():
    world = World()
    call = world.call("x", Life(sends=(((5, RESET),), ((5, NOT_OURS),))), **KEYED)
    refused = world.call("refused", Life(sends=(((5, NOT_OURS),),)), **KEYED)
    world.run()
    assert (call.end, call.attempt) == (End.UNKNOWN_EFFECT, 2)
    assert refused.end is End.FAILED
