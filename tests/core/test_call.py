"""The table of a call's life: complete, honest about where it leads, and every life ends once and leaves nothing."""

from itertools import cycle, repeat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from life import (
    BROKEN,
    BUSY,
    FAILS,
    KEY_DEAD,
    NOT_OURS,
    OK,
    OVERLOADED,
    REFUSES,
    RESET,
    STALE,
    STREAM,
    Life,
    World,
    route,
    rung,
)
from lives import LIVES, STORES, Run
from records import fields_of
from swarmgate.core import call as table
from swarmgate.core.answers import BlockKind, Denied, Granted
from swarmgate.core.book import first_score
from swarmgate.core.call import TABLE, BadTransition, step
from swarmgate.core.commands import End, Intent
from swarmgate.core.effect import Effect
from swarmgate.core.events import (
    ARRIVED,
    CLIENT_LEFT,
    CONTENT,
    DEADLINE_PASSED,
    DELIVERED,
    READY,
    WOKEN,
    Event,
    GivenUp,
    Lost,
    LostKind,
    OwnAnswer,
    Progress,
    StoreLost,
)
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call, State
from swarmgate.core.retry import MOST_RETRIES

PAGE = Path(__file__).parents[2] / "docs/call.md"
FIRST = first_score(1)
DENIED = Denied(0, BlockKind.EVENT, 500, 500, 500, 0, (), FIRST, (), 0, 0)
SAMPLES = [
    ARRIVED,
    READY,
    WOKEN,
    CONTENT,
    DELIVERED,
    CLIENT_LEFT,
    DEADLINE_PASSED,
    Granted(0, 0, 60_000),
    DENIED,
    DENIED._replace(kind=BlockKind.NEVER),
    StoreLost(Reason.GATE_STORE_LOST),
    GivenUp(Reason.GATE_STOPPING),
    OwnAnswer(End.REFUSED, Reason.POLICY_KEY_SCOPE),
    Progress(1),
    OK,
    FAILS,
    REFUSES,
    OVERLOADED,
    RESET,
    Lost(LostKind.CONNECT, sent=False),
]
FAST_ROUTE = route("k1", fresh_ms=20)


def test_the_samples_are_all_events():
    assert {type(event) for event in SAMPLES} == set(Event.__args__)


def in_state(state):
    """A call that got there by itself, in a store that answers late."""
    life = {
        State.CONNECTING: Life(connects=((9_999, True),)),
        State.SENDING: Life(sends=((),)),
        State.RELAYING: Life(sends=(((1, CONTENT),),)),
        State.BACKOFF: Life(sends=(((1, FAILS),),)),
    }.get(state, Life())
    world = World(delays=repeat(20))
    if state is State.WAITING:
        world.call("holder", Life(sends=((),)))
        world.run(100)
    if state is State.NEW:
        return world, Call("x", (rung(),), world.room, rank=1, arrived_ms=world.time.now_ms())
    call = world.call("x", life)
    while call.state is not state:
        world.run(1)
    return world, call


def record(call):
    return {field: getattr(call, field) for field in fields_of(Call)}


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: type(event).__name__)
def test_every_pair_is_in_the_table_or_refused_without_a_trace(state, event):
    world, call = in_state(state)
    before = record(call)
    if type(event) in TABLE[state]:
        step(call, event, world.time.now_ms())
        assert call.state in TABLE[state][type(event)].leads_to
    else:
        with pytest.raises(BadTransition):
            step(call, event, world.time.now_ms())
        assert record(call) == before


def declared():
    return {
        (state, event, after)
        for state, row in TABLE.items()
        for event, entry in row.items()
        for after in entry.leads_to
    }


def lived():
    """Everything that happened to anybody in every kind of life, and in the corners of some."""
    for store in STORES:
        for name in LIVES:
            yield from Run(name, store).world.pump.happened
    for state in State:
        for event in SAMPLES:
            if type(event) in TABLE[state]:
                world, call = in_state(state)
                world.pump.fire(call, event)
                yield from world.pump.happened
    for corner in CORNERS:
        yield from corner().pump.happened


def no_key(how, *, more_rungs, again=False):
    """The keys of the first rung go out: before the call asks, or while its token gets old."""
    first = rung("first", FAST_ROUTE if again else route())

    def act():
        world = World(delays=repeat(60))
        call = world.call("x", rungs=(first, rung("second")) if more_rungs else (first,), wait_until_ms=1_009_000)
        if again:
            world.run(20)
        first.ring.observe("k1", how.outcome, world.time.now_ms(), world.time.now_ms() + 1)
        world.run(30_000)
        assert call.end is not None
        return world

    return act


def old_tokens():
    world = World(delays=repeat(60))
    world.call("x", rungs=(rung("t", FAST_ROUTE),))
    world.run(30_000)
    return world


SLOT = Limits(BudgetKind.LEASES, burst=1)


def one_key_busy():
    """Whatever key is offered first, one of two calls meets the busy one."""
    world = World({"s1": SLOT, "s2": SLOT, "s3": SLOT})
    routes = [route(f"k{n}", ((f"s{n}", 0, 1),), (), whole=(f"s{n}",)) for n in (1, 2, 3)]
    world.call("holder", Life(sends=((),)), rungs=(rung("t", routes[0]),))
    both = (rung("t", *routes),)
    for name in ("x", "y"):
        world.call(name, Life(sends=((),)), rungs=both)
    world.run(20)
    return world


CORNERS = [
    old_tokens,
    one_key_busy,
    *[
        no_key(how, more_rungs=more_rungs, again=again)
        for how in (KEY_DEAD, REFUSES)
        for more_rungs in (False, True)
        for again in (False, True)
    ],
]


def test_every_declared_step_happens_and_no_other():
    seen = {(before, event, after) for _, before, event, after in lived()}
    assert seen == declared()


def test_the_diagram_on_the_page_is_the_table():
    assert f"```mermaid\n{table.diagram()}\n```" in PAGE.read_text(encoding="utf-8")
    arrows = [line.strip() for line in table.diagram().splitlines()[2:-1]]
    assert set(arrows) <= {f"{before.value} --> {after.value}: {event.__name__}" for before, event, after in declared()}


# Random lives: whatever targets, connections, stores and callers do, every call ends once and leaves nothing.

ENDINGS = [OK, FAILS, REFUSES, BUSY, OVERLOADED, KEY_DEAD, NOT_OURS, RESET, STALE]
sends = st.one_of(
    st.tuples(st.tuples(st.sampled_from([0, 5, 300, 9_000]), st.sampled_from(ENDINGS))),
    st.sampled_from([STREAM, (), ((20, CONTENT), (20, BROKEN)), ((5, CONTENT),), ((5, DELIVERED), (5, OK))]),
)
lives = st.builds(
    Life,
    st.lists(st.tuples(st.sampled_from([0, 5, 5_000, 20_000]), st.booleans()), max_size=4).map(tuple),
    st.lists(sends, max_size=5).map(tuple),
    st.sampled_from([0, 5]),
)
callers = st.fixed_dictionaries(
    {
        "life": lives,
        "ladder": st.integers(0, 3),
        "rank": st.integers(0, 2),
        "effect": st.sampled_from(Effect),
        "keyed": st.booleans(),
        "agent": st.sampled_from(["", "a"]),
        "after_ms": st.sampled_from([0, 0, 1, 200, 1_000]),
        "wait_ms": st.sampled_from([0, 500, 20_000]),
        "timeout_ms": st.sampled_from([400, 30_000, 300_000]),
        "leaves_ms": st.sampled_from([None, None, 0, 100, 2_000, 12_000]),
        "prompt": st.integers(0, 12),
    }
)
stores = st.one_of(st.none(), st.lists(st.sampled_from([0, 1, 30, 99, 150]), min_size=1, max_size=9))
SHARED = {
    "rate": Limits(BudgetKind.LEVEL, burst=4, quota=4, window_ms=1_000),
    "slot": Limits(BudgetKind.LEASES, burst=2),
    "begun": Limits(BudgetKind.LEASES, burst=1, hold_ms=300),
    "way": Limits(BudgetKind.LEASES, burst=1),
    "a": Limits(BudgetKind.LEVEL, burst=20, quota=10, window_ms=1_000, line="pool", sharing=2),
    "b": Limits(BudgetKind.LEVEL, burst=20, quota=10, window_ms=1_000, line="pool", sharing=2),
}
LINES = {"a": "pool", "b": "pool"}


def ladders():
    one = rung("one", route("k1"))
    many = rung(
        "many",
        route("ka", (("slot", 0, 1),), ("a",), fresh_ms=40),
        route("kb", (("rate", 1, 0), ("begun", 0, 1)), ("b",), ("begun",), ()),
        route("kc", (("way", 0, 1),), (), (), (), ways=("way",)),
    )
    return ((one,), (many,), (one, many), (many, one))


def live(plan, delays):
    world = World(
        SHARED | {"tokens": SHARED["a"]}, delays=cycle(delays) if delays else None, lines=LINES, agent_tickets=1
    )
    choice = ladders()
    for number, said in enumerate(plan):
        told = dict(said)
        leaves_ms = told.pop("leaves_ms")
        arrives_ms = world.time.now_ms() + told["after_ms"]
        told["rungs"] = choice[told.pop("ladder")]
        told["wait_until_ms"] = arrives_ms + told.pop("wait_ms")
        told["deadline_ms"] = arrives_ms + told.pop("timeout_ms")
        call = world.call(f"c{number}", **told)
        if leaves_ms is not None:
            world.time.at(arrives_ms + leaves_ms, world.pump.fire, call, CLIENT_LEFT)
    world.run(400_000)
    return world


@settings(max_examples=150, deadline=None)
@given(st.lists(callers, min_size=1, max_size=5), stores)
def test_llm_gateways_1_every_call_ends_once_and_leaves_nothing(plan, delays):
    world = live(plan, delays)
    world.check_clean()
    for call in world.calls:
        (answer,) = world.answers[call.id]
        left = [(target, key) for name, target, key, _ in world.wire.seen if name == call.id]
        intents = [one for name, one in world.noted if name == call.id and isinstance(one, Intent)]
        assert call.retries <= MOST_RETRIES
        assert len(intents) == world.wire.sends[call.id] == call.attempt
        assert world.relays[call.id] == call.committed or answer.end is End.ANSWERED
        assert world.relays[call.id] <= 1
        assert answer.end is not End.ANSWERED or world.relays[call.id]
        assert (answer.end is End.DEFERRED) == (answer.denied is not None)
        assert answer.end is not End.DEFERRED or not call.committed
        if call.effect is Effect.WRITE and left:
            assert len(left) == 1 or (call.keyed and len(set(left)) == 1 and len(call.rungs[call.rung].routes) == 1)
        for name, _, _, at_ms in world.wire.seen:
            assert name != call.id or at_ms < call.deadline_ms
