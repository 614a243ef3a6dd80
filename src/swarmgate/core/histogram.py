"""
What is likely of a number that is seen again and again: a quantile, from counts in geometric buckets.

Eight buckets per doubling, so that what is told is at most an eighth too much. The counts are halved when there are many, so
that a change is followed within a few hundred values; what is odd moves up then, so that rare large ones are not forgotten first.
"""

from typing import Final

STEPS: Final = 8  # buckets per doubling: a bucket is at most an eighth wide
HALVE_AT: Final = 512
LOOK_EVERY: Final = 16  # values between two looks at the counts, once there are as many


class Histogram:
    """
    Counts per bucket; `likely` is the quantile of `percent`, rounded up, and `first` until `few` were seen.

    `weight` is that of a usual value.
    """

    __slots__ = ("_counts", "_look_at", "_percent", "_total", "_weight", "likely")

    def __init__(self, percent: int, first: int, *, weight: int = 1, few: int = 1) -> None:
        self._counts: dict[int, int] = {}
        self._percent = percent
        self._weight = weight
        self._total = 0
        self._look_at = few
        self.likely = first

    def seen(self, value: int, weight: int = 1) -> None:
        """Learn from one value; those below 1 count as 1."""
        value = max(1, value)
        power = value.bit_length() - 1
        bucket, counts = power * STEPS + ((value - (1 << power)) * STEPS >> power), self._counts
        counts[bucket] = counts.get(bucket, 0) + weight
        self._total += weight
        if self._total >= self._look_at:
            self.look()

    def look(self) -> None:
        """Tell anew what is likely, and halve the counts if they are many."""
        halve_at, look_every = HALVE_AT * self._weight, LOOK_EVERY * self._weight
        if self._total >= halve_at:
            self._halve()
        self._look_at = min(halve_at, self._total + (1 if self._total < look_every else look_every))
        self.likely = self.at(self._percent)

    def at(self, percent: int) -> int:
        """The smallest bound below which so many percent of the values are."""
        rank = -(-self._total * percent // 100)
        for bucket in sorted(self._counts):
            rank -= self._counts[bucket]
            if rank <= 0:
                power, step = divmod(bucket, STEPS)
                return (1 << power) + ((step + 1) << power) // STEPS
        return self.likely

    def _halve(self) -> None:
        kept, odd = {}, 0
        for bucket in sorted(self._counts):
            count = self._counts[bucket] + odd
            odd = count & 1
            if count > 1:
                kept[bucket] = count // 2
        self._counts = kept
        self._total = sum(kept.values())
