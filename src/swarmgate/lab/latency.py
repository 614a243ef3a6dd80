"""
How long targets take: laws fitted to recorded calls of real models, and the way there and back.

An answer of n output tokens takes (intercept + slope * n) * spread, where the spread is the measured ratio of real calls
to that line, drawn from its quantiles; so the median and the slow tail of each model are its own. One draw decides both
the first byte and the whole, because a target that is slow to begin is slow to end. `web` is a target without tokens:
it takes what models took to their first byte.
"""

from functools import cache
from random import Random
from typing import NamedTuple, Protocol

from swarmgate.lab.errors import LabError, at_least
from swarmgate.lab.quantiles import Quantiles, table


class Law(Protocol):
    """What a target's latency is to the world."""

    def sample(self, rng: Random, output_tokens: int) -> tuple[int, int]:
        """(ms from the request's arrival to the first byte, ms to the last) at the target, 0 <= first <= last."""


class MeasuredLaw(NamedTuple):
    """A law from the fit of one model; `spread_permille` are quantiles of real time / fitted time * 1000."""

    intercept_ms: int
    us_per_token: int
    spread_permille: Quantiles
    first_byte_ms: Quantiles

    def sample(self, rng: Random, output_tokens: int) -> tuple[int, int]:
        """(first byte, last byte) of one answer in ms."""
        draw = rng.getrandbits(32)
        line_us = self.intercept_ms * 1000 + self.us_per_token * output_tokens
        total_ms = line_us * self.spread_permille.at(draw) // 1_000_000
        return min(self.first_byte_ms.at(draw), total_ms), total_ms


class Path(NamedTuple):
    """A network path: each direction takes `one_way_ms` and an even draw from 0 to `jitter_ms` more."""

    one_way_ms: int
    jitter_ms: int = 0

    def sample(self, rng: Random) -> int:
        """The delay of one direction in ms."""
        return self.one_way_ms + (rng.getrandbits(32) * (self.jitter_ms + 1) >> 32)


def laws() -> tuple[str, ...]:
    """The names of the laws: `web` and the fitted models."""
    return ("web", *table("latency_fit")["models"])


@cache
def law(name: str) -> MeasuredLaw:
    """The law of that name; LabError if there is none."""
    fit = table("latency_fit")
    first_byte_ms = Quantiles(fit["first_byte_ms"])
    if name == "web":
        return MeasuredLaw(1000, 0, first_byte_ms, first_byte_ms)
    if name not in fit["models"]:
        raise LabError("latency", f"{name!r} is no law; one of {', '.join(laws())}")
    model = fit["models"][name]
    spread = Quantiles(model["spread_permille"])
    return MeasuredLaw(model["intercept_ms"], at_least("us_per_token", model["us_per_token"], 0), spread, first_byte_ms)
