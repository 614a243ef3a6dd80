"""
How many targets may have budgets of their own: a hostile or careless agent can name a million hosts (design 2: P14).

Two caps. A group (registrable domain) that has filled its share sends its further hosts to one target of the group, so
random subdomains of one domain use up that domain only. A full table sends all further targets to `OTHER`. Neither is
unlimited: both are targets with budgets. No target is evicted while a budget of its own still counts; the owner of the
budgets calls `forget_target` when they are idle, for a fresh budget and an idle one are the same.
"""

from collections.abc import Iterable
from typing import Final

from swarmgate.core.target import Target
from swarmgate.core.target_errors import BadPattern

OTHER: Final = Target("other", "*", 0)  # its key `other://*` is no URL, so no caller can name it


class TargetTable:
    """
    Targets with budgets of their own, at most `cap`, and at most `group_cap` in each group; changed here only.

    Configured targets are always in it and do not count against the group. `overflowed` counts diversions.
    """

    __slots__ = ("cap", "configured", "group_cap", "group_sizes", "known", "overflowed")

    def __init__(self, cap: int, group_cap: int, configured: Iterable[Target] = ()) -> None:
        self.configured = frozenset(configured)
        if not 1 <= group_cap <= cap:
            raise BadPattern("group_cap", group_cap, f"must lie between 1 and the table's cap of {cap}")
        self.cap = cap
        self.group_cap = group_cap
        self.known: dict[Target, str] = {}  # target -> its group
        self.group_sizes: dict[str, int] = {}
        self.overflowed = 0


def place_target(table: TargetTable, target: Target, group: str) -> Target:
    """The target itself, if it has or gets a place; else the shared target of its group, or of everybody."""
    if target in table.configured or target in table.known:
        return target
    size = table.group_sizes.get(group, 0)
    if size < table.group_cap and len(table.known) < table.cap:
        table.known[target] = group
        table.group_sizes[group] = size + 1
        return target
    table.overflowed += 1
    return OTHER if size < table.group_cap else OTHER._replace(host="*." + group)


def forget_target(table: TargetTable, target: Target) -> None:
    """Free the place of a target all of whose budgets are idle; an unknown or configured one is left as it is."""
    group = table.known.pop(target, None)
    if group is None:
        return
    table.group_sizes[group] -= 1
    if not table.group_sizes[group]:
        del table.group_sizes[group]
