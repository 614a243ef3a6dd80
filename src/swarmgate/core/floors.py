"""
What a better class finds free in a shared budget although worse ones flood it (design 4: Floors).

P0 has no floor, P1 leaves P0's reserve, P2 twice that. A floor never locks a class out: it is clipped to what lets
that class's largest call in, and a budget smaller than four of the largest calls has none; there the line alone orders.
"""

from typing import Final

FLOORLESS_BELOW_CALLS: Final = 4
RESERVE_SHARE: Final = 4  # P0's reserve is a quarter of the burst


def floors(burst: int, largest: tuple[int, int, int], reserve: int | None = None) -> tuple[int, int, int]:
    """The floors of P0, P1 and P2 in a budget of `burst` units; `largest` is the largest cost of a call per class."""
    if burst < FLOORLESS_BELOW_CALLS * max(largest):
        return (0, 0, 0)
    kept = burst // RESERVE_SHARE if reserve is None else reserve
    _, p1, p2 = (min(floor, burst - cost) for floor, cost in zip((0, kept, 2 * kept), largest, strict=True))
    return (0, max(0, p1), max(0, p2))
