"""Every judge of the simulator can fail: each is shown a gate, a store or a target that does wrong."""

import pytest

from life import rung
from swarmgate.core import kernel
from swarmgate.core.answers import Denied, Granted
from swarmgate.core.book import Book, Take, first_score
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.record import Call
from swarmgate.core.waiting import Room
from swarmgate.lab.faults import Fault
from swarmgate.lab.scenario import ConcurrencyLimit, Target
from swarmgate.lab.sim import measures
from swarmgate.lab.sim.idleness import LOOK_AT_MOST, leaders
from swarmgate.lab.sim.seeds import small
from swarmgate.lab.sim.target import Request, SimTarget
from swarmgate.lab.sim.umpire import EVERY_PROMISE, Umpire
from swarmgate.lab.sim.verdicts import violations
from swarmgate.lab.sim.virtual_time import VirtualTime
from swarmgate.lab.sim.world import World
from swarmgate.lab.witness import Arrival, Departure
from swarmgate.stores.memory.store import MemoryStore

BUCKET = Limits(BudgetKind.LEVEL, burst=2, quota=1, window_ms=1_000)


def book_of(*names):
    book = Book(-(2**40))
    book.now_ms = 0
    for name in names:
        kernel.define(book, name, BUCKET)
    return book


def wanting(ticket, *names, rank=1):
    return Take(ticket, f"{ticket}.1", rank, first_score(rank), (tuple((name, 1, 0) for name in names),), 60_000)


def watched(book, request, decide=None, umpire=None, now_ms=0):
    umpire = umpire or Umpire(VirtualTime(), ())
    reply = umpire.watch(book, request, decide or (lambda: kernel.take(book, request, now_ms)))
    return umpire, reply


def test_takes_as_the_kernel_decides_them_break_nothing():
    book, umpire = book_of("a", "b"), Umpire(VirtualTime(), ())
    replies = [watched(book, wanting(f"t{n}", "a", "b"), umpire=umpire, now_ms=300 * n)[1] for n in range(40)]
    assert {type(reply) for reply in replies} == {Granted, Denied}
    assert not umpire.broken


def test_a_denial_that_takes_something_is_not_whole():
    book = book_of("a", "b")
    book.cells["b"].level = book.cells["b"].caps[0]

    def half():
        book.cells["a"].level += 1_000
        return kernel.take(book, wanting("t", "a", "b"), 0)

    assert watched(book, wanting("t", "a", "b"), half)[0].broken == {"P3": 1}


def test_a_grant_that_takes_too_little_is_not_whole():
    book = book_of("a", "b")
    umpire, _ = watched(book, wanting("t", "a", "b"), lambda: kernel.take(book, wanting("t", "a"), 0))
    assert umpire.broken == {"P3": 1}


def test_an_instant_promised_too_early_is_found():
    book, umpire = book_of("a"), Umpire(VirtualTime(), ())
    book.cells["a"].level = book.cells["a"].caps[0]
    for number in range(EVERY_PROMISE):
        request = wanting(f"t{number}", "a")._replace(waits=False)
        reply = kernel.take(book, request, 0)
        early = reply._replace(not_before_ms=999 if number == EVERY_PROMISE - 1 else 1_000)
        umpire.watch(book, request, lambda early=early: early)
    assert umpire.broken == {"P6": 1}


def test_a_better_ticket_that_is_passed_is_found():
    book, umpire = book_of("a"), Umpire(VirtualTime(), ())
    book.cells["a"].level = book.cells["a"].caps[0]
    first = kernel.take(book, wanting("first", "a"), 0)
    second = wanting("second", "a")

    def pushed():
        book.cells["a"].level += 1_000
        return Granted(first.due_ms, 0, 60_000)

    umpire.watch(book, second, pushed)
    assert umpire.broken["P5"] == 1


def test_admission_beyond_the_bound_is_found():
    scenario = small("planner")
    world = World(scenario, 1, ())
    name = next(name for policy in world.policies.values() for name, limits in policy.limits() if limits.quota)
    bound = world.umpire._bounds[name].limits.burst
    for number in range(bound + 1):
        world.umpire._count(wanting(f"t{number}", name), Granted(0, 0, 0))
        assert world.umpire.over_bound == (number == bound)


@pytest.mark.interpreted  # replaces a function of the room
def test_who_sleeps_longer_than_the_store_said_idles(monkeypatch):
    wait = Room.wait
    monkeypatch.setattr(
        Room, "wait", lambda self, call, *due_ms: wait(self, call, *(at_ms + 5_000 for at_ms in due_ms))
    )
    world = World(small("planner"), 1, ())
    world.run()
    assert any("slept that could run" in sentence for sentence in violations(world))


def test_who_stands_right_behind_the_head_of_a_line_is_looked_at_too():
    room, rungs = Room(), (rung(),)
    calls = [Call(f"c{number}", rungs, room, rank=1, arrived_ms=0) for number in range(9)]
    for number, call in enumerate(calls):
        call.score, call.standing = number, ("a", "b") if number == 8 else ("a",)
        room.wait(call, 1_000)
    assert leaders(room) == [*calls[:LOOK_AT_MOST], calls[8]]


def test_a_settlement_that_is_lost_is_seen_before_its_lease_lapses(monkeypatch):
    settle = MemoryStore.settle

    def forgetful(self, lease, usage, *, last):
        if not (last and lease.endswith("7.1")):
            settle(self, lease, usage, last=last)

    monkeypatch.setattr(MemoryStore, "settle", forgetful)
    world = World(small("p2-flood"), 1, ())
    world.run()
    assert any(sentence.startswith("P9") for sentence in violations(world))


def test_a_request_that_leaves_after_its_deadline_is_found():
    world = World(small("planner"), 1, ())
    sent = world._sent

    def late(call):
        call.deadline_ms = world.time.now_ms()
        sent(call)

    world.gates[0]._setting.watcher.sent = late
    world.run()
    assert any(sentence.startswith("P14") for sentence in violations(world))


def test_more_in_progress_than_published_is_found():
    cap = ConcurrencyLimit(kind="concurrency", limit=2)
    target = Target(name="cap", limits=(cap,))
    scenario = small("planner")
    load = scenario.loads[0].model_copy(update={"target": "cap"})
    world = World(scenario.model_copy(update={"targets": (target,), "loads": (load,)}), 1, ())
    witness = world.targets["cap"].witnesses[0]
    for number in range(3):
        witness.arrived(Arrival(number, f"c{number}", 1, "key-1", 0, ok=True))
    witness.departed(Departure(3, "c0", 1, 0))
    witness.arrived(Arrival(3, "c3", 1, "key-1", 0, ok=True))
    assert witness.most_in_progress() == 3
    assert measures.beyond_faults(world, target) == 1


@pytest.mark.parametrize(("honours", "times"), [(True, 1), (False, 2)])
def test_a_write_that_arrives_twice_is_done_once_where_its_key_is_honoured(honours, times):
    world = World(small("planner"), 1, ())
    settings = world.scenario.targets[0].model_copy(update={"honours_keys": honours})
    target = world.targets[settings.name] = SimTarget(settings, world.time, world.swarm._rng)
    for attempt in (1, 2):
        target.arrive(Request("a/1#1", attempt, 0, 10, 10, 1024, "a/1"))
    assert target.effects["a/1"] == times
    assert world.writes_twice() == times - 1


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("reorder", Fault("reorder", 1_000, 20_000, "api", 3_000)),
        ("stale", Fault("stale", 1_000, 20_000, "api", 500)),
        ("lie", Fault("lie", 1_000, 20_000, "api", 300)),
        ("revision", Fault("revision", 9_000, where="api", amount=50)),
        ("client_leaves", Fault("client_leaves", 1_000, 40_000, "agents", 300)),
        ("store_cut", Fault("store_cut", 5_000, 9_000, "gate-1")),
        ("store_failover", Fault("store_failover", 9_000, amount=3_000)),
        ("store_evict", Fault("store_evict", 9_000, amount=1)),
    ],
)
def test_every_kind_of_fault_strikes_and_breaks_no_promise(kind, fault):
    world = World(small("store-outage", 3), 3, (fault,))
    world.run()
    assert world.weather.met[kind]
    assert violations(world) == []
