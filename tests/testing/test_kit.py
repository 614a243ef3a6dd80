"""The kit judges the judges: the reference passes, and each broken store fails the check that is meant for it."""

import pytest

from swarmgate.core.book import Book
from swarmgate.core.limits import BudgetKind
from swarmgate.testing.decider import BookDecider, state_of
from swarmgate.testing.kit import StoreChecks, most_in_any_window
from swarmgate.testing.twins import Twins, run_twins


class TestKernel(StoreChecks):
    def make(self):
        return BookDecider()


class Warm(BookDecider):
    """Forgets, and starts as if nothing had ever been used."""

    def decide(self, operations, now_ms):
        if self.book is None:
            self.book = Book(0)
            self.book.now_ms = now_ms
        return super().decide(operations, now_ms)


class Refunding(BookDecider):
    """Takes what was not used off the level, though it may have drained already."""

    def decide(self, operations, now_ms):
        replies = super().decide(operations, now_ms)
        for operation in operations:
            for usage in getattr(operation, "usage", ()):
                cell = self.book.cells[usage.budget]
                cell.level -= max(0, usage.reserved - usage.used) * cell.scale
        return replies


class Forgetful(BookDecider):
    """Has no line."""

    def decide(self, operations, now_ms):
        replies = super().decide(operations, now_ms)
        for line in self.book.lines.values():
            line.order.clear()
            line.entries.clear()
        return replies


class Terse(BookDecider):
    """Names one blocker of all."""

    def decide(self, operations, now_ms):
        replies = super().decide(operations, now_ms)
        return [one._replace(blockers=one.blockers[:1]) if hasattr(one, "blockers") else one for one in replies]


class Naive(BookDecider):
    """Believes its clock."""

    def decide(self, operations, now_ms):
        if self.book is not None:
            self.book.now_ms = now_ms
        return super().decide(operations, now_ms)


class Leaky(BookDecider):
    """Never ends a slot's hold."""

    def decide(self, operations, now_ms):
        for cell in self.book.cells.values() if self.book else ():
            for held in cell.leases.values():
                held.expires_ms += 10**6 if held.firm else 0
            cell.due_ms += 10**6 if cell.limits.kind is BudgetKind.LEASES else 0
        return super().decide(operations, now_ms)


class Rounded(BookDecider):
    """Counts whole units only."""

    def decide(self, operations, now_ms):
        replies = super().decide(operations, now_ms)
        for cell in self.book.cells.values():
            cell.level = cell.level // cell.scale * cell.scale
        return replies


CALLS = [(0, 5, 0, 0, 0)] * 4


@pytest.mark.parametrize(
    ("broken", "check", "example"),
    [
        (Warm, "test_a_bucket_keeps_its_bound_when_the_store_forgets", (CALLS * 2, 4)),
        (
            Refunding,
            "test_a_bucket_admits_at_most_burst_and_rate_in_any_window",
            ([(0, 10, 8, 0, 100), (100, 6, 0, 0, 0), (0, 6, 0, 0, 0)],),
        ),
        (Refunding, "test_a_settlement_adds_what_was_used_and_never_subtracts", (5, 1, 0)),
        (Forgetful, "test_the_best_of_a_line_goes_first", ([(2, 0), (1, 0), (0, 0)] * 4, 7)),
        (Forgetful, "test_a_large_caller_is_not_starved_by_small_ones", (2,)),
        (Terse, "test_a_denial_changes_nothing_and_names_every_blocker", (CALLS * 3, 9, 30)),
        (Naive, "test_a_clock_that_steps_back_never_credits_an_instant_twice", ([0, 0, 0, -900, 900, -900, 900],)),
        (Rounded, "test_no_unit_is_lost_or_made_up_at_any_pace", ((7, 900), 20, [(0, 3), (100, 0), (0, 1)])),
        (Leaky, "test_slots_are_never_more_than_their_number", ([(400, 0, 0, 0, 0)] * 9,)),
    ],
)
def test_a_store_that_breaks_a_promise_fails(broken, check, example):
    class Checks(StoreChecks):
        def make(self):
            return broken()

    def run(checks):
        getattr(StoreChecks, check).hypothesis.inner_test(checks, *example)

    run(TestKernel())
    with pytest.raises(AssertionError):
        run(Checks())


class Off(BookDecider):
    """Counts one too many who stand before, now and then."""

    def decide(self, operations, now_ms):
        replies = super().decide(operations, now_ms)
        return [one._replace(position=one.position + 1) if getattr(one, "depth", 0) > 2 else one for one in replies]


class Late(BookDecider):
    """Answers the same, but remembers one millisecond too much."""

    def decide(self, operations, now_ms):
        replies = super().decide(operations, now_ms)
        for line in self.book.lines.values():
            for entry in line.entries.values():
                entry.expires_ms += entry.expires_ms % 2
        return replies


@pytest.mark.parametrize("broken", [Off, Late])
def test_twins_find_the_smallest_difference(broken):
    class Machine(Twins):
        def __init__(self):
            super().__init__()
            self.subject = broken()

        def state(self):
            return state_of(self.subject.book)

    with pytest.raises(AssertionError):
        run_twins(Machine, 200, shrinks=False)


def test_the_bound_is_exact():
    assert most_in_any_window([(0, 20), (100, 1)], 20, 10, 1_000)
    assert not most_in_any_window([(0, 20), (99, 1)], 20, 10, 1_000)
    assert not most_in_any_window([(0, 0), (50, 21)], 20, 10, 1_000)
