"""
Two stores are told the same and must answer the same and know the same: 0 differences (design 2: P13).

A hypothesis state machine draws batches of operations in a small world: buckets with and without floors, one at the
edge of what doubles hold, two that share a line, slots with holds, counters; a clock that jumps both ways; losses.
`Twins` is the machine; subclass it with `subject` (a `Decider`), and with `state` if the store's state can be read;
`run_twins` runs it.
"""

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from swarmgate.core.answers import Denied, Granted
from swarmgate.core.book import STAY_MS, Demand, Take, Usage, first_score
from swarmgate.core.commands import Release, Renew, Settle
from swarmgate.core.limits import EXACT, BudgetKind, Limits, Tier
from swarmgate.core.operations import Define, Operation, Reply, Revise, Withdraw
from swarmgate.testing.decider import BookDecider, Decider, state_of

START_MS = 1_700_000_000_000
END_MS = 2_000_000_000_000  # microseconds since the epoch fill a class's sequences until 2041
EDGE = EXACT // 60_001  # the largest burst that a bucket of one minute may have

WORLD = {
    "bucket": Limits(BudgetKind.LEVEL, burst=20, quota=10, window_ms=1_000, lease_ms=2_000),
    "floors": Limits(BudgetKind.LEVEL, burst=20, quota=7, window_ms=900, floors=(0, 5, 10)),
    "edge": Limits(BudgetKind.LEVEL, burst=EDGE, quota=EDGE // 3, window_ms=60_000),
    "still": Limits(BudgetKind.LEVEL, burst=30, window_ms=100),
    "key1": Limits(BudgetKind.LEVEL, burst=6, quota=5, window_ms=1_000, line="pool", sharing=2),
    "key2": Limits(BudgetKind.LEVEL, burst=9, quota=3, window_ms=1_000, line="pool", sharing=2),
    "slots": Limits(BudgetKind.LEASES, burst=3, hold_ms=400, lease_ms=1_500),
    "crowd": Limits(BudgetKind.LEASES, burst=150),
    "cap": Limits(BudgetKind.LEASES, burst=2, tier=Tier.CALLERS),
    "hourly": Limits(BudgetKind.COUNTER, burst=12, window_ms=3_000, slices=3, tier=Tier.CALLERS),
    "way": Limits(BudgetKind.LEASES, burst=1, tier=Tier.WAYS),
    "counter": Limits(BudgetKind.COUNTER, burst=30, window_ms=2_400, slices=24),
    "day": Limits(BudgetKind.COUNTER, burst=1_000, window_ms=86_400_000, slices=24),
    "calendar": Limits(BudgetKind.COUNTER, burst=40, window_ms=5_000, anchor_ms=START_MS + 1_234),
}
LINES = ("bucket", "floors", "edge", "pool", "slots", "counter", "cap", "way", "nobody")

names = st.sampled_from(sorted(WORLD))
amounts = st.one_of(st.integers(0, 6), st.sampled_from((EDGE // 2, EDGE, EDGE + 1, EXACT - 1)))
waits_ms = st.one_of(st.integers(0, 60), st.integers(0, 3_000), st.sampled_from((0, 100, 250, 400, 1_000, 5_000)))
steps_ms = st.one_of(waits_ms, waits_ms, st.sampled_from((-5, -999, -1_000, -1_001, -3_600_000, 3_600_000)))
tickets = st.sampled_from([f"t{number}" for number in range(12)])
leases = st.sampled_from([f"l{number}" for number in range(12)])


@st.composite
def demands(draw: st.DrawFn) -> tuple[tuple[str, int, int], ...]:
    """What one alternative takes: at most one demand a budget, small in small budgets."""
    chosen = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    return tuple((name, *draw(_need(name))) for name in chosen)


def _need(name: str) -> st.SearchStrategy[tuple[int, int]]:
    kind = WORLD[name].kind
    amount = amounts if name == "edge" else st.integers(0, 6)
    return st.tuples(st.just(0) if kind is BudgetKind.LEASES else amount, amount)


alternatives = st.lists(demands(), min_size=1, max_size=3).map(tuple)
usage = st.lists(
    st.builds(Usage, names, st.integers(0, 6), st.one_of(amounts, st.just(-1), st.just(EXACT * 9))), max_size=3
).map(tuple)


@st.composite
def limits_of(draw: st.DrawFn, name: str) -> Limits:
    """A revision of that budget's limits; now and then one that must be refused."""
    old = WORLD[name]
    burst = draw(st.integers(0, 40))
    return replace(
        old,
        kind=draw(st.sampled_from((old.kind, old.kind, old.kind, BudgetKind.LEVEL))),
        burst=burst,
        quota=draw(st.integers(0, 20)),
        window_ms=draw(st.sampled_from((old.window_ms, 777, 60_000))),
        paused=draw(st.sampled_from((False, False, False, True))),
        floors=(0, draw(st.integers(0, burst)), draw(st.integers(0, burst))),
        revision=draw(st.integers(1, 4)),
    )


def newer(name: str) -> st.SearchStrategy[Limits]:
    """Limits that the store may have missed: a copy of it took over, or nobody told it yet."""
    return limits_of(name).map(lambda limits: replace(limits, kind=WORLD[name].kind))


others = st.one_of(
    st.builds(Settle, leases, usage, st.booleans()),
    st.builds(Release, leases, st.lists(names, max_size=3).map(tuple)),
    st.builds(Renew, leases, st.lists(names, max_size=3).map(tuple), waits_ms),
    st.builds(Withdraw, tickets, st.lists(st.sampled_from(LINES), max_size=3).map(tuple)),
    names.flatmap(lambda name: st.builds(Define, st.just(name), st.one_of(st.just(WORLD[name]), newer(name)))),
    names.flatmap(lambda name: st.builds(Revise, st.just(name), st.integers(0, 4), limits_of(name))),
)
takes = st.builds(
    lambda ticket, lease, rank, options, lease_ms, waits, stays_ms: Take(
        ticket, lease, rank, first_score(rank), options, lease_ms, waits=waits, expires_after_ms=stays_ms
    ),
    tickets,
    leases,
    st.integers(0, 2),
    alternatives,
    waits_ms,
    st.booleans(),
    st.sampled_from((STAY_MS, STAY_MS, 0, 100)),
)


lives = st.lists(
    st.tuples(
        st.sampled_from(("part", "last", "renew", "release", "again")),
        st.integers(0, 4),
        st.sampled_from((0, 0, 90, 400)),
    ),
    max_size=6,
)


class Twins(RuleBasedStateMachine):
    """Tells a store and the reference the same; subclasses make `subject` in their constructor."""

    subject: Decider

    def __init__(self) -> None:
        super().__init__()
        self.model = BookDecider()
        self.now_ms = START_MS
        self.places: dict[str, tuple[Take, Denied]] = {}

    def state(self) -> dict[str, Any] | None:
        """The store's state as `state_of` tells it; None if it cannot be read."""
        return None

    @initialize(some=st.lists(names, unique=True), old=st.booleans())
    def start(self, some: list[str], old: bool) -> None:
        """Some budgets exist, cold or long after the birth."""
        self._both(Withdraw("nobody", ("nobody",)))
        self.now_ms += 100_000_000 if old else 0
        self._both(*[Define(name, WORLD[name]) for name in some])

    @rule(step_ms=steps_ms)
    def clock(self, step_ms: int) -> None:
        """The store's clock moves, sometimes back."""
        self._both(Withdraw("nobody", ("nobody",)))
        self.now_ms += step_ms
        self._both(Withdraw("nobody", ("nobody",)))

    @rule(operations=st.lists(st.one_of(takes, takes, others), min_size=1, max_size=6))
    def tell(self, operations: list[Operation]) -> None:
        """A batch at one instant."""
        self._both(*operations)

    @rule(
        ticket=tickets,
        when_ms=st.sampled_from((None, 0, 1, 250, 251)),
        lost=st.booleans(),
        others=st.lists(takes, max_size=2),
    )
    def ask_again(self, ticket: str, when_ms: int | None, lost: bool, others: list[Take]) -> None:
        """A ticket comes back before, at or after its due time, behind others, and perhaps without its place."""
        if ticket in self.places:
            request, denied = self.places[ticket]
            if when_ms is not None and denied.due_ms < END_MS:
                self.now_ms += max(0, denied.due_ms - denied.now_ms) + when_ms
            if not lost:
                request = request._replace(score=denied.score, standing=denied.lines)
            self._both(*others, request)

    @rule(name=names, ranks=st.lists(st.integers(0, 2), min_size=2, max_size=12), need=st.integers(1, 3))
    def line_up(self, name: str, ranks: list[int], need: int) -> None:
        """A budget is used up, and callers of all classes stand in its line."""
        limits = WORLD[name]
        cost = 0 if limits.kind is BudgetKind.LEASES else need
        filled = (name, limits.burst - cost, 0) if cost else (name, 0, limits.burst)
        self._both(
            Define(name, limits),
            _take("fill", filled, rank=0, lease_ms=700, waits=False),
            *[_take(f"t{one}", (name, cost, need - cost), rank=rank) for one, rank in enumerate(ranks)],
        )

    @rule(
        name=st.one_of(names, st.just("slots")),
        reserve=st.integers(1, 3),
        life=lives,
        rest_ms=st.sampled_from((0, 9_000)),
    )
    def stream(self, name: str, reserve: int, life: list[tuple[str, int, int]], rest_ms: int) -> None:
        """One lease, told of again and again: in one batch while no time passes, later in the next."""
        self._both(Define(name, WORLD[name]))
        self.now_ms += rest_ms
        batch: list[Operation] = [_take("l0", (name, 0, reserve), waits=False)]
        for what, units, wait_ms in life:
            if wait_ms:
                self._both(*batch)
                batch.clear()
                self.now_ms += wait_ms
            batch.append(_word(what, name, reserve, units))
        self._both(*batch)

    @rule(count=st.sampled_from((0, 1, 4, 255, 256, 300)), late_ms=st.integers(-1, 1), need=st.integers(1, 9))
    def neighbours(self, count: int, late_ms: int, need: int) -> None:
        """Tickets stand in a shared line for one key, one for the other; somebody worse asks when the first is due."""
        self._both(
            Define("key1", WORLD["key1"]),
            Define("key2", WORLD["key2"]),
            _take("fill", ("key1", 6, 0), rank=0, waits=False),
            *[_take(f"n{one}", ("key1", 1, 0), rank=0) for one in range(count)],
            _take("fill", ("key2", 8, 0), rank=0, waits=False),
            _take("whole", ("key2", 9, 0), rank=0),
        )
        _, denied = self.places.get("n0", (None, None))
        if denied is not None and denied.not_before_ms < END_MS:
            self.now_ms += max(0, denied.not_before_ms - denied.now_ms + late_ms)
        self._both(_take("worse", ("key2", need, 0)), _take("worse", ("key2", 1, 0)))

    @rule(
        name=st.sampled_from(("counter", "calendar", "day")),
        gaps_ms=st.lists(st.integers(0, 700), min_size=2, max_size=9),
    )
    def drip(self, name: str, gaps_ms: list[int]) -> None:
        """A counter fills slice by slice, until somebody asks for more than is left."""
        self._both(Define(name, WORLD[name]))
        for gap_ms in gaps_ms:
            self.now_ms += gap_ms
            self._both(_take("drop", (name, 4, 0), waits=False))
        self._both(_take("flood", (name, WORLD[name].burst - 7, 0)))

    @rule(
        name=st.sampled_from(("counter", "calendar")),
        need=st.integers(1, 30),
        cost=st.integers(1, 30),
        late_ms=st.integers(0, 9_999),
    )
    def elsewhere(self, name: str, need: int, cost: int, late_ms: int) -> None:
        """A ticket waits for a counter and longer for a bucket; somebody worse asks for the counter meanwhile."""
        self._both(
            Define(name, WORLD[name]),
            Define("edge", WORLD["edge"]),
            _take("fill", (name, WORLD[name].burst // 2, 0), ("edge", EDGE, 0), rank=0, waits=False),
            _take("large", (name, need, 0), ("edge", EDGE // 20, 0), rank=0),
        )
        _, denied = self.places.get("large", (None, None))
        if denied is not None and denied.not_before_ms < END_MS:
            self.now_ms += late_ms % max(1, denied.not_before_ms - denied.now_ms + 1)
        self._both(_take("worse", (name, cost, 0), waits=False))

    @rule(
        name=st.sampled_from(("bucket", "floors", "still", "counter")),
        need=st.integers(1, 9),
        cost=st.integers(1, 9),
        rank=st.integers(0, 2),
        late_ms=st.integers(0, 2_400),
    )
    def held_up(self, name: str, need: int, cost: int, rank: int, late_ms: int) -> None:
        """A ticket that waits for a slot stands in another line, too; somebody behind it asks, and again when told."""
        self._both(
            Define("slots", WORLD["slots"]),
            Define(name, WORLD[name]),
            _take("fill", ("slots", 0, 3), rank=0, lease_ms=5_000, waits=False),
            *[_take("fill", (name, units, 0), rank=0, waits=False) for units in (16, 8, 4, 2, 1)],
            _take("head", ("slots", 0, 1), (name, need, 0), rank=0),
        )
        self.now_ms += late_ms
        behind = _take("behind", (name, cost, 0), rank=rank)
        self._both(behind)
        _, denied = self.places.get("behind", (None, None))
        if denied is not None and denied.due_ms < END_MS:
            self.now_ms = max(self.now_ms, self.now_ms + denied.due_ms - denied.now_ms)
            self._both(behind._replace(score=denied.score, standing=denied.lines))

    @rule(number=st.integers(90, 130), lease_ms=waits_ms)
    def crowd(self, number: int, lease_ms: int) -> None:
        """More leases than one step may expire end at once, and somebody needs them all."""
        wide = ("crowd", "day", "edge")
        demands = tuple((name, 0, 1) for name in wide)
        self._both(
            *[Define(name, WORLD[name]) for name in wide],
            *[_take(f"c{one}", *demands, lease_ms=lease_ms, waits=False) for one in range(number)],
        )
        self.now_ms += lease_ms
        self._both(_take("all", ("crowd", 0, 150), ("day", 900, 0)))

    @rule()
    def lose(self) -> None:
        """Everything is forgotten; the next operation is a birth."""
        self.model.lose()
        self.subject.lose()

    @invariant()
    def knows_the_same(self) -> None:
        """Not only the replies: the whole state is the same."""
        known = self.state()
        if known is not None:
            assert known == state_of(self.model.book)

    def _both(self, *operations: Operation) -> None:
        expected = self.model.decide(operations, self.now_ms)
        told = self.subject.decide(operations, self.now_ms)
        assert [_typed(one) for one in told] == [_typed(one) for one in expected]
        for operation, reply in zip(operations, told, strict=True):
            if isinstance(operation, Take):
                if isinstance(reply, Denied):
                    self.places[operation.ticket] = (operation, reply)
                elif isinstance(reply, Granted):
                    self.places.pop(operation.ticket, None)


def run_twins(machine: type[Twins], examples: int = 30, *, shrinks: bool = True) -> None:
    """Draw so many lives of 30 steps; a difference is shrunk to the shortest life that shows it, unless told not to."""
    phases = tuple(Phase) if shrinks else (Phase.explicit, Phase.generate)
    calm = settings(
        max_examples=examples,
        stateful_step_count=30,
        deadline=None,
        phases=phases,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=calm)


def _word(what: str, name: str, reserve: int, units: int) -> Operation:
    """What is told of lease l0."""
    match what:
        case "renew":
            return Renew("l0", (name,), 100 * units)
        case "release":
            return Release("l0", (name,))
        case "again":
            return _take("l0", (name, 0, reserve), waits=False)
        case _:
            return Settle("l0", (Usage(name, reserve, units),), last=what == "last")


def _take(lease: str, *demands: Demand, rank: int = 1, lease_ms: int = 300, waits: bool = True) -> Take:
    return Take(lease, lease, rank, first_score(rank), (demands,), lease_ms, waits=waits)


def _typed(reply: Reply) -> tuple[str, Reply]:
    return type(reply).__name__, reply
