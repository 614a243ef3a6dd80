"""Properties of the lines at the level of the kernel (design 2: P5, P6; design 4: Line)."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from swarmgate.core import kernel
from swarmgate.core.answers import BlockKind, Denied, Granted
from swarmgate.core.book import Book, Take, Usage, first_score
from swarmgate.core.limits import BudgetKind, Limits, Tier
from swarmgate.core.line import CLASS_STEP, UNCLAIMED_MS
from swarmgate.core.passage import touch

START_MS = 1_000_000
HORIZON_MS = 1_000
LEVEL = Limits(BudgetKind.LEVEL, burst=6, quota=1, window_ms=10)
FLOORS = Limits(BudgetKind.LEVEL, burst=8, quota=1, window_ms=10, floors=(0, 2, 4))
SLOTS = Limits(BudgetKind.LEASES, burst=2, hold_ms=30)
COUNTER = Limits(BudgetKind.COUNTER, burst=8, window_ms=240, slices=24)
CAP = Limits(BudgetKind.LEASES, burst=1, tier=Tier.CALLERS)
WAY = Limits(BudgetKind.LEASES, burst=1, tier=Tier.WAYS)
BUDGETS = {"level": LEVEL, "floors": FLOORS, "slots": SLOTS, "counter": COUNTER, "cap": CAP, "way": WAY}
ONE = Limits(BudgetKind.LEASES, burst=1)


def book(**limits):
    made = Book(0)
    made.now_ms = START_MS
    for name, one in limits.items():
        kernel.define(made, name, one)
    return made


def ask(ticket, *demands, rank=1, lease="", lease_ms=600_000, **rest):
    rest.setdefault("score", first_score(rank))
    return Take(ticket, lease or ticket, rank, alternatives=(demands,), lease_ms=lease_ms, **rest)


def come_back(request, denied):
    return request._replace(score=denied.score, standing=denied.lines)


def granted(made, request, now_ms):
    return isinstance(kernel.take(made, request, now_ms), Granted)


needs = {
    "level": st.tuples(st.integers(0, 4), st.integers(0, 3)),
    "floors": st.tuples(st.integers(0, 4), st.integers(0, 3)),
    "slots": st.tuples(st.just(0), st.integers(1, 2)),
    "counter": st.tuples(st.integers(0, 4), st.integers(0, 2)),
    "cap": st.just((0, 1)),
    "way": st.just((0, 1)),
}


@st.composite
def demands(draw, names=tuple(BUDGETS)):
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    return tuple((name, *draw(needs[name])) for name in chosen)


@st.composite
def steps(draw):
    """ms until somebody comes, its class and needs, whether it waits, ms until what it got ends, part used."""
    return draw(
        st.lists(
            st.tuples(
                st.integers(0, 12), st.integers(0, 2), demands(), st.booleans(), st.integers(0, 60), st.integers(0, 3)
            ),
            max_size=14,
        )
    )


class Crowd:
    """Somebody comes, takes or waits, and gives back in time; who waits never asks again."""

    def __init__(self):
        self.book = book(**BUDGETS)
        self.now_ms = START_MS
        self.running = []

    def live(self, plan):
        for number, (wait_ms, rank, wanted, waits, lasts_ms, part) in enumerate(plan):
            self.pass_time(self.now_ms + wait_ms)
            lease = f"l{number}"
            if granted(self.book, ask(lease, *wanted, rank=rank, waits=waits), self.now_ms):
                self.running.append((self.now_ms + lasts_ms, lease, wanted, part))

    def pass_time(self, until_ms):
        for end_ms, lease, wanted, part in sorted(one for one in self.running if one[0] <= until_ms):
            usage = tuple(Usage(name, reserve, min(part, reserve)) for name, _, reserve in wanted if reserve)
            kernel.settle(self.book, lease, usage, max(end_ms, self.now_ms), last=True)
        self.running = [one for one in self.running if one[0] > until_ms]
        self.now_ms = until_ms


def start_ms(cell, rank, need, now_ms, taken=(0, 0)):
    """When there is room, tried millisecond by millisecond; None if only an event makes room."""
    for at_ms in range(now_ms, now_ms + HORIZON_MS):
        level, pending = cell.level, cell.pending + taken[1]
        if cell.limits.kind is BudgetKind.LEVEL:
            level = max(0, level + taken[0] * cell.scale - cell.drain * (at_ms - now_ms))
        elif cell.slices is not None:
            kept = sum(units for index, units in cell.slices.items() if cell.limits.forgotten_at_ms(index) > at_ms)
            level = kept + taken[0]
        else:
            pending -= sum(held.amount for held in cell.leases.values() if held.firm and held.expires_ms <= at_ms)
        if level + (pending + sum(need)) * cell.scale <= cell.caps[rank]:
            return at_ms
    return None


def is_in_the_way(cell, rank, need, entry, now_ms):
    """Whether taking `need` now lets that better ticket start later than it could."""
    better = entry.score // CLASS_STEP
    is_aside = entry.tier < cell.limits.tier
    if is_aside and entry.kind is not BlockKind.TIME:
        return False
    if rank == 2 and better < 2 and not is_aside:
        return True
    if entry.kind is BlockKind.EVENT:
        both = (need[0] + entry.need[0], need[1] + entry.need[1])
        return start_ms(cell, better, both, now_ms) != now_ms
    alone, after = (start_ms(cell, better, entry.need, now_ms, taken) for taken in ((0, 0), need))
    if after is None:
        return not is_aside
    return alone is None or after > max(alone, entry.ready_ms)


@settings(max_examples=150, deadline=None)
@given(steps(), st.integers(0, 300), st.integers(0, 2), demands())
def test_a_call_is_admitted_if_it_fits_and_delays_nobody_better(plan, wait_ms, rank, wanted):
    crowd = Crowd()
    crowd.live(plan)
    now_ms = crowd.now_ms + wait_ms
    crowd.pass_time(now_ms)
    for name, _, _ in wanted:
        touch(crowd.book.cells[name], now_ms)
    may = True
    for name, *need in wanted:
        cell = crowd.book.cells[name]
        live = [
            entry
            for entry in cell.line.entries.values()
            if entry.score < first_score(rank) and entry.expires_ms > now_ms <= entry.due_ms + UNCLAIMED_MS
        ]
        may &= start_ms(cell, rank, need, now_ms) == now_ms
        may &= not any(is_in_the_way(cell, rank, need, entry, now_ms) for entry in live)
    assert granted(crowd.book, ask("probe", *wanted, rank=rank, waits=False), now_ms) == may


@settings(max_examples=80, deadline=None)
@given(steps(), st.integers(0, 1), demands(("level", "floors", "counter")), steps())
def test_nobody_behind_delays_the_promised_instant_where_a_ticket_stands(before, rank, wanted, behind):
    crowd = Crowd()
    crowd.live(before)
    for line in crowd.book.lines.values():  # those who never came back are no rivals
        for ticket in list(line.entries):
            kernel.leave(line, ticket)
    request = ask("large", *wanted, rank=rank)
    denied = kernel.take(crowd.book, request, crowd.now_ms)
    if not isinstance(denied, Denied) or denied.kind is not BlockKind.TIME:
        return
    free = {name for name, _, _ in wanted} - set(denied.lines)  # did not block it, so it stands not there
    later = []
    for wait_ms, other, needed, *rest in behind:
        rivals = tuple(demand for demand in needed if demand[0] not in free)
        fits = sum(one[0] for one in later) + wait_ms < denied.not_before_ms - crowd.now_ms
        later.append((wait_ms if fits else 0, max(rank, other), rivals, *rest))
    crowd.live(later)
    crowd.pass_time(denied.not_before_ms)
    assert granted(crowd.book, come_back(request, denied), denied.not_before_ms)


@pytest.mark.parametrize(("early_ms", "goes"), [(260, True), (240, False)])
def test_a_counter_idles_for_nobody_who_waits_longer_elsewhere(early_ms, goes):
    made = book(counter=COUNTER, slow=Limits(BudgetKind.LEVEL, burst=6, quota=1, window_ms=1_000))
    better = ask("better", ("counter", 6, 0), ("slow", 1, 0), rank=0)
    assert granted(made, ask("fill", ("counter", 3, 0), ("slow", 6, 0)), START_MS)
    denied = kernel.take(made, better, START_MS)
    assert (set(denied.lines), denied.not_before_ms) == ({"counter", "slow"}, START_MS + 1_000)
    worse = ask("worse", ("counter", 4, 0), waits=False)
    assert granted(made, worse, denied.not_before_ms - early_ms) is goes  # if so, it is forgotten again in time
    assert granted(made, come_back(better, denied), denied.not_before_ms)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 2), st.integers(1, 3)), max_size=60))
def test_a_large_call_is_not_starved_by_small_ones_that_keep_coming(small):
    made = book(level=LEVEL)
    assert granted(made, ask("fill", ("level", 6, 0)), START_MS)
    large = ask("large", ("level", 6, 0), rank=0)
    denied = kernel.take(made, large, START_MS)
    now_ms = START_MS
    waiting = {}
    for number, (wait_ms, rank, need) in enumerate(small):
        now_ms = min(now_ms + wait_ms, denied.not_before_ms - 1)
        request = waiting.pop(number - 3, ask(f"s{number}", ("level", need, 0), rank=rank))
        answer = kernel.take(made, request, now_ms)
        if isinstance(answer, Denied):
            waiting[number] = come_back(request, answer)
    assert denied.not_before_ms == START_MS + 60
    assert granted(made, come_back(large, denied), denied.not_before_ms)


@settings(max_examples=60, deadline=None)
@given(steps(), st.integers(0, 12), demands())
def test_p2_takes_nothing_where_a_better_class_waits(plan, wait_ms, wanted):
    crowd = Crowd()
    crowd.live(plan)
    now_ms = crowd.now_ms + wait_ms
    crowd.pass_time(now_ms)
    better = {
        name
        for name, cell in crowd.book.cells.items()
        for entry in cell.line.entries.values()
        if entry.score < 2 * CLASS_STEP and now_ms <= entry.due_ms + UNCLAIMED_MS
        if entry.tier >= cell.limits.tier  # or it stands aside
    }
    if granted(crowd.book, ask("idle", *wanted, rank=2), now_ms):
        assert not better & {name for name, _, _ in wanted}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30)), min_size=2, max_size=8), st.randoms())
@example([(1, 0)] * 6, None)
def test_llm_gateways_8_interchangeable_budgets_serve_one_line_in_order(callers, shuffled):
    pool = {
        f"key{n}": Limits(BudgetKind.LEVEL, burst=2, quota=1, window_ms=20 + n, line="pool", sharing=3)
        for n in range(3)
    }
    made = book(**pool)
    now_ms = START_MS
    for name in pool:
        assert granted(made, ask(f"fill {name}", (name, 2, 0)), now_ms)

    def anywhere(request, turn):
        """Three keys, another first each time."""
        keys = sorted(pool)[turn % 3 :] + sorted(pool)[: turn % 3]
        return request._replace(alternatives=tuple(((key, 2, 0),) for key in keys))

    waiting, served = {}, []
    for number, (rank, wait_ms) in enumerate(callers):
        now_ms += wait_ms // len(callers)
        request = anywhere(ask(f"t{number}", rank=rank), number)
        waiting[f"t{number}"] = come_back(request, kernel.take(made, request, now_ms))
    for turn in range(60):
        now_ms += 9
        for ticket in shuffled.sample(sorted(waiting), len(waiting)) if shuffled else sorted(waiting, reverse=True):
            request = anywhere(waiting[ticket], turn)
            answer = kernel.take(made, request, now_ms)
            if isinstance(answer, Granted):
                served.append(waiting.pop(ticket).score)
            else:
                waiting[ticket] = come_back(request, answer)
    assert not waiting
    assert served == sorted(served)


def test_a_due_ticket_nobody_claims_lets_the_next_pass_and_keeps_its_place():
    made = book(level=LEVEL)
    assert granted(made, ask("fill", ("level", 6, 0)), START_MS)
    first = ask("first", ("level", 6, 0))
    denied = kernel.take(made, first, START_MS)
    due_ms = denied.due_ms
    assert not granted(made, ask("second", ("level", 3, 0), waits=False), due_ms + UNCLAIMED_MS)
    assert granted(made, ask("second", ("level", 3, 0)), due_ms + UNCLAIMED_MS + 1)
    again = kernel.take(made, come_back(first, denied), due_ms + UNCLAIMED_MS + 2)
    assert isinstance(again, Denied)
    assert (again.score, again.position) == (denied.score, 0)
    third = ask("third", ("level", 6, 0))
    behind = kernel.take(made, third, due_ms + UNCLAIMED_MS + 3)
    assert behind.position == 1
    assert not granted(made, come_back(third, behind), again.due_ms)
    assert granted(made, come_back(first, again), again.due_ms)


def test_a_ticket_that_waits_for_an_event_is_passed_only_if_there_is_room_for_both():
    made = book(slots=Limits(BudgetKind.LEASES, burst=4))
    assert granted(made, ask("holder", ("slots", 0, 2)), START_MS)
    first = ask("first", ("slots", 0, 3))
    denied = kernel.take(made, first, START_MS)
    assert denied.kind is BlockKind.EVENT
    assert not granted(made, ask("one", ("slots", 0, 1), waits=False), START_MS + 1)
    kernel.release(made, "holder", ("slots",), START_MS + 2)
    assert granted(made, ask("one", ("slots", 0, 1)), START_MS + 2)
    assert not granted(made, ask("another", ("slots", 0, 1), waits=False), START_MS + 2)
    assert granted(made, come_back(first, denied), START_MS + 3)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 60))
def test_who_is_behind_a_ticket_that_waits_for_an_event_asks_when_there_is_room_for_both(first, second, later_ms):
    made = book(level=LEVEL, one=ONE)
    assert granted(made, ask("holder", ("one", 0, 1)), START_MS)
    assert granted(made, ask("fill", ("level", 6, 0)), START_MS)
    assert kernel.take(made, ask("first", ("level", first, 0), ("one", 0, 1)), START_MS).kind is BlockKind.EVENT
    request = ask("second", ("level", second, 0))
    denied = kernel.take(made, request, START_MS + later_ms)
    if isinstance(denied, Denied) and denied.kind is BlockKind.LINE and first + second <= LEVEL.burst:
        before = kernel.take(made, come_back(request, denied), denied.due_ms - 1)
        assert isinstance(before, Denied)
        assert granted(made, come_back(request, before), denied.due_ms)


def test_who_was_sent_away_stands_nowhere_and_comes_back_to_its_place():
    made = book(s=ONE)
    assert granted(made, ask("holder", ("s", 0, 1)), START_MS)
    away = ask("away", ("s", 0, 1))
    denied = kernel.take(made, away._replace(waits=False), START_MS)
    assert denied.lines == ()
    assert not made.lines["s"].order
    later = ask("later", ("s", 0, 1))
    waits = kernel.take(made, later, START_MS + 1)
    back = kernel.take(made, come_back(away, denied), START_MS + 2)
    assert (back.position, waits.position) == (0, 0)
    kernel.release(made, "holder", ("s",), START_MS + 3)
    assert not granted(made, come_back(later, waits), START_MS + 3)
    assert granted(made, come_back(away, back), START_MS + 3)


def test_a_ticket_whose_denial_was_lost_does_not_wait_for_itself():
    made = book(s=ONE)
    kernel.take(made, ask("holder", ("s", 0, 1)), START_MS)
    lost = kernel.take(made, ask("x", ("s", 0, 1)), START_MS)
    kernel.take(made, ask("y", ("s", 0, 1)), START_MS)
    again = kernel.take(made, ask("x", ("s", 0, 1)), START_MS + 100)
    assert isinstance(lost, Denied)
    assert isinstance(again, Denied)
    assert again.score == lost.score
    kernel.release(made, "holder", ("s",), START_MS + 200)
    assert granted(made, ask("x", ("s", 0, 1)), START_MS + 250)


def test_a_ticket_that_lapsed_holds_nobody_back():
    made = book(s=ONE)
    assert granted(made, ask("holder", ("s", 0, 1)), START_MS)
    gone = kernel.take(made, ask("gone", ("s", 0, 1), expires_after_ms=100), START_MS)
    kernel.release(made, "holder", ("s",), START_MS)
    assert not granted(made, ask("next", ("s", 0, 1), waits=False), gone.due_ms + 99)
    assert granted(made, ask("next", ("s", 0, 1)), gone.due_ms + 100)
    assert not made.lines["s"].order
