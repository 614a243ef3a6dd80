"""
Parts of a budget: what one of several processes may do alone, and what one of several teams may use of it.

Doorman's safe capacity: floors and lines do not cross processes, so a share has none. A share that cannot hold one call
is no share; the budget is then closed without its store (design 2: P10).
"""

from dataclasses import replace

from swarmgate.core.limits import EXACT, BudgetKind, Limits, Tier


def share_of(limits: Limits, processes: int, need: int) -> Limits | None:
    """
    The limits of one of `processes` shares, or None if it cannot hold `need` units.

    A counter has no share: what it counted is in the store alone, and every loss would grant it anew.
    """
    if limits.kind is BudgetKind.COUNTER:
        return None
    burst = limits.burst // processes
    if need > burst:
        return None
    quota = limits.quota // processes
    if limits.kind is BudgetKind.LEVEL and not quota:
        return None
    return replace(limits, burst=burst, quota=quota, floors=(0, 0, 0), line="")


def portion(limits: Limits, percent: int, count: int = 1, largest: int = 1) -> Limits:
    """
    At most this percentage of `count` such budgets together, for one of those who share them (design 4: Line).

    The burst of a bucket is a part of what everybody but P0 may take of it, so that who takes his at once leaves the others
    theirs (reliability TI-07); but a call of `largest` units still fits. Its floors and its line are the budget's own business.
    """
    if limits.kind is BudgetKind.LEVEL:
        quota = max(1, limits.quota * count * percent // 100)
        free = (limits.burst - limits.floors[1]) * count * percent // 100
        burst = min(max(free, min(largest, limits.burst)), (EXACT - 1 - quota) // limits.window_ms)
        return replace(limits, burst=burst, quota=quota, floors=(0, 0, 0), line="", sharing=1, tier=Tier.CALLERS)
    part = limits.burst * count * percent // 100
    return replace(limits, burst=max(1, part), floors=(0, 0, 0), line="", sharing=1, tier=Tier.CALLERS)
