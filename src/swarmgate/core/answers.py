"""
What the kernel answers: frozen values, never booleans with side meanings and never exceptions.

They are also events of the call's table: a store answers by firing them.
"""

from enum import IntEnum
from typing import NamedTuple

from swarmgate.core.limits import Tier


class BlockKind(IntEnum):
    """Why a budget does not admit now; the order is severity."""

    TIME = 0  # it will admit at a known instant
    LINE = 1  # a better ticket is before this one
    EVENT = 2  # a slot or a reservation must end first
    NEVER = 3  # the cost exceeds what this class may ever hold


class Blocker(NamedTuple):
    """One budget that blocks; `remaining` in its unit, never below 0, `limit` 0 = paused; instants in the store's ms."""

    budget: str
    kind: BlockKind
    at_ms: int
    certain_ms: int
    remaining: int
    limit: int
    window_ms: int
    revision: int
    tier: Tier = Tier.TARGETS


class Granted(NamedTuple):
    """The alternative `chosen` was taken whole at `now_ms`; its reservation lapses at `expires_ms`."""

    now_ms: int
    chosen: int
    expires_ms: int


class Denied(NamedTuple):
    """
    Nothing was taken; `blockers` names every budget that blocks the alternative that will fit first.

    `not_before_ms` is a promise when `kind` is TIME (without rivals a repeat then is admitted); it is paced by the
    tickets that stand before the caller. Otherwise it is the earliest possible instant. By `certain_ms` every lease that
    blocks has ended. `chosen` is that alternative; `score` orders the caller in line; `lines` are where it stands.
    """

    now_ms: int
    kind: BlockKind
    not_before_ms: int
    certain_ms: int
    due_ms: int
    chosen: int
    blockers: tuple[Blocker, ...]
    score: int
    lines: tuple[str, ...]
    position: int
    depth: int


class Revised(NamedTuple):
    """Whether a compare-and-set of limits was done, and the revision in force."""

    now_ms: int
    done: bool
    revision: int


def held_up_at(kind: BlockKind, blockers: tuple[Blocker, ...]) -> Tier:
    """The earliest tier of what blocks until nobody knows when, or, where all is time (`kind`), of what blocks for longest."""
    if kind is BlockKind.TIME:
        ready_ms = max([one.at_ms for one in blockers])
        return min([one.tier for one in blockers if one.at_ms == ready_ms])
    return min([one.tier for one in blockers if one.kind is not BlockKind.TIME])
