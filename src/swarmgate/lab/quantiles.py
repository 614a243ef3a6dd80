"""
Distributions as quantiles at even steps: compact, exact in integers, and as fast to draw from as a list is to index.

Measured lengths and times follow no textbook law, so the lab draws from their empirical quantile function, linear
between the knots. `Quantiles.of` makes one from a trace of one's own; `table` reads those that come with the package,
each with its source and licence (made by benchmarks/lab_tables.py).
"""

import json
from collections.abc import Iterable
from functools import cache
from importlib import resources
from random import Random
from typing import Any

from swarmgate.lab.errors import LabError


class Quantiles:
    """
    The values of a distribution at probability 0, 1/n ... 1, never falling; n is one less than their number.

    LabError if there are fewer than two, one is not an integer, or one is below its predecessor.
    """

    __slots__ = ("knots",)

    def __init__(self, knots: Iterable[int]) -> None:
        self.knots = tuple(knots)
        if len(self.knots) < 2 or not all(type(knot) is int for knot in self.knots):
            raise LabError("knots", "at least two integers are needed")
        if any(low > high for low, high in zip(self.knots, self.knots[1:], strict=False)):
            raise LabError("knots", "they fall: a quantile function only rises")

    @classmethod
    def of(cls, values: Iterable[int], steps: int = 100) -> "Quantiles":
        """The quantiles of a sample; LabError if it is empty."""
        ordered = sorted(values)
        if not ordered:
            raise LabError("values", "the sample is empty")
        return cls(ordered[(len(ordered) - 1) * step // steps] for step in range(steps + 1))

    def at(self, share_of_2_32: int) -> int:
        """The value at probability share / 2**32, for 0 <= share < 2**32; rounded down."""
        step, rest = divmod(share_of_2_32 * (len(self.knots) - 1), 1 << 32)
        low = self.knots[step]
        return low + ((self.knots[step + 1] - low) * rest >> 32)

    def sample(self, rng: Random) -> int:
        """One value drawn from the distribution."""
        return self.at(rng.getrandbits(32))

    def mean(self) -> int:
        """The mean of what `sample` returns, rounded down."""
        ends = self.knots[0] + self.knots[-1]
        return (2 * sum(self.knots) - ends) // (2 * (len(self.knots) - 1))


@cache
def table(name: str) -> dict[str, Any]:
    """The table `name` that is shipped in lab/data: rows, source and licence."""
    file = resources.files("swarmgate.lab") / "data" / f"{name}.json"
    read: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return read
