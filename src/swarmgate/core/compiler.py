"""
From what a provider publishes, "N per W", to a budget that cannot break it at the target (design 2: P2; 4: Compiler).

Of the kinds that keep the promise the one with the best yield is chosen. A bucket keeps
`floor(2 * burst + rate * (W + X)) + U <= N`: X is the age at which a token is no longer spent, U what may be on its
way, and the second burst is what one fault may add (design 2: P1), so that even then the target sees no more than N.
Slots are busy from send until the answer begins, plus W / headroom: exact for any latency. A counter counts slices; with U it holds no more than N.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from swarmgate.core.floors import floors
from swarmgate.core.limits import EXACT, LONGEST_LEVEL_WINDOW_MS, BadLimit, BudgetKind, Limits, Tier, check_amount

HEADROOM_PERCENT: Final = 80  # the users' checklist: at most 80 % of the official limit
COUNTER_FROM_MS: Final = 3_600_000
SLICES: Final = 24
FINEST: Final = 1_000  # a rate is kept in thousandths of a unit per window
LARGEST_SLOTS: Final = 1_000  # the end of each hold looks at all of them
USUAL_ANSWER_MS: Final = 300
ROUND_TRIP_MS: Final = 100  # usually no longer until a target's kernel has what was sent
WAY: Final = ":way"  # ends the name of the places for what is on its way, beside its budget's


class Unit(StrEnum):
    """What a limit counts."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    INPUT_TOKENS = "input_tokens"
    OUTPUT_TOKENS = "output_tokens"
    BYTES = "bytes"
    POINTS = "points"
    MICRO = "micro"
    CONCURRENT = "concurrent"


OF_TOKENS: Final = frozenset({Unit.TOKENS, Unit.INPUT_TOKENS, Unit.OUTPUT_TOKENS})


@dataclass(frozen=True, slots=True)
class Published:
    """
    A limit as its owner states it: `amount` of `unit` in any `window_ms` (no window for CONCURRENT).

    `answer_ms` is how long the target usually takes to begin its answer, `largest` the largest call of P0, P1 and P2
    in this unit, `reserve` what is kept for P0, `burst` the most at once where the operator wants less than fits,
    `reset_ms` when a calendar window begins if that is known.
    """

    amount: int
    window_ms: int = 0
    unit: Unit = Unit.REQUESTS
    headroom_percent: int = HEADROOM_PERCENT
    answer_ms: int = USUAL_ANSWER_MS
    largest: tuple[int, int, int] = (1, 1, 1)
    reserve: int | None = None
    burst: int | None = None
    reset_ms: int | None = None
    lease_ms: int = 60_000
    line: str = ""
    sharing: int = 1


@dataclass(frozen=True, slots=True)
class Compiled:
    """
    A budget that keeps the promise: its limits, at most `undelivered` units on their way, tokens spent within `fresh_ms`.

    A cap of the operator's own has nothing on its way (`undelivered` 0). `yield_permille` is the mean rate it allows, in
    thousandths of the published one.
    """

    limits: Limits
    undelivered: int
    fresh_ms: int
    yield_permille: int

    def way(self) -> Limits | None:
        """The places for what is on its way, taken with the budget itself; None where the kind needs none."""
        limits = self.limits
        if limits.kind is BudgetKind.LEASES or not self.undelivered:
            return None
        line = f"{limits.line}{WAY}" if limits.line else ""
        return Limits(BudgetKind.LEASES, burst=self.undelivered, line=line, sharing=limits.sharing, tier=Tier.WAYS)


def compile_limit(published: Published, kind: BudgetKind | None = None) -> Compiled:
    """
    The best budget for a published limit, or the best of that `kind`: a budget that is in use cannot become another.

    Errors: `BadLimit` names the field and the rule that cannot be kept.
    """
    _check(published)
    found = [one for one in _candidates(published) if one and kind in {None, one.limits.kind}]
    if found:
        return max(found, key=lambda one: one.yield_permille)
    if kind is not None:
        raise BadLimit("amount", published.amount, f"needs a budget of another kind than {kind.name}, which is in use")
    reason = (
        f"no bucket keeps 2 * burst + rate * (W + X) + U <= {published.amount} with a call of {max(published.largest)}"
    )
    raise BadLimit("amount", published.amount, reason)


def _candidates(published: Published) -> list[Compiled | None]:
    if published.unit is Unit.CONCURRENT:
        return [_concurrency(published)]
    if published.window_ms >= COUNTER_FROM_MS or published.unit is Unit.MICRO:
        return [_counter(published, ways=published.unit not in {Unit.MICRO, Unit.OUTPUT_TOKENS})]
    kinds = [_bucket(published)]
    unspaced = published.burst is None or published.burst >= published.amount
    if (
        unspaced and published.unit is Unit.REQUESTS and published.amount <= LARGEST_SLOTS
    ):  # slots may all leave at once
        kinds.append(_slots(published))
    return kinds


def compile_cap(published: Published) -> Compiled:
    """
    The budget of a limit that is the operator's own: at most `amount` in any window, taken at the gate.

    Nothing is kept back for what is on its way, since nobody else counts. Errors: `BadLimit`.
    """
    _check(published)
    cap = _concurrency(published) if published.unit is Unit.CONCURRENT else _counter(published, ways=False)
    return replace(cap, limits=replace(cap.limits, tier=Tier.CALLERS))


def fresh_ms(window_ms: int) -> int:
    """X: a token older than this is lost, neither spent nor returned."""
    return min(max(window_ms // 40, 20), 250)


def _check(published: Published) -> None:
    for field in ("amount", "window_ms", "headroom_percent", "answer_ms", "lease_ms", "sharing"):
        check_amount(field, getattr(published, field))
    for field in ("reserve", "burst", "reset_ms"):
        if getattr(published, field) is not None:
            check_amount(field, getattr(published, field))
    for rank, cost in enumerate(published.largest):
        check_amount(f"largest[{rank}]", cost)
        if not cost:
            raise BadLimit(f"largest[{rank}]", cost, "a call costs at least 1 unit")
    if published.amount < 1:
        raise BadLimit("amount", published.amount, "must be at least 1; to stop a target, pause it")
    if not 1 <= published.headroom_percent <= 100:
        raise BadLimit("headroom_percent", published.headroom_percent, "must lie between 1 and 100")
    if published.window_ms < 1 and published.unit is not Unit.CONCURRENT:
        raise BadLimit("window_ms", published.window_ms, "a limit on use needs a window of at least 1 ms")
    if max(published.largest) > published.amount:
        reason = f"one call needs {max(published.largest)} and could never be sent (policy_larger_than_limit)"
        raise BadLimit("amount", published.amount, reason)


def _bucket(published: Published) -> Compiled | None:
    amount, window_ms = published.amount, published.window_ms
    fresh = fresh_ms(window_ms)
    largest = max(published.largest)
    fine = max(1, min(FINEST, LONGEST_LEVEL_WINDOW_MS // window_ms, EXACT // (2 * amount * window_ms + 1)))
    steady = amount * published.headroom_percent * fine // 100
    # What is left beside the steady rate is shared: a burst, the burst of one fault, and what is on its way.
    left = amount - _arrives(steady, fine, window_ms, fresh)
    ways = published.unit is not Unit.OUTPUT_TOKENS  # what is generated at the target is never on its way there
    fewest = max(largest, _ways(-(-steady // fine), window_ms)) if ways else 0  # or the rate waits for them
    undelivered = max(fewest, left // 3) if ways else 0
    burst = min((left - undelivered) // 2, amount // 4)
    if published.burst is not None:
        burst = min(burst, published.burst)
    if burst < largest:
        burst, undelivered = largest, fewest
        room = amount + 1 - 2 * burst - undelivered  # floor(): the fraction below one more unit is free
        if room <= 0:
            return None
        steady = min(steady, -(-room * window_ms * fine // (window_ms + fresh)) - 1)
        if steady < 1:
            return None
    limits = Limits(
        BudgetKind.LEVEL,
        burst=burst,
        quota=steady,
        window_ms=window_ms * fine,
        floors=floors(burst, published.largest, published.reserve),
        line=published.line,
        sharing=published.sharing,
    )
    return Compiled(limits, undelivered, fresh, steady * 1_000 // (amount * fine))


def _arrives(steady: int, fine: int, window_ms: int, fresh: int) -> int:
    """Units of a steady rate in W + X, rounded up."""
    return -(-steady * (window_ms + fresh) // (fine * window_ms))


def _ways(units: int, window_ms: int) -> int:
    """How many of the units that leave in a window are on their way at once; a tenth where windows are shorter than that."""
    return -(-units * min(ROUND_TRIP_MS, window_ms // 10) // window_ms)


def _slots(published: Published) -> Compiled:
    hold_ms = -(-published.window_ms * 100 // published.headroom_percent)
    limits = Limits(
        BudgetKind.LEASES,
        burst=published.amount,
        hold_ms=hold_ms,
        lease_ms=published.lease_ms + hold_ms,
        floors=_kept_slots(published),
        line=published.line,
        sharing=published.sharing,
    )
    share = published.window_ms * 1_000 // (hold_ms + published.answer_ms)
    return Compiled(limits, published.amount, EXACT - 1, share)


def _kept_slots(published: Published) -> tuple[int, int, int]:
    """Slots kept for better classes stand empty for good, unlike a bucket's floor: only if the operator asks."""
    return (0, 0, 0) if published.reserve is None else floors(published.amount, (1, 1, 1), published.reserve)


def _concurrency(published: Published) -> Compiled:
    limits = Limits(
        BudgetKind.LEASES,
        burst=published.amount,
        lease_ms=published.lease_ms,
        floors=_kept_slots(published),
        line=published.line,
        sharing=published.sharing,
    )
    return Compiled(limits, published.amount, EXACT - 1, 1_000)


def _counter(published: Published, *, ways: bool) -> Compiled:
    """
    What is on its way when a window begins counts in that window at the target: the cap leaves room for it.

    Where all of a limit is to be used and it holds no second call, none is left: a call may then be late by a window.
    """
    amount, largest = published.amount, max(published.largest)
    cap = amount * published.headroom_percent // 100
    if cap < largest:
        raise BadLimit("amount", amount, "less than one call is left below the headroom")
    fewest = max(largest, _ways(cap, published.window_ms))
    undelivered = max(fewest, amount - cap) if ways else 0
    if amount - undelivered >= largest:
        cap = min(cap, amount - undelivered)
    aligned = published.reset_ms is not None
    slices = 1 if aligned else SLICES
    limits = Limits(
        BudgetKind.COUNTER,
        burst=cap,
        window_ms=max(published.window_ms, slices),
        slices=slices,
        anchor_ms=(published.reset_ms or 0) % max(published.window_ms, 1),
        floors=floors(cap, published.largest, published.reserve),
        line=published.line,
        sharing=published.sharing,
    )
    share = cap * 1_000 // amount
    return Compiled(limits, undelivered, EXACT - 1, share if aligned else share * slices // (slices + 1))
