"""
What one of several processes may do alone: its share of a budget, so that all shares together are the budget.

Doorman's safe capacity: floors and lines do not cross processes, so a share has none. A share that cannot hold one call
is no share; the budget is then closed without its store (design 2: P10).
"""

from dataclasses import replace

from swarmgate.core.limits import BudgetKind, Limits


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
