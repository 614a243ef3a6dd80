"""
The search for one value that a target does not tell: how much of something it takes.

Multiplicative decrease from a value that was refused, quick return to just below it, slow probing from there: CUBIC's
shape (RFC 9438), in integers. Values are millionths, so that 1 % of 3 per minute is not lost. What was refused and
when to rise is the business of core/learning.py.
"""

from enum import StrEnum
from typing import Final

MICRO: Final = 1_000_000
CUT_PERCENT: Final = 90
CUT_AGAIN_PERCENT: Final = 70
RAISE_PERCENT: Final = 115
NEAR_PERCENT: Final = 95  # of the last failing value: from here on, probe
PROBE_PERCENT: Final = 1
# clean this far above the failing value: the target takes more by now, so rise quickly again
REFUTED_PERCENT: Final = 105


class RevisionReason(StrEnum):
    """Why a learned value changed."""

    REFUSED = "refused"
    REFUSED_AGAIN = "refused_again"
    CLEAN_WINDOW = "clean_window"
    PROBE = "probe"
    TOLD = "told"


class HiddenValue:
    """
    `value` is in force, `failing` was refused last (0 = never), both in millionths; `safe` is the most that was
    carried without refusal, in units. `value` stays between 1 unit and `ceiling`.
    """

    __slots__ = ("ceiling", "failing", "safe", "value")

    def __init__(self, value: int, failing: int, ceiling: int) -> None:
        self.ceiling = ceiling
        self.value = max(MICRO, min(value, ceiling))
        self.failing = max(MICRO, failing) if failing else 0
        self.safe = 0

    @property
    def near(self) -> int:
        """Up to where the value may rise quickly."""
        return self.failing * NEAR_PERCENT // 100 if self.failing else self.ceiling

    def limit(self, ceiling: int) -> bool:
        """Put another ceiling in force; True if the value fell by it."""
        self.ceiling = max(MICRO, ceiling)
        fell = self.value > self.ceiling
        self.value = min(self.value, self.ceiling)
        return fell

    def tell(self, ceiling: int) -> bool:
        """Put the target's own word in force; True if the value moved: down to it, or up from its last word."""
        before, was_told = self.value, self.value == self.ceiling and not self.failing
        self.limit(ceiling)
        if was_told:
            self.value = self.ceiling
        return self.value != before

    def cut(self, tried: int, reached: int, *, again: bool) -> RevisionReason:
        """`tried` millionths were refused when `reached` units had been reached: go well below; further if `again`."""
        self.failing = max(MICRO, min(self.value, tried))
        self.value = max(MICRO, self.failing * (CUT_AGAIN_PERCENT if again else CUT_PERCENT) // 100)
        self.safe = min(self.safe, reached - 1)
        return RevisionReason.REFUSED_AGAIN if again else RevisionReason.REFUSED

    def rise(self) -> RevisionReason | None:
        """Quickly up to near the failing value, slowly beyond it; None at the ceiling."""
        if self.value >= self.ceiling:
            return None
        if self.value < self.near:
            self.value = min(self.value * RAISE_PERCENT // 100, self.near, self.ceiling)
            return RevisionReason.CLEAN_WINDOW
        self.value = min(self.value + self.failing * PROBE_PERCENT // 100, self.ceiling)
        if self.value * 100 > self.failing * REFUTED_PERCENT:
            self.failing = 0
        return RevisionReason.PROBE
