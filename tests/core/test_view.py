"""What budgets show: what the kernel would say, and nothing is changed by looking (design 5: Data port)."""

from hypothesis import given
from hypothesis import strategies as st
from test_kernel import COUNTER, LEVEL, SLOTS, book

from records import fields_of
from swarmgate.core import kernel
from swarmgate.core.answers import BlockKind, Granted
from swarmgate.core.book import Take, Usage, first_score
from swarmgate.core.limits import EXACT, BudgetKind, Limits
from swarmgate.core.view import BudgetState, at_rest, changed, copied, view

NOW = 1_000_000
FLOORS = Limits(LEVEL.kind, burst=20, quota=10, window_ms=1_000, floors=(0, 5, 10))
LIMITS = {"level": LEVEL, "floors": FLOORS, "slots": SLOTS, "counter": COUNTER}

names = st.sampled_from(sorted(LIMITS))
pasts = st.lists(
    st.tuples(
        names,
        st.integers(0, 2),  # class
        st.integers(1, 6),  # units
        st.integers(0, 600),  # ms until the next
        st.sampled_from(("keep", "settle", "wait")),
    ),
    max_size=30,
)


def lived(past):
    """A book in which all this has happened, and the instant after it."""
    made, now = book(**LIMITS), NOW
    for number, (name, rank, units, wait, then) in enumerate(past):
        lease = f"l{number}"
        demand = (name, 0, units) if name == "slots" else (name, units, 0 if number % 2 else 1)
        take = Take(lease, lease, rank, first_score(rank), ((demand,),), 2_000, waits=then == "wait")
        granted = isinstance(kernel.take(made, take, now), Granted)
        if granted and then == "settle":
            kernel.settle(made, lease, (Usage(name, demand[2], 0),), now, last=True)
        now += wait
    return made, now


def everything(made):
    """All that a book remembers."""
    cells = {
        name: (
            *(getattr(cell, slot) for slot in ("level", "pending", "promised_ms", "at_ms", "due_ms", "limits")),
            {key: (one.amount, one.expires_ms, one.firm) for key, one in cell.leases.items()},
            dict(cell.slices or {}),
        )
        for name, cell in made.cells.items()
    }
    lines = {
        name: (
            list(line.order),
            {key: tuple(getattr(one, slot) for slot in fields_of(type(one))) for key, one in line.entries.items()},
        )
        for name, line in made.lines.items()
    }
    return cells, lines, made.now_ms, made.offset_ms, made.sequence, made.clock_steps


@given(pasts, names, st.integers(0, 5_000), st.integers(1, 25))
def test_a_look_changes_nothing(past, name, later, units):
    made, now = lived(past)
    before = everything(made)
    view(made, name, now + later, units)
    assert everything(made) == before


@given(pasts, names, st.integers(0, 2), st.integers(1, 25), st.integers(0, 3_000))
def test_llm_gateways_45_a_view_says_what_the_kernel_would(past, name, rank, units, later):
    made, now = lived(past)
    for line in made.lines.values():  # the kernel also looks who waits; the view tells that apart
        line.order.clear()
        line.entries.clear()
    seen = view(made, name, now + later, units)
    demand = (name, 0, units) if name == "slots" else (name, units, 0)
    answer = kernel.take(made, Take("t", "t", rank, first_score(rank), ((demand,),), 1_000), now + later)
    free_ms, certain_ms = seen.room.free_at_ms[rank], seen.room.certain_ms[rank]
    if isinstance(answer, Granted):
        assert free_ms == certain_ms == answer.now_ms
        assert seen.remaining[rank] >= units
    else:
        (blocker,) = answer.blockers
        assert seen.remaining[rank] == blocker.remaining < units
        assert free_ms == (blocker.at_ms if blocker.kind is BlockKind.TIME else None)
        assert certain_ms == blocker.certain_ms


@given(pasts, names, st.integers(0, 5_000))
def test_a_copy_lives_on_as_its_original_would(past, name, later):
    made, now = lived(past)
    twin = copied(made.cells[name], now)
    kernel.release(made, "nobody", (name,), now)  # brings the original there
    cell = made.cells[name]
    assert (twin.level, twin.pending, twin.at_ms, twin.due_ms) == (cell.level, cell.pending, cell.at_ms, cell.due_ms)
    assert sorted(twin.leases) == sorted(cell.leases)
    assert not {id(one) for one in twin.leases.values()} & {id(one) for one in cell.leases.values()}


def state(made, name, now=NOW):
    return view(made, name, now).state


def spend(made, name, units, now=NOW):
    kernel.take(made, Take("t", "t", 0, first_score(0), (((name, units, 0),),), 1_000), now)


def test_a_look_from_before_the_last_one_ends_nothing_of_what_is_overdue():
    made = book(s=Limits(BudgetKind.LEASES, burst=150))
    for number in range(150):
        lease = f"l{number}"
        kernel.take(made, Take(lease, lease, 1, first_score(1), ((("s", 0, 1),),), 10), NOW)
    kernel.release(made, "nobody", ("s",), NOW + 10)  # at most 100 lapse in one step
    before = everything(made)
    assert made.cells["s"].due_ms <= NOW + 10
    view(made, "s", NOW + 9)
    assert everything(made) == before


def test_states_in_their_order():
    made = book(level=LEVEL, day=Limits(COUNTER.kind, burst=1, window_ms=86_400_000, slices=24))
    assert state(made, "level") is BudgetState.READY
    spend(made, "level", 20)
    assert state(made, "level") is BudgetState.BACKOFF
    assert state(made, "level", NOW + 100) is BudgetState.READY
    spend(made, "day", 1)
    assert state(made, "day") is BudgetState.STALLED
    pause = Limits(LEVEL.kind, burst=20, quota=10, window_ms=1_000, revision=2, paused=True)
    assert kernel.revise(made, "level", 1, pause, NOW).done
    assert state(made, "level", NOW + 60_000) is BudgetState.PAUSED
    assert view(made, "level", NOW + 60_000).remaining == (0, 0, 0)


def test_a_paused_budget_defers_until_somebody_acts_and_goes_on_where_it_was():
    made = book(level=LEVEL)
    spend(made, "level", 5)
    pause = Limits(LEVEL.kind, burst=20, quota=10, window_ms=1_000, revision=2, paused=True)
    assert kernel.revise(made, "level", 1, pause, NOW).done
    denied = kernel.take(made, Take("a", "a", 0, first_score(0), ((("level", 0, 0),),), 1_000, waits=False), NOW)
    assert (denied.kind, denied.certain_ms) == (BlockKind.EVENT, EXACT)
    go_on = Limits(LEVEL.kind, burst=20, quota=10, window_ms=1_000, revision=3)
    assert kernel.revise(made, "level", 2, go_on, NOW).done
    assert view(made, "level", NOW).remaining == (15, 15, 15)


def test_llm_gateways_4_7_the_backlog_is_told_per_class():
    made = book(level=LEVEL)
    spend(made, "level", 20)
    for number, rank in enumerate((0, 1, 1, 2, 2, 2)):
        ticket = f"w{number}"
        kernel.take(made, Take(ticket, ticket, rank, first_score(rank), ((("level", 1, 0),),), 1_000), NOW)
    assert view(made, "level", NOW).backlog == (1, 2, 3)


def test_only_what_tells_something_new_is_a_change():
    made = book(level=LEVEL, other=LEVEL)
    before = {name: view(made, name, NOW) for name in made.cells}
    spend(made, "level", 1)
    after = {name: view(made, name, NOW) for name in made.cells}
    assert [one.budget for one in changed(before, after)] == ["level"]
    assert [one.budget for one in changed({}, after)] == ["level", "other"]


@given(pasts, names, st.integers(0, 3_000), st.integers(0, 3_000), st.booleans())
def test_llm_gateways_46_what_rests_need_not_be_looked_at_again(past, name, first, later, touched):
    made, now = lived(past)
    seen = view(made, name, now + first)
    if touched:
        spend(made, name, 1, now + first + 1) if name != "slots" else kernel.take(
            made, Take("t", "t", 0, first_score(0), (((name, 0, 1),),), 1_000), now + first + 1
        )
    if at_rest(made, seen):
        assert not changed({name: seen}, {name: view(made, name, now + first + later)})
