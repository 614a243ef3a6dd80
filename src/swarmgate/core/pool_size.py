"""
How many connections a target's shared pool needs: peak rate x response time x 1.3 (essay A; Little's law).

Little: the mean number in progress is arrivals times stay. The 30 % on top is for what arrives in bunches. Who plans has
the two factors, a running pool measures the product.
"""

from typing import Final

from swarmgate.core.errors import BadInput

SPARE_PERCENT: Final = 130
FEWEST: Final = 2  # one connection would make every reconnect a stop
MOST: Final = 4_096  # file descriptors; more streams than this belong to more processes


def pool_size(peak_per_minute: int, response_ms: int, fewest: int = FEWEST, most: int = MOST) -> int:
    """
    Connections for `peak_per_minute` requests that each take `response_ms`, rounded up, within `fewest` and `most`.

    100 per second x 2 s x 1.3 = 260. Per minute, because targets are often slower than one per second.
    Errors: `BadInput` for a negative amount or bounds that exclude each other.
    """
    for field, amount in (("peak_per_minute", peak_per_minute), ("response_ms", response_ms), ("fewest", fewest)):
        if amount < 0:
            raise BadInput(field, f"{amount} is negative")
    if most < fewest:
        raise BadInput("most", f"{most} is below the {fewest} connections that are kept at least")
    return with_spare(peak_per_minute * response_ms, 60_000, fewest, most)


def with_spare(in_use: int, of: int, fewest: int, most: int) -> int:
    """Connections where `in_use / of` are in use on average: as many x 1.3, rounded up, within `fewest` and `most`."""
    needed = -(-in_use * SPARE_PERCENT // (of * 100))
    return max(fewest, min(needed, most))
