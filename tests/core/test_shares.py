"""What one process may do alone: all shares together are at most the budget (design 2: P10)."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.limits import BudgetKind, Limits, Tier
from swarmgate.core.shares import portion, share_of

amounts = st.integers(0, 10_000)


@st.composite
def budgets(draw):
    burst = draw(amounts)
    return Limits(
        draw(st.sampled_from(BudgetKind)),
        burst,
        draw(amounts),
        draw(st.integers(24, 100_000)),
        (0, draw(st.integers(0, burst)), draw(st.integers(0, burst))),
        hold_ms=draw(amounts),
        slices=24,
        lease_ms=draw(amounts),
        line=draw(st.sampled_from(["", "pool"])),
        revision=draw(st.integers(1, 9)),
    )


@given(budgets(), st.integers(1, 64), amounts)
def test_all_shares_together_are_at_most_the_budget(limits, processes, need):
    share = share_of(limits, processes, need)
    if share is not None:
        assert need <= share.burst
        assert share.burst * processes <= limits.burst < (share.burst + 1) * processes
        assert share.quota * processes <= limits.quota < (share.quota + 1) * processes
        assert share.quota or limits.kind is not BudgetKind.LEVEL


@given(budgets(), st.integers(1, 64), amounts)
def test_a_share_is_none_where_it_could_not_hold_the_call_or_would_never_refill_or_forget(limits, processes, need):
    dry = limits.kind is BudgetKind.LEVEL and limits.quota < processes
    counts = limits.kind is BudgetKind.COUNTER
    assert (share_of(limits, processes, need) is None) == (need > limits.burst // processes or dry or counts)


@given(budgets(), st.integers(1, 64))
def test_a_share_knows_neither_classes_nor_lines_and_is_otherwise_the_same_budget(limits, processes):
    share = share_of(limits, processes, 0)
    if share is not None:
        assert (share.floors, share.line) == ((0, 0, 0), "")
        assert (share.kind, share.window_ms, share.slices) == (limits.kind, limits.window_ms, limits.slices)
        assert (share.hold_ms, share.lease_ms) == (limits.hold_ms, limits.lease_ms)


@given(budgets())
def test_a_single_process_has_the_whole(limits):
    share = share_of(limits, 1, limits.burst)
    if share is not None:
        assert (share.burst, share.quota) == (limits.burst, limits.quota)


@given(
    budgets().filter(lambda limits: limits.kind is BudgetKind.LEVEL), st.integers(1, 100), st.integers(1, 50), amounts
)
def test_a_portion_is_a_part_of_the_rate_and_holds_the_largest_call(limits, percent, count, largest):
    part = portion(limits, percent, count, largest)
    assert part.quota == max(1, limits.quota * count * percent // 100)
    assert part.burst >= min(limits.burst, largest)
    free = (limits.burst - limits.floors[1]) * count
    assert part.burst * 100 <= max(free * percent, largest * 100)
    assert part.floors == (0, 0, 0)
    assert part.line == ""


@given(st.integers(1, 1_000), st.integers(1, 100), st.integers(1, 50))
def test_a_portion_of_slots_is_at_least_one(slots, percent, count):
    limits = Limits(BudgetKind.LEASES, slots, hold_ms=7)
    assert portion(limits, percent, count) == replace(
        limits, burst=max(1, slots * count * percent // 100), tier=Tier.CALLERS
    )
