"""
The store's live records: one book of budget cells and lines, changed by the kernel only.

A cell keeps the products of its limits beside its state, since one admission reads eight of them in four
microseconds. All amounts are integers; `level` is scaled (units x window), `pending` and leases are in units.
"""

from typing import Final, NamedTuple

from swarmgate.core.limits import EXACT, BudgetKind, Limits
from swarmgate.core.line import CLASS_STEP, Line

UNKNOWN_SEQUENCE: Final = CLASS_STEP - 1
LEASE_MS: Final = 60_000  # a reservation nobody settles or renews is charged after this
STAY_MS: Final = 5_000  # how long a ticket that is due keeps its place without being claimed


# What an alternative takes from one budget: (budget, cost, reserve): `cost` at once, `reserve` until it is settled.
# A plain tuple, since unpacking a named one costs 0.1 us and an admission unpacks sixteen. A budget of kind LEASES
# takes reserves only, and no budget stands twice in one alternative.
Demand = tuple[str, int, int]


class Take(NamedTuple):
    """
    One admission: alternatives in order of preference, each all or nothing.

    `rank` is the class (0 = P0), `score` the place in line (`first_score(rank)` before it has one), `standing` the
    lines where the ticket stands. With `waits` a denied caller stands in line and asks again when it is due, at the
    latest `expires_after_ms` behind it; without, it is sent away: it leaves every line, and its `score` is its place
    when it comes back.
    """

    ticket: str
    lease: str
    rank: int
    score: int
    alternatives: tuple[tuple[Demand, ...], ...]
    lease_ms: int
    standing: tuple[str, ...] = ()
    waits: bool = True
    expires_after_ms: int = STAY_MS


Used = tuple[str, int, int]  # a `Usage`, or the same as a plain tuple: every call makes six of them


class Usage(NamedTuple):
    """What a settlement says of one budget: what was still `reserved` there and what was `used` of it."""

    budget: str
    reserved: int
    used: int


def first_score(rank: int) -> int:
    """The score of a caller that has no place yet: behind everybody of its class."""
    return rank * CLASS_STEP + UNKNOWN_SEQUENCE


class Lease:
    """
    Units held until `expires_ms`; `firm` = it ends exactly then (a hold), otherwise it may end earlier.

    Its maker fills it: an admission makes six, and a constructor in Python costs more than the rest of one.
    """

    __slots__ = ("amount", "expires_ms", "firm")

    amount: int
    expires_ms: int
    firm: bool


class BudgetCell:
    """State of one budget; `due_ms` is the next instant at which something expires."""

    __slots__ = (
        "anchor_ms",
        "at_ms",
        "caps",
        "drain",
        "dropped",
        "due_ms",
        "forget_ms",
        "keep_ms",
        "leases",
        "level",
        "limits",
        "line",
        "name",
        "order",
        "pending",
        "promised_ms",
        "scale",
        "shape",
        "slice_ms",
        "slices",
    )

    def __init__(self, name: str, limits: Limits, line: Line, at_ms: int) -> None:
        self.name = name
        self.line = line
        self.order = line.order  # the same list, one look-up nearer
        self.level = 0
        self.pending = 0
        self.promised_ms = 0  # when the last caller that was sent away was told to come back
        self.leases: dict[str, Lease] = {}
        self.slices: dict[int, int] | None = {} if limits.kind is BudgetKind.COUNTER else None
        self.at_ms = at_ms
        self.dropped = 0  # what a counter has forgotten: with it, use only grows
        self.forget_ms = 0  # no slice of a counter is forgotten before it; 0 = nobody looked yet
        self.due_ms = EXACT
        self.apply(limits)

    def apply(self, limits: Limits) -> None:
        """Take the products of `limits`."""
        self.limits = limits
        self.scale = limits.scale
        self.drain = limits.drain
        self.caps = limits.caps
        self.slice_ms = limits.slice_ms
        self.anchor_ms = limits.anchor_ms
        self.keep_ms = limits.forgotten_at_ms(0) - limits.anchor_ms
        self.shape = (self.scale, self.drain, self.caps, limits.tier)


class Book:
    """
    All budgets and lines of one store, its clock and its birth (`birth_ms`: nothing before it is remembered).

    `counters` names the cells that count by the calendar: what they hold must outlive the process.
    """

    __slots__ = ("birth_ms", "cells", "clock_steps", "counters", "lines", "now_ms", "offset_ms", "sequence")

    def __init__(self, birth_ms: int = 0) -> None:
        self.birth_ms = birth_ms
        self.now_ms = birth_ms
        self.offset_ms = 0
        self.clock_steps = 0
        self.sequence = 0
        self.cells: dict[str, BudgetCell] = {}
        self.counters: set[str] = set()
        self.lines: dict[str, Line] = {}

    def line(self, name: str) -> Line:
        """The line of that name, made on first use."""
        line = self.lines.get(name)
        if line is None:
            line = self.lines[name] = Line(name)
        return line
