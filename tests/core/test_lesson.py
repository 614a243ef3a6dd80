"""What a learner's budgets are told: narrow at once where nothing is stated, wide until proven narrower where it is."""

from swarmgate.core.hidden_value import MICRO
from swarmgate.core.learning import Ceilings, Learned, LearnedLimit
from swarmgate.core.lesson import Lesson
from swarmgate.core.limits import BudgetKind
from swarmgate.core.outcome import Signal, classify

MINUTE_MS = 60_000
RATE = classify(Signal(429))


def lesson(*, stated, rate=100):
    learner = LearnedLimit(Learned(rate * MICRO, 4 * MICRO, MICRO), MINUTE_MS, Ceilings(100, 10, 100), 0)
    return Lesson("x.org", learner, stated)


def test_its_budgets_have_names_of_their_own():
    one = lesson(stated=False)
    assert (
        [name for name, _ in one.limits()] == [name for name, *_ in one.demands()] == [one.rate_budget, one.cap_budget]
    )


def test_what_is_not_stated_is_kept_narrow():
    rate, cap = (limits for _, limits in lesson(stated=False).limits())
    assert (rate.kind, rate.burst, rate.quota, rate.window_ms) == (BudgetKind.LEVEL, 1, 100_000, MINUTE_MS * 1_000)
    assert (cap.kind, cap.burst) == (BudgetKind.LEASES, 4)


def test_what_is_stated_is_not_in_the_way_until_it_is_refuted():
    one = lesson(stated=True)
    assert one.is_wide
    assert one.rate_limits().burst == 100
    one.learner.observe(one.learner.sent(1_000, 1), RATE, 1_100)
    assert not one.is_wide
    assert one.rate_limits().burst == 1
    assert one.rate_limits().quota < 100_000


def test_what_was_found_before_a_restart_is_not_forgotten():
    assert not lesson(stated=True, rate=60).is_wide
