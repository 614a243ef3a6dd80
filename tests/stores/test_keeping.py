"""What the server keeps, how long, and what it makes of an older life: births, TTLs, revisions (design 4: Cold start)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from valkey_book import ScriptDecider, book_of

from swarmgate.core import kernel
from swarmgate.core.answers import Denied, Granted
from swarmgate.core.book import Book, Usage
from swarmgate.core.commands import Renew, Settle
from swarmgate.core.limits import EXACT, BudgetKind, Limits
from swarmgate.core.operations import Define, Revise, Withdraw
from swarmgate.testing.decider import BookDecider, state_of
from swarmgate.testing.kit import BUCKET, COUNTER, SLOTS, START_MS, ask

CALENDAR = Limits(BudgetKind.COUNTER, burst=40, window_ms=5_000, anchor_ms=START_MS + 1_234)
STILL = Limits(BudgetKind.LEVEL, burst=30)
WORLD = {"bucket": BUCKET, "slots": SLOTS, "counter": COUNTER, "calendar": CALENDAR}
TAG = "{sg:twins}"


def fresh(client, **more):
    client.flushall()
    return ScriptDecider(client, {}, **more)


plans = st.lists(
    st.tuples(
        st.integers(0, 3_000),  # ms to the next step
        st.sampled_from(sorted(WORLD)),
        st.integers(0, 9),  # cost
        st.integers(0, 5),  # reserved
        st.sampled_from((0, 300, 20_000)),  # lease
        st.sampled_from(("", "", "settle", "renew")),
    ),
    min_size=1,
    max_size=20,
)


@given(plans, st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_budget_is_forgotten_only_when_it_is_as_good_as_new(server, plan, old):
    store, now_ms = fresh(server.client), START_MS
    store.decide([Withdraw("t", ("birth",))], START_MS)
    now_ms += 10**9 if old else 0
    store.decide([Define(name, limits) for name, limits in WORLD.items()], now_ms)
    for number, (wait_ms, name, cost, reserve, lease_ms, then) in enumerate(plan):
        now_ms += wait_ms
        demand = (name, 0, min(reserve, 3)) if name == "slots" else (name, cost, reserve)
        lease = f"l{number}"
        operations = [ask(lease, demand, lease_ms=lease_ms)]
        if then == "settle":
            operations.append(Settle(lease, (Usage(name, reserve, 40),), last=number % 2 == 0))
        elif then == "renew":
            operations.append(Renew(lease, (name,), 9_000))
        store.decide(operations, now_ms)
    book = book_of(server.client, "twins")
    for name, cell in book.cells.items():
        forgotten_ms = int(server.client.hget(f"{TAG}b:{name}", "keep_ms"))
        assert 0 < server.client.pttl(f"{TAG}b:{name}") <= forgotten_ms - START_MS
        if cell.leases:
            assert server.client.pttl(f"{TAG}h:{name}") > 0
        assert cell.promised_ms <= forgotten_ms
        kernel.touch(cell, forgotten_ms)
        assert (cell.level, cell.pending, cell.leases, cell.slices or {}) == (0, 0, {}, {})
        again = Book(book.birth_ms)
        again.now_ms = forgotten_ms
        kernel.define(again, name, cell.limits)
        assert (again.cells[name].level, again.cells[name].leases) == (0, {})
        assert forgotten_ms <= now_ms + 200_000, "and not kept much longer than that"


def test_meta_never_expires_and_lines_end_behind_their_last_ticket(server):
    store = fresh(server.client)
    store.decide([Define("slots", SLOTS), ask("x", ("slots", 0, 1), waits=True)], START_MS)
    assert server.client.pttl(TAG) == -1
    for key in ("q:slots", "t:slots"):
        assert 10_000 < server.client.pttl(TAG + key) <= 5_000 + 5_000 + 60_000


@pytest.mark.parametrize("limits", [STILL, BUCKET])
def test_what_never_refills_or_was_revised_never_expires(server, limits):
    store = fresh(server.client)
    store.decide([Define("a", limits)], START_MS)
    revised = Limits(BudgetKind.LEVEL, burst=9, quota=1, revision=2)
    if limits is BUCKET:
        assert store.decide([Revise("a", 1, revised)], START_MS)[0].done
    store.decide([ask("x", ("a", 1, 1), lease_ms=100)], START_MS + 10**8)
    assert server.client.pttl(TAG + "b:a") == -1
    assert int(server.client.hget(TAG + "b:a", "keep_ms")) == EXACT


def reborn(book, raw_ms):
    """What the script must make of a life before the birth, said once more with the kernel's own words."""
    kernel.advance(book, raw_ms)
    book.now_ms += 1
    book.birth_ms = book.now_ms
    for name, cell in book.cells.items():
        kernel.touch(cell, book.now_ms)
        cold = Book(book.birth_ms)
        kernel.define(cold, name, cell.limits)
        cell.level = max(cell.level, cold.cells[name].level)
        for key, lease in cold.cells[name].leases.items():
            cell.pending -= cell.leases.pop(key).amount if key in cell.leases else 0
            kernel.hold(cell, key, lease.amount, lease.expires_ms)
            cell.leases[key].firm = True


@given(plans, plans)
@settings(max_examples=60, deadline=None)
def test_a_server_that_restarted_with_its_data_is_cold_but_keeps_debts_leases_and_revisions(server, before, after):
    store, model, now_ms = fresh(server.client), BookDecider(), START_MS
    operations = [Withdraw("t", ("birth",))], [Define(name, limits) for name, limits in WORLD.items()]
    for number, plan in enumerate((before, after)):
        for one in operations if not number else ():
            model.decide(one, now_ms)
            store.decide(one, now_ms)
        for step, (wait_ms, name, cost, reserve, lease_ms, _) in enumerate(plan):
            now_ms += wait_ms
            if number and not step:
                store.run = "r2"
                reborn(model.book, now_ms)
            demand = (name, 0, min(reserve, 3)) if name == "slots" else (name, cost, reserve)
            request = [ask(f"l{number}.{step}", demand, lease_ms=lease_ms, waits=step % 2 == 0)]
            assert store.decide(request, now_ms) == model.decide(request, now_ms)
    everything = [Settle("nobody", tuple(Usage(name, 0, 0) for name in WORLD), last=False)]
    store.decide(everything, now_ms)
    model.decide(everything, now_ms)
    assert state_of(book_of(server.client, "twins")) == state_of(model.book)


def test_a_birth_with_data_holds_back_what_may_have_been_used_meanwhile(server):
    store = fresh(server.client)
    store.decide([Define("a", BUCKET), Define("s", SLOTS)], START_MS)
    later_ms = START_MS + 10**8
    assert isinstance(store.decide([ask("x", ("a", 1, 0), ("s", 0, 1))], later_ms)[0], Granted)
    store.run = "restarted"
    (refused,) = store.decide([ask("y", ("a", 1, 0), ("s", 0, 1))], later_ms)
    assert isinstance(refused, Denied)
    assert refused.not_before_ms == later_ms + 1 + SLOTS.lease_ms
    (revived,) = store.decide([ask("y", ("a", 1, 0), ("s", 0, 1))], refused.not_before_ms)
    assert isinstance(revived, Granted)
