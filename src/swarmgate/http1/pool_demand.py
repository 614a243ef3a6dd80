"""
How large a pool should be, from what was measured: rate x response time at its peak of late x 1.3 (design 2: P1).

By Little's law rate x response time is the mean number of connections in use. So nothing is counted per call: that number
is sampled, and its mean over ten samples stands for both factors. The busiest such mean of the last 300 samples counts.
"""

from collections import deque
from typing import Final

from swarmgate.core.pool_size import with_spare

SAMPLES: Final = 10  # one a second, so a mean is of about ten seconds
MEANS: Final = 30  # and the peak is of about five minutes
FEWEST: Final = 8  # a small mean says little about what comes together; so few idle connections cost nothing


class PoolDemand:
    """`sample` the number in use, one sample a second; `size` = what to keep, from FEWEST up to `most`."""

    __slots__ = ("_count", "_fewest", "_most", "_sum", "_sums", "busiest", "size")

    def __init__(self, most: int) -> None:
        self._most = most
        self._fewest = self.size = min(FEWEST, most)
        self.busiest = 0  # the sum of the samples of the busiest period: SAMPLES x its mean
        self._sums: deque[int] = deque(maxlen=MEANS)
        self._sum = 0
        self._count = 0

    def sample(self, in_use: int) -> None:
        """So many are in use now."""
        self._sum += in_use
        self._count += 1
        if self._count == SAMPLES:
            self._sums.append(self._sum)
            self._sum = self._count = 0
            self.busiest = max(self._sums)
            self.size = with_spare(self.busiest, SAMPLES, self._fewest, self._most)

    @property
    def mean_permille(self) -> int:
        """The mean number in use in the busiest period, in thousandths."""
        return self.busiest * 1_000 // SAMPLES

    @property
    def is_least(self) -> bool:
        """Whether nothing measured of late asks for more than every pool has."""
        return self.size == self._fewest
