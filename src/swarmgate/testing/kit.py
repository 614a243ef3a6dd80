"""
The conformance kit: what any budget store must keep, said as properties (design 2: P1, P3, P5, P6, P9, P10).

Subclass `StoreChecks` in a test module, name the class Test..., and return a fresh store from `make`; pytest runs every
check. Needs hypothesis. A store that passes keeps the bounds; one that also passes `twins` decides like every other.
"""

from collections.abc import Iterable
from fractions import Fraction
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swarmgate.core.answers import BlockKind, Denied, Granted, Revised
from swarmgate.core.book import Demand, Take, Usage, first_score
from swarmgate.core.commands import Release, Renew, Settle
from swarmgate.core.limits import EXACT, BudgetKind, Limits
from swarmgate.core.operations import Define, Done, Operation, Reply, Revise, Undefined
from swarmgate.testing.decider import Decider

START_MS = 1_700_000_000_000
LATER_MS = START_MS + 100_000_000  # nothing is cold any more
BURST, QUOTA = 20, 10
BUCKET = Limits(BudgetKind.LEVEL, burst=BURST, quota=QUOTA, window_ms=1_000, lease_ms=5_000)
SLOTS = Limits(BudgetKind.LEASES, burst=3, hold_ms=500, lease_ms=5_000)
COUNTER = Limits(BudgetKind.COUNTER, burst=30, window_ms=2_400, slices=24)
PACES = ((1, 86_400_000), (1, 60_000), (7, 900), (100, 1_000), (10**6, 1_000), (10**9, 60_000))  # units per ms
LEAPS_MS = (0, 1, 59_999, 86_400_000, 315_360_000_000)  # the longest is ten years
DAY = Limits(BudgetKind.COUNTER, burst=BURST, window_ms=86_400_000, slices=24)  # forgets nothing during a check

checked = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.differing_executors])
plans = st.lists(
    st.tuples(
        st.integers(0, 400),  # ms to the next step
        st.integers(0, 6),  # cost at once
        st.integers(0, 8),  # reserved
        st.integers(0, 12),  # used of it
        st.integers(0, 3_000),  # ms until it is settled
    ),
    max_size=40,
)


def ask(lease: str, *demands: Demand, rank: int = 1, **rest: Any) -> Take:
    """A caller that asks for one alternative; it does not wait unless told to."""
    return Take(
        rest.pop("ticket", lease),
        lease,
        rank,
        rest.pop("score", first_score(rank)),
        (demands,),
        rest.pop("lease_ms", 10_000),
        waits=rest.pop("waits", False),
        **rest,
    )


class WarmStore:
    """A store with budgets, old enough that nothing is cold."""

    def __init__(self, store: Decider, now_ms: int = LATER_MS, **budgets: Limits) -> None:
        self.store = store
        store.decide([Define("birth", BUCKET)], START_MS)
        store.decide([Define(name, limits) for name, limits in budgets.items()], now_ms)

    def tell(self, operation: Operation, now_ms: int) -> Reply:
        """One operation, one reply."""
        (reply,) = self.store.decide([operation], now_ms)
        return reply

    def grants(self, request: Take, now_ms: int) -> bool:
        """Whether it is granted."""
        return isinstance(self.tell(request, now_ms), Granted)

    def remaining(self, budget: str, now_ms: int) -> int:
        """What the store says is left: a cost that can never fit is denied with it."""
        refused = self.tell(ask("probe", (budget, 2**40, 0), rank=0), now_ms)
        assert isinstance(refused, Denied)
        return refused.blockers[0].remaining


def most_in_any_window(used: Iterable[tuple[int, int]], burst: int, quota: int, window_ms: int) -> bool:
    """Whether every window of (instant, units) holds at most burst + quota / window_ms x its length, exactly."""
    events = list(used)
    for index, (start_ms, _) in enumerate(events):
        total = 0
        for end_ms, units in events[index:]:
            total += units
            if total * window_ms > burst * window_ms + quota * (end_ms - start_ms):
                return False
    return True


class StoreChecks:
    """The checks; `make` returns a store that knows nothing."""

    def make(self) -> Decider:
        """A fresh store."""
        raise NotImplementedError

    @checked
    @given(plans)
    def test_a_bucket_admits_at_most_burst_and_rate_in_any_window(self, plan: list[tuple[int, ...]]) -> None:
        """P1, as long as nobody uses more than was reserved."""
        desk, now_ms = WarmStore(self.make(), a=BUCKET), LATER_MS
        used: list[tuple[int, int]] = []
        running: list[tuple[int, str, int, int]] = []
        for number, (wait_ms, cost, reserve, spent, lasts_ms) in enumerate(plan):
            now_ms += wait_ms
            for end_ms, lease, held, actual in sorted(one for one in running if one[0] <= now_ms):
                desk.tell(Settle(lease, (Usage("a", held, min(held, actual)),), last=True), end_ms)
                used.append((end_ms, min(held, actual)))
            running = [one for one in running if one[0] > now_ms]
            if desk.grants(ask(f"l{number}", ("a", cost, reserve)), now_ms):
                used.append((now_ms, cost))
                running.append((now_ms + lasts_ms, f"l{number}", reserve, spent))
        assert most_in_any_window(used, BURST, QUOTA, 1_000)

    @checked
    @given(plans, st.integers(0, 39))
    def test_a_bucket_keeps_its_bound_when_the_store_forgets(self, plan: list[tuple[int, ...]], when: int) -> None:
        """P10: a lost store refills cold."""
        desk, now_ms, used = WarmStore(self.make(), a=BUCKET), LATER_MS, []
        for number, (wait_ms, cost, *_) in enumerate(plan):
            now_ms += wait_ms
            if number == when:
                desk.store.lose()
            desk.tell(Define("a", BUCKET), now_ms)
            if desk.grants(ask(f"l{number}", ("a", cost, 0)), now_ms):
                used.append((now_ms, cost))
        assert most_in_any_window(used, BURST, QUOTA, 1_000)

    @checked
    @given(
        st.sampled_from(PACES),
        st.sampled_from((0, 1, 20, 10**9)),
        st.lists(
            st.tuples(st.one_of(st.integers(0, 2_000), st.sampled_from(LEAPS_MS)), st.integers(0, 4)), max_size=20
        ),
    )
    def test_no_unit_is_lost_or_made_up_at_any_pace(
        self, pace: tuple[int, int], burst: int, steps: list[tuple[int, int]]
    ) -> None:
        """What fits is what exact fractions say, from one unit a day to a million a second, over years."""
        (quota, window_ms), now_ms = pace, LATER_MS
        burst = min(burst, (EXACT - 1 - quota) // window_ms)
        level = max(Fraction(0), burst - Fraction(quota * (LATER_MS - START_MS), window_ms))  # it may be cold still
        desk = WarmStore(self.make(), a=Limits(BudgetKind.LEVEL, burst=burst, quota=quota, window_ms=window_ms))
        for number, (wait_ms, part) in enumerate(steps):
            now_ms += wait_ms
            level = max(Fraction(0), level - Fraction(quota * wait_ms, window_ms))
            cost = (0, 1, burst // 2, burst, burst + 1)[part]
            fits = level + cost <= burst
            assert desk.grants(ask(f"l{number}", ("a", cost, 0)), now_ms) == fits
            level += cost * fits

    @checked
    @given(plans)
    def test_slots_are_never_more_than_their_number(self, plan: list[tuple[int, ...]]) -> None:
        """A slot is busy until it was told to end, and its hold longer; then it is free."""
        desk, now_ms = WarmStore(self.make(), s=SLOTS), LATER_MS
        busy: list[tuple[int, str]] = []
        for number, (wait_ms, _, _, _, lasts_ms) in enumerate(plan):
            now_ms += wait_ms
            for end_ms, lease in sorted(one for one in busy if one[0] <= now_ms and one[1]):
                desk.tell(Settle(lease, (Usage("s", 1, 0),), last=True), end_ms)
            busy = [(end_ms + 500, "") if end_ms <= now_ms and lease else (end_ms, lease) for end_ms, lease in busy]
            busy = [one for one in busy if one[1] or one[0] > now_ms]
            granted = desk.grants(ask(f"l{number}", ("s", 0, 1)), now_ms)
            assert granted == (len(busy) < 3)
            if granted:
                busy.append((now_ms + lasts_ms, f"l{number}"))

    @checked
    @given(plans)
    def test_a_counter_holds_in_every_window(self, plan: list[tuple[int, ...]]) -> None:
        """No window of its length holds more than its units."""
        desk, now_ms, used = WarmStore(self.make(), c=COUNTER), LATER_MS, []
        for number, (wait_ms, cost, *_) in enumerate(plan):
            now_ms += wait_ms
            if desk.grants(ask(f"l{number}", ("c", cost, 0)), now_ms):
                used.append((now_ms, cost))
        for start_ms, _ in used:
            assert sum(units for at_ms, units in used if start_ms <= at_ms < start_ms + 2_400) <= 30

    @checked
    @given(plans, st.integers(0, 30), st.integers(0, 30))
    def test_a_denial_changes_nothing_and_names_every_blocker(
        self, plan: list[tuple[int, ...]], first: int, second: int
    ) -> None:
        """P3."""
        desk, now_ms = self._busy(plan)
        request = ask("me", ("a", first, 0), ("c", 0, second), ("s", 0, 1))
        answer = desk.tell(request, now_ms)
        if isinstance(answer, Denied):
            again = desk.tell(request, now_ms)
            assert isinstance(again, Denied)
            assert again.blockers == answer.blockers
            named = {blocker.budget for blocker in answer.blockers}
            for demand in request.alternatives[0]:
                alone = desk.tell(ask("alone", demand), now_ms)
                assert isinstance(alone, Denied) == (demand[0] in named)
                desk.tell(Release("alone", (demand[0],)), now_ms)

    @checked
    @given(plans, st.integers(1, BURST), st.integers(0, BURST))
    def test_not_before_and_certain_are_promises(self, plan: list[tuple[int, ...]], cost: int, reserve: int) -> None:
        """P6: with no rival, a repeat at that instant is granted."""
        desk, now_ms = self._busy(plan)
        request = ask("me", ("a", cost, reserve), ("s", 0, 1), ("c", 1, 0))
        answer = desk.tell(request, now_ms)
        if isinstance(answer, Denied) and answer.kind is BlockKind.TIME:
            assert answer.not_before_ms > now_ms
            assert desk.grants(request, answer.not_before_ms)
        elif isinstance(answer, Denied) and answer.kind is BlockKind.EVENT:
            assert answer.not_before_ms <= answer.certain_ms
            assert desk.grants(request, answer.certain_ms)

    @checked
    @given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 300)), min_size=2, max_size=12), st.integers(0, 99))
    def test_the_best_of_a_line_goes_first(self, callers: list[tuple[int, int]], seed: int) -> None:
        """P5: classes in order, first come first served inside one, whoever asks first."""
        desk, now_ms, shuffled = WarmStore(self.make(), a=BUCKET), LATER_MS, Random(seed)  # noqa: S311  a seeded order
        desk.tell(ask("fill", ("a", BURST, 0)), now_ms)
        waiting: dict[str, Take] = {}
        for number, (rank, wait_ms) in enumerate(callers):
            now_ms += wait_ms // len(callers)
            self._wait(desk, waiting, ask(f"t{number}", ("a", 5, 0), rank=rank, waits=True), now_ms)
        served = []
        while waiting and now_ms < LATER_MS + 60_000:
            now_ms += 100
            for ticket in shuffled.sample(sorted(waiting), len(waiting)):
                request = waiting.pop(ticket)
                if not self._wait(desk, waiting, request, now_ms):
                    served.append(request.score)
        assert not waiting
        assert served == sorted(served)

    @checked
    @given(st.integers(1, 4))
    def test_a_large_caller_is_not_starved_by_small_ones(self, small: int) -> None:
        """P5: nobody's admission delays the earliest start of a better ticket."""
        desk, now_ms = WarmStore(self.make(), a=BUCKET), LATER_MS
        desk.tell(ask("fill", ("a", BURST, 0)), now_ms)
        waiting: dict[str, Take] = {}
        denied = self._wait(desk, waiting, ask("large", ("a", BURST, 0), rank=0, waits=True), now_ms)
        assert isinstance(denied, Denied)
        while now_ms < denied.not_before_ms:
            now_ms += 50
            desk.tell(ask(f"s{now_ms}", ("a", small, 0)), min(now_ms, denied.not_before_ms - 1))
        assert self._wait(desk, waiting, waiting["large"], denied.not_before_ms) is None

    def test_a_ticket_that_does_not_come_lets_the_next_pass_and_keeps_its_place(self) -> None:
        """P5: 250 ms after it was due nobody waits for it; when it comes it is the first again."""
        desk = WarmStore(self.make(), a=BUCKET)
        desk.tell(ask("fill", ("a", BURST, 0)), LATER_MS)
        waiting: dict[str, Take] = {}
        first = self._wait(desk, waiting, ask("first", ("a", 5, 0), waits=True), LATER_MS)
        assert first is not None
        assert not desk.grants(ask("next", ("a", 5, 0)), first.due_ms + 250)
        assert desk.grants(ask("next", ("a", 5, 0)), first.due_ms + 251)
        again = self._wait(desk, waiting, waiting["first"], first.due_ms + 252)
        assert again is not None
        assert (again.score, again.position) == (first.score, 0)
        assert not desk.grants(ask("third", ("a", 5, 0)), again.not_before_ms)
        assert self._wait(desk, waiting, waiting["first"], again.not_before_ms) is None

    @checked
    @given(plans)
    def test_disjoint_budgets_never_wait_for_each_other(self, plan: list[tuple[int, ...]]) -> None:
        """P5: what happens to one budget is nothing to another."""
        desk, now_ms = WarmStore(self.make(), a=BUCKET, b=BUCKET), LATER_MS
        for number, (wait_ms, cost, reserve, *_) in enumerate(plan):
            now_ms += wait_ms
            desk.tell(ask(f"l{number}", ("a", cost + 5, reserve), rank=0, waits=True), now_ms)
        assert desk.grants(ask("other", ("b", BURST, 0), rank=2), now_ms)

    @checked
    @given(st.lists(st.integers(-5_000, 5_000), max_size=40))
    def test_a_clock_that_steps_back_never_credits_an_instant_twice(self, moves: list[int]) -> None:
        """Granted at most burst and rate of the time that the store itself says has passed."""
        desk, raw_ms, now_ms, admitted = WarmStore(self.make(), a=BUCKET), LATER_MS, LATER_MS, 0
        for number, move_ms in enumerate(moves):
            raw_ms += move_ms
            answer = desk.tell(ask(f"l{number}", ("a", 5, 0)), raw_ms)
            assert answer.now_ms >= now_ms
            now_ms = answer.now_ms
            admitted += 5 * isinstance(answer, Granted)
        assert admitted * 1_000 <= BURST * 1_000 + QUOTA * (now_ms - LATER_MS)

    @checked
    @given(st.integers(0, 10), st.integers(-5, 2**60), st.integers(0, 20_000))
    def test_a_settlement_adds_what_was_used_and_never_subtracts(self, reserve: int, used: int, late_ms: int) -> None:
        """P9: before its lapse it is charged as told; after it only the excess is; the rest is debt."""
        desk = WarmStore(self.make(), a=DAY)
        desk.tell(ask("x", ("a", 0, reserve)), LATER_MS)
        told = desk.tell(Settle("x", (Usage("a", reserve, used),), last=True), LATER_MS + late_ms)
        counted = max(used, 0) if late_ms < 10_000 and reserve else max(used, reserve)
        assert desk.remaining("a", LATER_MS + late_ms) == max(0, BURST - counted)
        assert isinstance(told, Done)
        assert (told.debt > 0) == (used > reserve)

    def test_what_ends_a_reservation(self) -> None:
        """P9: release frees it, renew keeps it, silence charges it, and once it is over nothing revives it."""
        desk = WarmStore(self.make(), a=DAY)
        for lease in ("released", "renewed", "silent"):
            desk.tell(ask(lease, ("a", 1, 3), lease_ms=100), LATER_MS)
        desk.tell(Release("released", ("a", "unknown")), LATER_MS)
        desk.tell(Renew("renewed", ("a",), 1_000), LATER_MS)
        assert desk.remaining("a", LATER_MS) == BURST - 9
        desk.tell(Settle("silent", (Usage("a", 3, 0),), last=True), LATER_MS + 200)
        desk.tell(Renew("silent", ("a",), 9_000), LATER_MS + 200)
        desk.tell(Settle("renewed", (Usage("a", 3, 1),), last=True), LATER_MS + 200)
        assert desk.remaining("a", LATER_MS + 200) == BURST - 7

    def test_an_unknown_budget_is_named_and_can_be_defined(self) -> None:
        """Defining twice changes nothing."""
        desk = WarmStore(self.make(), a=BUCKET)
        request = ask("x", ("a", BURST, 0), ("b", 1, 0))
        assert desk.tell(request, LATER_MS) == Undefined(LATER_MS, "b")
        desk.tell(Define("b", BUCKET), LATER_MS)
        assert desk.grants(request, LATER_MS)
        desk.tell(Define("a", BUCKET), LATER_MS)
        assert desk.remaining("a", LATER_MS) == 0

    def test_a_revision_is_compared_and_set(self) -> None:
        """What was used stays used; a stale writer is told the revision in force."""
        desk = WarmStore(self.make(), a=BUCKET)
        desk.tell(ask("x", ("a", 5, 0)), LATER_MS)
        half = Limits(BudgetKind.LEVEL, burst=10, quota=QUOTA, window_ms=2_000, revision=2)
        assert desk.tell(Revise("a", 7, half), LATER_MS) == Revised(LATER_MS, done=False, revision=1)
        assert desk.tell(Revise("a", 1, half), LATER_MS) == Revised(LATER_MS, done=True, revision=2)
        assert desk.remaining("a", LATER_MS) == 5
        assert desk.tell(Revise("b", 0, half), LATER_MS) == Revised(LATER_MS, done=False, revision=0)

    def test_a_newer_revision_replaces_what_a_copy_brought_back(self) -> None:
        """Defining an older one changes nothing; what was used stays used."""
        desk = WarmStore(self.make(), a=BUCKET)
        desk.tell(ask("x", ("a", 5, 0)), LATER_MS)
        half = Limits(BudgetKind.LEVEL, burst=10, quota=QUOTA, window_ms=2_000, revision=3)
        desk.tell(Define("a", half), LATER_MS)
        assert desk.remaining("a", LATER_MS) == 5
        desk.tell(Define("a", BUCKET), LATER_MS)
        assert desk.remaining("a", LATER_MS) == 5
        assert desk.tell(Revise("a", 1, BUCKET), LATER_MS) == Revised(LATER_MS, done=False, revision=3)

    def _busy(self, plan: list[tuple[int, ...]]) -> tuple[WarmStore, int]:
        """Three budgets that calls keep busy; some of them have ended."""
        desk, now_ms = WarmStore(self.make(), a=BUCKET, c=COUNTER, s=SLOTS), LATER_MS
        for number, (wait_ms, cost, reserve, spent, lasts_ms) in enumerate(plan):
            now_ms += wait_ms
            lease = f"l{number}"
            granted = desk.grants(ask(lease, ("a", cost, reserve), ("s", 0, 1), ("c", cost, 0)), now_ms)
            if granted and lasts_ms % 2:
                usage = (Usage("a", reserve, min(spent, reserve)), Usage("s", 1, 0))
                desk.tell(Settle(lease, usage, last=True), now_ms)
        return desk, now_ms

    def _wait(self, desk: WarmStore, waiting: dict[str, Take], request: Take, now_ms: int) -> Denied | None:
        """Ask, and keep the place that a denial gives."""
        answer = desk.tell(request, now_ms)
        if isinstance(answer, Denied):
            waiting[request.ticket] = request._replace(score=answer.score, standing=answer.lines)
            return answer
        assert isinstance(answer, Granted)
        return None
