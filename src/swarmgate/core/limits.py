"""
What a budget is told: frozen limits, checked once when they are defined.

The kernel computes with the products prepared here. Every amount is an integer below 2^51: what it adds up from four
of them is below 2^53, where Python and Lua's doubles still compute the same (design 4: Level).
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from swarmgate.core.errors import BadInput

EXACT: Final = 2**51  # amounts and instants end here; for an instant it means never
LONGEST_LEVEL_WINDOW_MS: Final = 94_906_265  # its square is still exact; a revision multiplies two windows
CLASSES: Final = 3  # P0, P1, P2
PAUSED: Final = (-1, -1, -1)


class BudgetKind(IntEnum):
    """How a budget forgets what was used."""

    LEVEL = 0  # drains continuously
    LEASES = 1  # forgets when a hold ends
    COUNTER = 2  # forgets slice by slice, or at a calendar boundary


class Tier(IntEnum):
    """
    Whose a budget is. Who waits for something of an earlier tier holds nobody back in a later one (design 4: Line).

    Else an agent that waits for its own cap would keep a target idle for everybody: of a place or a token that comes one
    by one nothing is left beside what is kept for it.
    """

    CALLERS = 0  # an agent's, a team's: its caps
    TARGETS = 1
    WAYS = 2  # places for what is on its way to a target: they come back within a round trip


class BadLimit(BadInput):
    """A limit that cannot be kept; names the field, the offending value and the rule."""

    def __init__(self, field: str, value: object, reason: str) -> None:
        super().__init__(f"{field} = {value!r}", reason)
        self.field = field
        self.value = value


@dataclass(frozen=True, slots=True)
class Limits:
    """
    One budget's limits: `burst` units at most, of which `floors[class]` stay free for better classes.

    `quota` units drain per `window_ms` (LEVEL). `hold_ms` keeps a slot busy after its release (LEASES).
    `slices` divides `window_ms` (COUNTER; 1 = one calendar window that starts at `anchor_ms`).
    `lease_ms` is the longest hold a lost store may have forgotten. `line` is shared by interchangeable budgets;
    empty = a line of its own; `sharing` is how many budgets share it. `tier` says whose it is. `paused` = nothing is admitted until a revision
    says otherwise; what was used goes on draining. Errors: `BadLimit`.
    """

    kind: BudgetKind
    burst: int
    quota: int = 0
    window_ms: int = 1
    floors: tuple[int, int, int] = (0, 0, 0)
    hold_ms: int = 0
    slices: int = 1
    anchor_ms: int = 0
    lease_ms: int = 0
    line: str = ""
    sharing: int = 1
    revision: int = 1
    paused: bool = False
    tier: Tier = Tier.TARGETS

    def __post_init__(self) -> None:
        for field in (
            "burst",
            "quota",
            "window_ms",
            "hold_ms",
            "slices",
            "lease_ms",
            "anchor_ms",
            "sharing",
            "revision",
        ):
            check_amount(field, getattr(self, field))
        for index, floor in enumerate(self.floors):
            check_amount(f"floors[{index}]", floor)
            if floor > self.burst:
                raise BadLimit(f"floors[{index}]", floor, f"a floor cannot exceed the burst of {self.burst}")
        if len(self.floors) != CLASSES:
            raise BadLimit("floors", self.floors, "one floor for each of P0, P1 and P2")
        if not self.sharing:
            raise BadLimit("sharing", self.sharing, "a line has at least one budget")
        if self.window_ms < 1 or self.slices < 1 or self.window_ms < self.slices:
            raise BadLimit("window_ms", self.window_ms, f"must hold {self.slices} slices of at least 1 ms")
        if self.kind is BudgetKind.LEVEL:
            self._check_level()

    def _check_level(self) -> None:
        if self.window_ms > LONGEST_LEVEL_WINDOW_MS:
            raise BadLimit("window_ms", self.window_ms, "a bucket's window ends at 26 h; longer ones are counters")
        if self.burst * self.window_ms + self.quota >= EXACT:
            raise BadLimit("burst", self.burst, "burst * window_ms + quota must stay below 2^51")

    @property
    def scale(self) -> int:
        """Factor between units and the stored level: a bucket stores units x window, so refill has no division."""
        return self.window_ms if self.kind is BudgetKind.LEVEL else 1

    @property
    def drain(self) -> int:
        """Scaled amount that drains per millisecond."""
        return self.quota if self.kind is BudgetKind.LEVEL else 0

    @property
    def caps(self) -> tuple[int, int, int]:
        """Scaled fill that each class may reach; below zero = paused, so that not even nothing fits."""
        if self.paused:
            return PAUSED
        p0, p1, p2 = self.floors
        return (
            (self.burst - p0) * self.scale,
            (self.burst - p1) * self.scale,
            (self.burst - p2) * self.scale,
        )

    @property
    def slice_ms(self) -> int:
        """Length of one slice of a counter, rounded up so that no window is shorter than promised."""
        return -(-self.window_ms // self.slices)

    def slice_at(self, now_ms: int) -> int:
        """The slice of a counter that counts at `now_ms`."""
        return (now_ms - self.anchor_ms) // self.slice_ms

    def forgotten_at_ms(self, index: int) -> int:
        """When slice `index` no longer counts: at once for a calendar window, one whole window later otherwise."""
        kept = self.slices if self.slices > 1 else 0
        return self.anchor_ms + (index + kept + 1) * self.slice_ms


def check_amount(field: str, value: object) -> None:
    """Raise `BadLimit` unless it is an integer that both Python and Lua can count with."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadLimit(field, value, "must be an integer")
    if not 0 <= value < EXACT:
        raise BadLimit(field, value, "must lie between 0 and 2^51 - 1")
