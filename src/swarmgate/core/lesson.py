"""
What one learner moves: the budgets that enforce what is believed of a host, and the revisions so far.

A learned limit is a bucket for its rate and leases for its cap. Where the operator or a preset states a limit, the
learned one is wide, and so not in the way, until a refusal or the host's own word shows that the host takes less.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from swarmgate.core.book import Demand
from swarmgate.core.compiler import FINEST
from swarmgate.core.hidden_value import MICRO
from swarmgate.core.learning import Learned, LearnedLimit, Revision
from swarmgate.core.limits import LONGEST_LEVEL_WINDOW_MS, BudgetKind, Limits

REMEMBERED: Final = 256  # revisions per lesson; the journal has them all
RATE: Final = ":learned:rate"
CAP: Final = ":learned:cap"


@dataclass(slots=True)
class Lesson:
    """
    One learner and the budgets that it moves, under the name of `target`; changed by the teacher only.

    `stated`: a limit is known, and the learner begins at it. `changes` keeps the newest revisions with their instants.
    """

    target: str
    learner: LearnedLimit
    stated: bool = False
    in_flight: int = 0
    revisions: dict[str, int] = field(default_factory=dict)
    changes: deque[tuple[int, Revision]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    @property
    def rate_budget(self) -> str:
        """The bucket of the learned rate."""
        return self.target + RATE

    @property
    def cap_budget(self) -> str:
        """The leases of the learned cap."""
        return self.target + CAP

    @property
    def is_wide(self) -> bool:
        """Whether nothing is known that is narrower than what is stated."""
        believed: Learned = self.learner.learned
        return (
            self.stated
            and not believed.failing_rate_micro
            and believed.rate_micro >= self.learner.ceilings.rate * MICRO
        )

    def rate_limits(self, revision: int = 1) -> Limits:
        """The bucket that enforces what is believed of the rate, with headroom 1 (design 4: Learning)."""
        learner = self.learner
        fine = max(1, min(FINEST, LONGEST_LEVEL_WINDOW_MS // learner.window_ms))
        quota = max(1, learner.rate_micro * fine // MICRO)
        return Limits(
            BudgetKind.LEVEL,
            burst=learner.ceilings.rate if self.is_wide else learner.burst,
            quota=quota,
            window_ms=learner.window_ms * fine,
            revision=revision,
        )

    def cap_limits(self, revision: int = 1) -> Limits:
        """The leases that enforce what is believed of the cap."""
        return Limits(BudgetKind.LEASES, burst=max(1, self.learner.cap), revision=revision)

    def limits(self) -> tuple[tuple[str, Limits], ...]:
        """Both budgets with what they are told."""
        return (self.rate_budget, self.rate_limits()), (self.cap_budget, self.cap_limits())

    def demands(self) -> tuple[Demand, ...]:
        """What one call takes of them."""
        return (self.rate_budget, 1, 0), (self.cap_budget, 0, 1)
