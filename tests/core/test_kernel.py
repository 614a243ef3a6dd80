"""Properties of the kernel: bound, all or nothing, honest instants, settle on every path (design 2: P1, P3, P6, P9)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmgate.core import kernel
from swarmgate.core.answers import BlockKind, Denied, Granted
from swarmgate.core.book import Book, Take, Usage, first_score
from swarmgate.core.errors import BadInput
from swarmgate.core.limits import EXACT, BudgetKind, Limits

BURST = 20
LEVEL = Limits(BudgetKind.LEVEL, burst=BURST, quota=10, window_ms=1_000)
SLOTS = Limits(BudgetKind.LEASES, burst=3, hold_ms=500)
COUNTER = Limits(BudgetKind.COUNTER, burst=30, window_ms=2_400, slices=24)


def book(*, now_ms=1_000_000, **limits):
    made = Book(0)
    made.now_ms = now_ms
    for name, one in limits.items():
        kernel.define(made, name, one)
    return made


def ask(*demands, lease="l", rank=1, lease_ms=10_000, **rest):
    return Take(lease, lease, rank, rest.pop("score", first_score(rank)), (demands,), lease_ms, **rest)


def state(made):
    return {
        name: (cell.level, cell.pending, sorted(cell.leases), dict(cell.slices or {}), cell.at_ms)
        for name, cell in made.cells.items()
    }


steps = st.lists(
    st.tuples(
        st.integers(0, 400),  # ms to the next step
        st.integers(0, 6),  # cost at once
        st.integers(0, 8),  # reserved
        st.integers(0, 8),  # used of it
        st.integers(0, 3_000),  # ms until it is settled
    ),
    max_size=60,
)


@given(steps)
def test_a_bucket_never_admits_more_than_burst_and_rate_in_any_window(plan):
    made = book(a=LEVEL)
    now, used, due = 1_000_000, [], []
    for number, (wait, cost, reserve, spent, lasts) in enumerate(plan):
        now += wait
        for end, lease, left in sorted(d for d in due if d[0] <= now):
            spent_now = min(left[0], left[1])
            kernel.settle(made, lease, (Usage("a", left[0], spent_now),), end, last=True)
            used.append((end, spent_now))
        due = [d for d in due if d[0] > now]
        lease = f"l{number}"
        if isinstance(kernel.take(made, ask(("a", cost, reserve), lease=lease, waits=False), now), Granted):
            used.append((now, cost))
            if reserve:
                due.append((now + lasts, lease, (reserve, spent)))
    for index, (start, _) in enumerate(used):
        total = 0
        for end, units in used[index:]:
            total += units
            assert total * 1_000 <= BURST * 1_000 + 10 * (end - start)


@given(steps)
def test_slots_never_hold_more_than_their_number_and_a_hold_ends_on_time(plan):
    made = book(s=SLOTS)
    now, busy = 1_000_000, []
    for number, (wait, _, _, _, lasts) in enumerate(plan):
        now += wait
        for end, lease in sorted(b for b in busy if b[0] <= now and b[1]):
            kernel.settle(made, lease, (Usage("s", 1, 0),), end, last=True)
        busy = [(end + 500, "") if end <= now and lease else (end, lease) for end, lease in busy]
        busy = [b for b in busy if b[1] or b[0] > now]
        answer = kernel.take(made, ask(("s", 0, 1), lease=f"l{number}", waits=False), now)
        assert isinstance(answer, Granted) == (len(busy) < 3)
        if isinstance(answer, Granted):
            busy.append((now + lasts, f"l{number}"))


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 9)), max_size=80))
def test_llm_gateways_39_a_counter_holds_in_every_window(plan):
    made = book(c=COUNTER)
    now, used = 1_000_000, []
    for number, (wait, cost) in enumerate(plan):
        now += wait
        if isinstance(kernel.take(made, ask(("c", cost, 0), lease=f"l{number}", waits=False), now), Granted):
            used.append((now, cost))
    for start, _ in used:
        assert sum(units for at, units in used if start <= at < start + 2_400) <= 30


@given(steps, st.integers(0, 30), st.integers(0, 30))
def test_llm_gateways_36_all_or_nothing_and_every_blocker_is_named(plan, first, second):
    made = book(a=LEVEL, b=LEVEL, s=SLOTS)
    now = 1_000_000
    for number, (wait, cost, reserve, _, _) in enumerate(plan):
        now += wait
        kernel.take(made, ask(("a", cost, 0), ("s", 0, reserve % 3), lease=f"l{number}", waits=False), now)
    for cell in made.cells.values():
        kernel.touch(cell, made.now_ms)
    before = state(made)
    request = ask(("a", first, 0), ("b", 0, second), ("s", 0, 1), waits=False)
    answer = kernel.take(made, request, now)
    if isinstance(answer, Denied):
        assert state(made) == before
        alone = {
            name
            for name, cost, reserve in request.alternatives[0]
            if isinstance(kernel.take(made, ask((name, cost, reserve), lease="x", waits=False), now), Denied)
        }
        assert alone <= {blocker.budget for blocker in answer.blockers}


@given(steps, st.integers(1, BURST), st.integers(0, BURST))
def test_not_before_is_a_promise_when_every_blocker_is_time(plan, cost, reserve):
    made = book(a=LEVEL, s=SLOTS, c=COUNTER)
    now, open_leases = 1_000_000, []
    for number, (wait, one, more, _, lasts) in enumerate(plan):
        now += wait
        lease = f"l{number}"
        demands = (("a", one, more), ("s", 0, 1), ("c", one, 0))
        if isinstance(kernel.take(made, ask(*demands, lease=lease, waits=False), now), Granted):
            open_leases.append(lease)
            if lasts % 2:
                kernel.settle(made, lease, (Usage("a", more, more // 2), Usage("s", 1, 0)), now, last=True)
    request = ask(("a", cost, reserve), ("s", 0, 1), ("c", 1, 0), lease="me", waits=False)
    answer = kernel.take(made, request, now)
    if isinstance(answer, Denied) and answer.kind is BlockKind.TIME:
        assert answer.not_before_ms > made.now_ms
        assert isinstance(kernel.take(made, request, answer.not_before_ms), Granted)


@given(steps, st.integers(1, BURST), st.integers(0, BURST))
def test_by_the_certain_instant_every_reservation_has_ended(plan, cost, reserve):
    made = book(a=LEVEL, s=SLOTS)
    now = 1_000_000
    for number, (wait, one, more, _, _) in enumerate(plan):
        now += wait
        kernel.take(made, ask(("a", one, more), ("s", 0, 1), lease=f"l{number}", waits=False), now)
    request = ask(("a", cost, reserve), ("s", 0, 1), lease="me", waits=False)
    answer = kernel.take(made, request, now)
    if isinstance(answer, Denied) and answer.kind is not BlockKind.NEVER:
        assert isinstance(kernel.take(made, request, max(answer.certain_ms, now)), Granted)


@given(st.lists(st.integers(-5_000, 5_000), max_size=50))
def test_a_clock_that_steps_back_never_credits_an_instant_twice(moves):
    made = book(a=LEVEL)
    raw, admitted = 1_000_000, 0
    for move in moves:
        raw = max(0, raw + move)
        admitted += isinstance(kernel.take(made, ask(("a", 5, 0), waits=False), raw), Granted) * 5
    assert admitted * 1_000 <= BURST * 1_000 + 10 * (made.now_ms - 1_000_000)


def test_a_backward_step_of_the_clock_stalls_nothing():
    made = book(a=LEVEL)
    kernel.take(made, ask(("a", BURST, 0), waits=False), 1_000_000)
    kernel.take(made, ask(("a", 1, 0), waits=False), 1_000_000 - 3_600_000)
    assert made.clock_steps == 1
    assert isinstance(kernel.take(made, ask(("a", 1, 0), waits=False), 1_000_100 - 3_600_000), Granted)


def test_a_lost_store_refills_cold():
    made = Book(birth_ms=1_000_000)
    kernel.define(made, "a", LEVEL)
    kernel.define(made, "s", Limits(BudgetKind.LEASES, burst=3, lease_ms=700))
    refused = kernel.take(made, ask(("a", 1, 0), ("s", 0, 1), waits=False), 1_000_000)
    assert isinstance(refused, Denied)
    assert refused.not_before_ms == 1_000_700
    assert isinstance(kernel.take(made, ask(("a", 1, 0), ("s", 0, 1), waits=False), 1_000_700), Granted)


def test_a_late_settlement_adds_and_never_subtracts():
    made = book(a=LEVEL)
    kernel.take(made, ask(("a", 0, 10), lease="x", lease_ms=100), 1_000_000)
    kernel.touch(made.cells["a"], 1_000_100)
    charged = made.cells["a"].level
    kernel.settle(made, "x", (Usage("a", 10, 3),), 1_000_100, last=True)
    assert made.cells["a"].level == charged == 10 * 1_000
    _, debt = kernel.settle(made, "x", (Usage("a", 10, 14),), 1_000_100, last=True)
    assert debt == 4
    assert made.cells["a"].level == 14 * 1_000


def test_a_lapsed_reservation_is_charged_at_its_lapse_and_drains_from_then_on():
    made = book(a=LEVEL)
    kernel.take(made, ask(("a", 0, 10), lease="x", lease_ms=900), 1_000_000)
    kernel.touch(made.cells["a"], 1_001_000)
    assert made.cells["a"].level == 10 * 1_000 - 100 * 10


def test_llm_gateways_35_38_use_beyond_the_reservation_is_debt_and_delays_the_next():
    made = book(a=LEVEL)
    kernel.take(made, ask(("a", 0, 5), lease="x"), 1_000_000)
    assert kernel.settle(made, "x", (Usage("a", 5, 30),), 1_000_000, last=True) == (1_000_000, 25)
    refused = kernel.take(made, ask(("a", 1, 0), waits=False), 1_000_000)
    assert isinstance(refused, Denied)
    assert refused.not_before_ms == 1_000_000 + 1_100


@given(st.integers(-EXACT * 4, EXACT * 4))
def test_hostile_usage_never_credits(told):
    made = book(a=LEVEL)
    kernel.take(made, ask(("a", 1, 5), lease="x"), 1_000_000)
    before = made.cells["a"].level
    kernel.settle(made, "x", (Usage("a", 5, told),), 1_000_000, last=True)
    assert before <= made.cells["a"].level < EXACT
    assert made.cells["a"].pending == 0


def test_parts_of_a_stream_are_settled_while_it_runs():
    made = book(a=LEVEL)
    kernel.take(made, ask(("a", 0, 10), lease="x"), 1_000_000)
    kernel.settle(made, "x", (Usage("a", 10, 4),), 1_000_000, last=False)
    cell = made.cells["a"]
    assert (cell.level, cell.pending) == (4 * 1_000, 6)
    kernel.settle(made, "x", (Usage("a", 6, 1),), 1_000_000, last=True)
    assert (cell.level, cell.pending, cell.leases) == (5 * 1_000, 0, {})


def test_a_released_reservation_leaves_no_trace_but_what_was_taken_at_once():
    made = book(a=LEVEL, s=SLOTS)
    kernel.take(made, ask(("a", 2, 10), ("s", 0, 1), lease="x"), 1_000_000)
    kernel.release(made, "x", ("a", "s"), 1_000_000)
    assert (made.cells["a"].level, made.cells["a"].pending, made.cells["s"].pending) == (2 * 1_000, 0, 0)


def test_a_renewed_lease_outlives_its_first_end_and_a_lapsed_one_does_not():
    made = book(a=LEVEL)
    kernel.take(made, ask(("a", 0, 5), lease="x", lease_ms=100), 1_000_000)
    kernel.renew(made, "x", ("a",), 1_000, 1_000_050)
    kernel.touch(made.cells["a"], 1_000_200)
    assert made.cells["a"].pending == 5
    kernel.renew(made, "x", ("a",), 1_000, 1_002_000)
    assert made.cells["a"].pending == 0


def test_floors_keep_room_for_better_classes():
    floored = Limits(BudgetKind.LEVEL, burst=BURST, quota=10, window_ms=1_000, floors=(0, 5, 10))
    made = book(a=floored)
    for rank, admitted in ((2, 10), (1, 5), (0, 5)):
        count = 0
        while isinstance(kernel.take(made, ask(("a", 1, 0), rank=rank, waits=False), 1_000_000), Granted):
            count += 1
        assert count == admitted


def test_a_cost_that_can_never_fit_is_never():
    made = book(a=LEVEL)
    refused = kernel.take(made, ask(("a", BURST + 1, 0)), 1_000_000)
    assert isinstance(refused, Denied)
    assert refused.kind is BlockKind.NEVER
    assert refused.lines == ()


@given(st.integers(1, 50), st.integers(1, 50), st.integers(0, 2_000))
@settings(max_examples=50)
def test_a_revision_takes_effect_at_once_and_keeps_what_was_used(burst, quota, later):
    made = book(a=LEVEL)
    kernel.take(made, ask(("a", BURST, 0), waits=False), 1_000_000)
    new = Limits(BudgetKind.LEVEL, burst=burst, quota=quota, window_ms=500, revision=2)
    assert not kernel.revise(made, "a", 7, new, 1_000_000).done
    assert kernel.revise(made, "a", 1, new, 1_000_000).done
    answer = kernel.take(made, ask(("a", 1, 0), waits=False), 1_000_000 + later)
    assert isinstance(answer, Granted) == ((BURST + 1) * 500 - quota * later <= burst * 500)


def test_a_counter_never_forgets_more_than_it_counted():
    made = book(c=COUNTER)
    for later in (0, 100):
        kernel.settle(made, "x", (Usage("c", 0, EXACT * 8),), 1_000_000 + later, last=True)
    for later in (2_500, 2_600):
        kernel.touch(made.cells["c"], 1_000_000 + later)
        assert made.cells["c"].level == sum(made.cells["c"].slices.values()) >= 0


def test_the_window_of_a_counter_cannot_change():
    made = book(c=COUNTER)
    kernel.take(made, ask(("c", 30, 0), waits=False), 1_000_000)
    shorter = Limits(BudgetKind.COUNTER, burst=30, window_ms=1_200, slices=24, revision=2)
    assert not kernel.revise(made, "c", 1, shorter, 1_000_000).done
    assert isinstance(kernel.take(made, ask(("c", 30, 0), waits=False), 1_000_010), Denied)


def test_a_shortened_lease_ends_when_it_was_told_to():
    made = book(a=LEVEL)
    kernel.take(made, ask(("a", 0, BURST), lease="x", lease_ms=60_000), 1_000_000)
    kernel.renew(made, "x", ("a",), 1_000, 1_000_000)
    refused = kernel.take(made, ask(("a", 1, 0), waits=False), 1_000_000)
    assert isinstance(refused, Denied)
    assert refused.certain_ms == 1_001_100
    assert isinstance(kernel.take(made, ask(("a", 1, 0), waits=False), 1_001_100), Granted)


def test_more_overdue_leases_than_one_step_ends_are_a_denial_like_any_other():
    made = book(s=Limits(BudgetKind.LEASES, burst=150))
    for number in range(150):
        kernel.take(made, ask(("s", 0, 1), lease=f"l{number}", lease_ms=100), 1_000_000)
    refused = kernel.take(made, ask(("s", 0, 150), waits=False), 1_000_200)
    assert isinstance(refused, Denied)
    assert [blocker.budget for blocker in refused.blockers] == ["s"]
    assert isinstance(kernel.take(made, ask(("s", 0, 150), waits=False), 1_000_201), Granted)


def test_every_instant_of_a_denial_fits_a_double_however_long_the_line():
    burst = EXACT // 1_000 - 1
    made = book(a=Limits(BudgetKind.LEVEL, burst=burst, quota=1, window_ms=1_000))
    made.cells["a"].level = 1
    kernel.take(made, ask(("a", burst, 0), lease="large", rank=0), 1_000_000)
    for number in range(20):
        refused = kernel.take(made, ask(("a", burst // 2, 0), lease=f"l{number}"), 1_000_000)
    assert isinstance(refused, Denied)
    assert refused.kind is BlockKind.LINE
    assert refused.not_before_ms < 2**53


def test_a_lease_that_is_taken_twice_is_held_twice_and_ends_whole():
    made = book(a=LEVEL, s=SLOTS)
    for _ in range(2):
        kernel.take(made, ask(("a", 0, 4), ("s", 0, 1), lease="x"), 1_000_000)
    assert [(cell.pending, cell.leases["x"].amount) for cell in made.cells.values()] == [(8, 8), (2, 2)]
    kernel.release(made, "x", ("a", "s"), 1_000_000)
    assert [cell.pending for cell in made.cells.values()] == [0, 0]


@given(st.integers(-EXACT, -1), st.booleans())
def test_nothing_is_taken_backwards(units, reserved):
    made = book(a=LEVEL, s=SLOTS)
    before = state(made)
    demand = ("a", 0, units) if reserved else ("a", units, 0)
    with pytest.raises(BadInput, match="backwards"):
        kernel.take(made, ask(("s", 0, 1), demand), 1_000_000)
    assert state(made) == before


@pytest.mark.parametrize(("wait_ms", "kind"), [(10, BlockKind.TIME), (1_000, BlockKind.EVENT)])
def test_an_alternative_a_moment_away_is_preferred_to_one_that_waits_for_an_event(wait_ms, kind):
    one = Limits(BudgetKind.LEVEL, burst=1, quota=1, window_ms=1_000)
    made = book(slots=Limits(BudgetKind.LEASES, burst=1), bucket=one)
    made.cells["bucket"].level = wait_ms
    kernel.take(made, ask(("slots", 0, 1), lease="holder"), made.now_ms)
    asked = Take("t", "t", 1, first_score(1), ((("slots", 0, 1),), (("bucket", 1, 0),)), 10_000, waits=False)
    assert kernel.take(made, asked, made.now_ms).kind is kind


def test_no_instant_is_certain_while_more_is_overdue_than_a_step_may_end():
    made = book(now_ms=0, slots=Limits(BudgetKind.LEASES, burst=250))
    for number in range(250):
        kernel.take(made, ask(("slots", 0, 1), lease=f"l{number}", lease_ms=1_000), 0)
    whole = ask(("slots", 0, 250), lease="all", waits=False)
    assert kernel.take(made, whole, 500).certain_ms == 1_000
    told = [kernel.take(made, whole, 1_000 + step) for step in range(3)]
    assert {answer.certain_ms for answer in told if isinstance(answer, Denied)} == {EXACT}
    assert isinstance(told[-1], Granted)


def test_places_granted_without_the_store_are_held_until_they_end():
    made = book(now_ms=0, slots=Limits(BudgetKind.LEASES, burst=2, hold_ms=100))
    kernel.settle(made, "far", (("slots", 0, 2),), 0, last=False)
    asked = ask(("slots", 0, 1), waits=False)
    assert isinstance(kernel.take(made, asked, 10), Denied)
    kernel.settle(made, "far", (("slots", 0, 0),), 20, last=True)
    assert isinstance(kernel.take(made, asked, 119), Denied)
    assert isinstance(kernel.take(made, asked, 120), Granted)


def test_a_place_for_which_nothing_is_left_to_count_is_no_hold():
    made = book(slots=SLOTS)
    kernel.settle(made, "absurd", (Usage("slots", 0, EXACT * 9),), 1_000_001, last=False)
    kernel.settle(made, "late", (Usage("slots", 0, 1),), 1_000_002, last=False)
    assert list(made.cells["slots"].leases) == ["absurd"]
    assert made.cells["slots"].pending == EXACT - 1
