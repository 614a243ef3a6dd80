"""Plans: never earlier than the kernel admits, never later for what is free, and in the order of the line."""

from hypothesis import given, settings
from hypothesis import strategies as st
from test_kernel import COUNTER, LEVEL, SLOTS, book
from test_view import NOW, everything, lived, names, pasts

from swarmgate.core import kernel
from swarmgate.core.answers import BlockKind, Granted
from swarmgate.core.book import Book, Take, Usage, first_score
from swarmgate.core.limits import EXACT, Limits, Tier
from swarmgate.core.planning import DELIVERED_MS, PlannedStep, Planning, Way
from swarmgate.core.view import copied

CROWD = Limits(SLOTS.kind, burst=4)


def way(name, units=1):
    return Way(((name, 0, units) if name in {"slots", "crowd"} else (name, units, 0),))


def planned(made, steps, now=NOW, looks=64):
    planning = Planning(made, steps, now)
    while not planning.advance(looks):
        pass
    return planning.planned


def starts(plan):
    return {one.id: one.start_ms for one in plan}


@st.composite
def steps_to_come(draw):
    count = draw(st.integers(1, 12))
    return [
        PlannedStep(
            f"s{number}",
            draw(st.integers(0, 2)),
            tuple(
                way(name, draw(st.integers(1, 3)))
                for name in draw(st.lists(names, min_size=1, max_size=2, unique=True))
            ),
            draw(st.integers(0, 700)),
        )
        for number in range(count)
    ]


def replayed(made, steps, plan, now):
    """What the kernel itself answers when everybody comes exactly when the plan says, and nobody else does."""
    world = Book(made.birth_ms)
    world.now_ms = now
    for name, cell in made.cells.items():
        twin = world.cells[name] = copied(cell, now)
        twin.line = world.line(name)
        twin.order = twin.line.order
    by_id = {step.id: step for step in steps}
    agenda = [(one.start_ms, 1, number, one) for number, one in enumerate(plan) if one.start_ms is not None]
    answers = []
    while agenda:
        agenda.sort(key=lambda entry: entry[:3])
        at_ms, what, _, it = agenda.pop(0)
        if what == 0:
            kernel.settle(world, it[0], it[1], at_ms, last=True)
            continue
        step = by_id[it.id]
        (demand,) = step.ways[it.way].demands
        answers.append(
            kernel.take(world, Take(it.id, it.id, step.rank, first_score(step.rank), ((demand,),), 90_000), at_ms)
        )
        if demand[2]:
            agenda.append((at_ms + step.lasts_ms, 0, 0, (it.id, (Usage(demand[0], demand[2], demand[2]),))))
    return answers


@given(pasts, steps_to_come())
@settings(max_examples=120)
def test_a_plan_never_promises_earlier_than_the_kernel_admits(past, steps):
    made, now = lived(past)
    plan = planned(made, steps, now)
    assert sorted(one.id for one in plan) == sorted(step.id for step in steps)
    assert all(isinstance(answer, Granted) for answer in replayed(made, steps, plan, now))


@given(pasts, names, st.integers(0, 2), st.integers(1, 6))
def test_a_step_alone_starts_when_the_kernel_says(past, name, rank, units):
    made, now = lived(past)
    for line in made.lines.values():
        line.order.clear()
        line.entries.clear()
    (one,) = planned(made, [PlannedStep("s", rank, (way(name, units),))], now)
    demand = way(name, units).demands
    answer = kernel.take(made, Take("t", "t", rank, first_score(rank), (demand,), 1_000), now)
    if isinstance(answer, Granted):
        assert (one.kind, one.start_ms) == (None, now)
    else:
        assert one.kind is answer.kind
        assert one.waits_for == (name,)
        if answer.kind is BlockKind.TIME:
            assert one.start_ms == answer.not_before_ms
        elif answer.kind is BlockKind.EVENT and one.start_ms is not None:
            assert answer.not_before_ms <= one.start_ms <= answer.certain_ms + 5_000  # as often as a ticket asks


@given(pasts, steps_to_come())
def test_planning_changes_nothing_and_may_be_cut_anywhere(past, steps):
    made, now = lived(past)
    before = everything(made)
    whole, cut = planned(made, steps, now, looks=10**6), planned(made, steps, now, looks=1)
    assert whole == cut
    assert everything(made) == before


@given(st.integers(0, 60), st.integers(1, 20), st.integers(0, 2))
def test_free_budgets_are_not_delayed_by_exhausted_ones(busy, free, rank):
    made = book(busy=LEVEL, free=LEVEL)
    kernel.take(made, Take("x", "x", 0, first_score(0), ((("busy", 20, 0),),), 1_000), NOW)
    steps = [PlannedStep(f"b{number}", 0, (way("busy"),)) for number in range(busy)]
    steps += [PlannedStep(f"f{number}", rank, (way("free"),)) for number in range(free)]
    plan = planned(made, steps)
    assert [one.id for one in plan][:free] == [f"f{number}" for number in range(free)]
    assert [one.start_ms for one in plan][:free] == [NOW] * free
    assert [one.id for one in plan][free:] == [f"b{number}" for number in range(busy)]


def test_better_classes_first_and_inside_a_class_as_they_came():
    made = book(a=LEVEL)
    kernel.take(made, Take("x", "x", 0, first_score(0), ((("a", 20, 0),),), 1_000), NOW)
    steps = [PlannedStep(f"{name}{rank}", rank, (way("a"),)) for name in "xyz" for rank in (2, 1, 0)]
    assert [one.id for one in planned(made, steps)] == [f"{name}{rank}" for rank in (0, 1, 2) for name in "xyz"]


def test_who_waits_already_goes_first():
    made = book(a=LEVEL)
    kernel.take(made, Take("x", "x", 0, first_score(0), ((("a", 20, 0),),), 1_000), NOW)
    for number in range(5):
        kernel.take(made, Take(f"w{number}", f"w{number}", 1, first_score(1), ((("a", 2, 0),),), 1_000), NOW)
    plan = planned(made, [PlannedStep("first", 0, (way("a"),)), PlannedStep("last", 1, (way("a"),))])
    assert starts(plan) == {"first": NOW + 100, "last": NOW + 100 + 5 * 200 + 100}


def test_reservations_end_when_a_step_ends_and_early_ones_before():
    made = book(crowd=CROWD)
    assert list(starts(planned(made, [PlannedStep(str(n), 1, (way("crowd"),), 300) for n in range(8)])).values()) == [
        *[NOW] * 4,
        *[NOW + 300] * 4,
    ]
    early = Way((("crowd", 0, 1),), early=("crowd",))
    assert (
        max(starts(planned(made, [PlannedStep(str(n), 1, (early,), 300) for n in range(8)])).values())
        == NOW + DELIVERED_MS
    )


def test_what_the_first_cannot_use_yet_is_planned_for_the_next_as_it_will_come():
    """Three of four places serve thirty steps of 100 ms; the fourth is kept for the first, which waits for something else."""
    made = book(crowd=CROWD, own=Limits(SLOTS.kind, burst=1))
    kernel.take(made, Take("x", "x", 0, first_score(0), ((("own", 0, 1),),), 60_000), NOW)
    steps = [PlannedStep(f"now{number}", 0, (way("crowd"),), 100) for number in range(4)]
    steps.append(PlannedStep("first", 0, (Way((("crowd", 0, 1), ("own", 0, 1))),), 100))
    steps += [PlannedStep(f"next{number}", 1, (way("crowd"),), 100) for number in range(30)]
    found = starts(planned(made, steps))
    assert [found[f"next{number}"] for number in range(30)] == [NOW + 100 + 100 * (number // 3) for number in range(30)]
    assert found["first"] == NOW + 60_000


def test_a_step_of_a_caller_at_its_cap_is_passed_in_a_plan_although_it_wants_more_than_is_free():
    made = book(crowd=CROWD, cap=Limits(SLOTS.kind, burst=1, tier=Tier.CALLERS))
    kernel.take(made, Take("x", "x", 0, first_score(0), ((("cap", 0, 1),),), 60_000), NOW)
    steps = [PlannedStep(f"now{number}", 0, (way("crowd"),), 100 * (number + 1)) for number in range(4)]
    steps.append(PlannedStep("capped", 0, (Way((("crowd", 0, 4), ("cap", 0, 1))),), 100))
    steps += [PlannedStep(f"next{number}", 1, (way("crowd"),), 100) for number in range(12)]
    found = starts(planned(made, steps))
    after_ms = [100, 200, 200, 300, 300, 300, 400, 400, 400, 400, 500, 500]
    assert [found[f"next{number}"] - NOW for number in range(12)] == after_ms


def test_the_way_that_fits_first_is_taken():
    made = book(a=LEVEL, b=LEVEL)
    kernel.take(made, Take("x", "x", 0, first_score(0), ((("a", 20, 0),),), 1_000), NOW)
    (one,) = planned(made, [PlannedStep("s", 1, (way("a"), way("b")))])
    assert (one.start_ms, one.way, one.kind) == (NOW, 1, None)


def test_what_can_never_run_or_waits_for_a_person_has_no_start():
    paused = Limits(LEVEL.kind, burst=20, quota=10, window_ms=1_000, paused=True)
    made = book(a=LEVEL, paused=paused, day=COUNTER)
    steps = [
        PlannedStep("large", 1, (way("a", 21),)),
        PlannedStep("held", 1, (way("paused"),)),
        PlannedStep("keys", 1, (way("a"),), not_before_ms=EXACT),
        PlannedStep("later", 1, (way("a"),), not_before_ms=NOW + 5_000),
        PlannedStep("free", 1, (Way(()),)),
    ]
    found = {one.id: (one.start_ms, one.kind) for one in planned(made, steps)}
    assert found == {
        "large": (None, BlockKind.NEVER),
        "held": (None, BlockKind.EVENT),
        "keys": (None, BlockKind.EVENT),
        "later": (NOW + 5_000, BlockKind.TIME),
        "free": (NOW, None),
    }


def test_a_plan_that_costs_too_much_ends_without_the_rest():
    made = book(a=LEVEL)
    planning = Planning(made, [PlannedStep(f"s{n}", 1, (way("a"),)) for n in range(100)], NOW)
    assert not planning.advance(10)
    assert len(planning.planned) == 100
    assert 0 < sum(one.start_ms is not None for one in planning.planned) < 100


def test_steps_that_last_long_are_planned_whole_and_cheaply():
    made = book(a=LEVEL, crowd=CROWD)
    both = Way((("a", 1, 0), ("crowd", 0, 1)))
    hour_ms = 3_600_000
    planning = Planning(made, [PlannedStep(str(number), number % 3, (both,), hour_ms) for number in range(40)], NOW)
    while not planning.advance(1_000):
        pass
    assert sorted(one.start_ms for one in planning.planned) == [NOW + n * hour_ms for n in range(10) for _ in range(4)]
    assert planning._looks < 10_000


def test_a_budget_that_nobody_has_used_begins_as_the_kernel_lets_it():
    made = book()
    slow = Limits(LEVEL.kind, burst=1, quota=1, window_ms=1_000)
    planning = Planning(made, [PlannedStep(str(number), 1, (way("new"),)) for number in range(3)], NOW, {"new": slow})
    while not planning.advance(64):
        pass
    kernel.define(made, "new", slow)
    first = kernel.take(made, Take("t", "t", 1, first_score(1), (way("new").demands,), 1_000), NOW)
    assert isinstance(first, Granted)
    assert [one.start_ms for one in planning.planned] == [NOW, NOW + 1_000, NOW + 2_000]
