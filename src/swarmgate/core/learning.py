"""
Learning what a target tolerates when it does not say, or no longer keeps to what it said.

Searched are the sends per window, the sends in flight, and the sends in one burst. Two things keep the search honest.
An epoch: refusals of sends from before the last decision are one event with it (as TCP counts losses). And blame: a
refusal moves the value that had never been carried before, so that a concurrency cap does not ruin the rate. Rising
needs a window that was clean and full. Against fixed and sliding windows, token buckets, GCRA and concurrency caps
this uses 91 to 100 % at <= 0.4 % refusals, 1.7 % where a window holds only three (design 4: Learning).
"""

from enum import StrEnum
from typing import Final, NamedTuple

from swarmgate.core.backoff import longer_pause_ms
from swarmgate.core.compiler import HEADROOM_PERCENT
from swarmgate.core.errors import BadInput
from swarmgate.core.hidden_value import MICRO, HiddenValue, RevisionReason
from swarmgate.core.outcome import Kind, Outcome

PROBE_MS: Final = 10_000  # near the limit, a window shorter than this proves too little ...
PROBE_SENDS: Final = 10  # ... and so does one with fewer sends
USED_PERCENT: Final = 75  # a window that carried less proves nothing about more (TCP's congestion window validation)
BURST_SHARE: Final = 16  # a burst costs its size in rate when it is compiled: at most 1/16 of the window

_LIMITS: Final = frozenset({Kind.RATE, Kind.CONCURRENCY})
_PAUSES: Final = frozenset({Kind.SERVER_ERROR, Kind.CAPACITY, Kind.ERROR_IN_BODY, Kind.DAILY})


class Quantity(StrEnum):
    """What is learned."""

    RATE = "rate"  # sends per window
    CAP = "cap"  # sends in flight
    BURST = "burst"  # sends at once, above the even pace


class Revision(NamedTuple):
    """One change: the value in force from now on, in millionths."""

    quantity: Quantity
    reason: RevisionReason
    value_micro: int


class Ceilings(NamedTuple):
    """The operator's limits, in units: sends per window, in flight, at once."""

    rate: int
    cap: int
    burst: int


class Learned(NamedTuple):
    """What is worth keeping over a restart, in millionths; `failing_*` 0 = never refused."""

    rate_micro: int
    cap_micro: int
    burst_micro: int
    failing_rate_micro: int = 0
    failing_cap_micro: int = 0
    failing_burst_micro: int = 0


class Sent(NamedTuple):
    """
    One send as it left: when, how many were in flight with it, in the window that ends with it, and in its burst (the
    level of a bucket that drains at the learned rate).
    """

    at_ms: int
    in_flight: int
    carried: int
    burst: int


class LearnedLimit:
    """
    What one target, or one quota scope, is believed to take; live, changed only here.

    `window_ms` is the window in which the rate is counted; `ceilings` are never exceeded. The bucket that enforces the
    rate is compiled elsewhere, with headroom 1. Errors: `BadInput` for a window or ceiling below 1.
    """

    __slots__ = (
        "_accepted",
        "_before",
        "_burst",
        "_cap",
        "_ceilings",
        "_clean",
        "_current",
        "_cut_ms",
        "_decided_ms",
        "_heard",
        "_level_micro",
        "_own_pause_ms",
        "_peak_burst",
        "_peak_in_flight",
        "_rate",
        "_sent_ms",
        "_slot",
        "_window_from_ms",
        "paused_until_ms",
        "window_ms",
    )

    def __init__(self, start: Learned, window_ms: int, ceilings: Ceilings, now_ms: int) -> None:
        for field, amount in zip(("window_ms", *Ceilings._fields), (window_ms, *ceilings), strict=True):
            if amount < 1:
                raise BadInput(field, f"{amount} is below 1")
        self.window_ms = window_ms
        self.paused_until_ms = 0
        self._ceilings = ceilings
        self._rate = HiddenValue(start.rate_micro, start.failing_rate_micro, ceilings.rate * MICRO)
        self._cap = HiddenValue(start.cap_micro, start.failing_cap_micro, ceilings.cap * MICRO)
        self._burst = HiddenValue(start.burst_micro, start.failing_burst_micro, ceilings.burst * MICRO)
        if start.failing_burst_micro:
            self._burst.limit(min(self._burst.ceiling, start.failing_burst_micro - MICRO))
        self._own_pause_ms = 0  # the last pause that no hint gave; 0 = something was accepted since
        self._decided_ms = self._cut_ms = -1  # when a refusal last paused, and last changed a value
        self._heard = True  # something sent since the last cut was accepted
        self._clean = True  # a whole window passed since the last cut
        self._slot = self._before = self._current = 0
        self._sent_ms = self._level_micro = 0
        self._window_from_ms = now_ms
        self._accepted = self._peak_in_flight = self._peak_burst = 0

    @property
    def ceilings(self) -> Ceilings:
        """What is never exceeded."""
        return self._ceilings

    @property
    def rate_micro(self) -> int:
        """Sends per window that are believed to pass, in millionths."""
        return self._rate.value

    @property
    def cap(self) -> int:
        """Sends in flight that are believed to pass."""
        return self._cap.value // MICRO

    @property
    def burst(self) -> int:
        """Sends at once that are believed to pass; at most 1/16 of the window."""
        return max(1, min(self._burst.value // MICRO, self._most_burst))

    @property
    def learned(self) -> Learned:
        """What to persist."""
        values = (self._rate, self._cap, self._burst)
        return Learned(*[one.value for one in values], *[one.failing for one in values])

    def sent(self, now_ms: int, in_flight: int) -> Sent:
        """Note a send as it leaves; `in_flight` counts it. The result comes back with the send's outcome."""
        slot = now_ms // self.window_ms
        if slot != self._slot:
            self._before = self._current if slot == self._slot + 1 else 0
            self._current, self._slot = 0, slot
        self._current += 1
        carried = self._current + self._before * (self.window_ms - now_ms % self.window_ms) // self.window_ms
        drained = (now_ms - self._sent_ms) * self._rate.value // self.window_ms
        self._level_micro = max(0, self._level_micro - drained) + MICRO
        self._sent_ms = now_ms
        return Sent(now_ms, in_flight, carried, (self._level_micro + MICRO // 8) // MICRO)

    def observe(self, sent: Sent, outcome: Outcome, now_ms: int) -> Revision | None:
        """Learn from what a send came to: acceptance and refusals; of other failures only the wait they ask for."""
        if outcome.kind is Kind.OK:
            self._accept(sent)
        elif outcome.kind in _LIMITS:
            return self._refuse(sent, outcome, now_ms)
        elif outcome.kind in _PAUSES:
            self._pause(now_ms, outcome.hint_ms or 0)
        return None

    def grow(self, now_ms: int) -> tuple[Revision, ...]:
        """Raise what a clean window has filled; to be called now and then, it looks at whole windows only."""
        climbing = self._rate.value < self._rate.near
        span_ms = now_ms - self._window_from_ms
        if span_ms < (self.window_ms if climbing else max(self.window_ms, PROBE_MS)):
            return ()
        full = self._accepted * MICRO * self.window_ms * 100 >= self._rate.value * span_ms * USED_PERCENT
        if full and not climbing and self._accepted < PROBE_SENDS:
            return ()
        filled = (
            (Quantity.RATE, self._rate, full),
            (Quantity.CAP, self._cap, self._peak_in_flight >= self.cap),
            (Quantity.BURST, self._burst, full and self._most_burst > self.burst <= self._peak_burst),
        )
        self._clean = self._clean or self._accepted > 0
        self._open_window(now_ms)
        risen = [(quantity, value, value.rise()) for quantity, value, is_filled in filled if is_filled]
        return tuple([Revision(quantity, reason, value.value) for quantity, value, reason in risen if reason])

    def told(self, limit: int, window_ms: int = 0) -> Revision | None:
        """
        The target says what it takes: a ceiling below the operator's, with headroom, until it says another.

        `window_ms` 0 = in the learner's own window. What is below one send per window counts as one.
        """
        told, most = limit * MICRO * self.window_ms // (window_ms or self.window_ms), self._ceilings.rate * MICRO
        return self._put(Quantity.RATE, self._rate, most if told >= most else told * HEADROOM_PERCENT // 100)

    def restate(self, rate: int) -> Revision | None:
        """The operator states another rate per window: nothing that is learned exceeds it; it holds if nothing was refused."""
        self._ceilings = self._ceilings._replace(rate=rate, burst=rate)
        self._burst.limit(rate * MICRO)
        return self._put(Quantity.RATE, self._rate, rate * MICRO)

    def bound(self, ceilings: Ceilings) -> tuple[Revision, ...]:
        """The operator's limits are others: what was learned stays as far as it does not exceed them."""
        self._ceilings = ceilings
        self._burst.limit(ceilings.burst * MICRO)
        bounded = ((Quantity.RATE, self._rate, ceilings.rate), (Quantity.CAP, self._cap, ceilings.cap))
        return tuple(
            [
                Revision(what, RevisionReason.TOLD, value.value)
                for what, value, most in bounded
                if value.limit(most * MICRO)
            ]
        )

    def told_cap(self, at_once: int) -> Revision | None:
        """The target says how many sends it takes in flight."""
        return self._put(Quantity.CAP, self._cap, min(at_once, self._ceilings.cap) * MICRO)

    @staticmethod
    def _put(quantity: Quantity, value: HiddenValue, ceiling: int) -> Revision | None:
        return Revision(quantity, RevisionReason.TOLD, value.value) if value.tell(ceiling) else None

    @property
    def _most_burst(self) -> int:
        return self._rate.value // BURST_SHARE // MICRO

    def _accept(self, sent: Sent) -> None:
        if sent.at_ms > self._cut_ms:
            self._heard = True
            self._own_pause_ms = 0
        self._accepted += 1
        if sent.at_ms <= self._decided_ms:
            return  # some of what was in flight with it was refused: it proves less than it seems
        self._peak_in_flight = max(self._peak_in_flight, sent.in_flight)
        self._peak_burst = max(self._peak_burst, sent.burst)
        self._rate.safe = max(self._rate.safe, sent.carried)
        self._cap.safe = max(self._cap.safe, sent.in_flight)
        self._burst.safe = max(self._burst.safe, sent.burst)

    def _refuse(self, sent: Sent, outcome: Outcome, now_ms: int) -> Revision | None:
        if sent.at_ms <= self._decided_ms:
            self._pause(now_ms, outcome.hint_ms or 0)
            return None
        self._decided_ms = now_ms
        if not outcome.hint_ms:
            self._own_pause_ms = longer_pause_ms(self._own_pause_ms)
        self._pause(now_ms, outcome.hint_ms or self._own_pause_ms)
        self._open_window(self.paused_until_ms)
        if not self._heard:
            return None  # still the same stop: the pause was too short, which says nothing about the rate
        again, self._clean, self._heard, self._cut_ms = not self._clean, False, False, now_ms
        return self._cut(sent, again=again, told_cap=outcome.kind is Kind.CONCURRENCY)

    def _cut(self, sent: Sent, *, again: bool, told_cap: bool) -> Revision:
        """Cut what had never been carried before; the rate, if several or none."""
        if not told_cap and sent.burst > max(1, self._burst.safe):
            # Worth little and easily mistaken for the rate: this burst is never tried again.
            reason = self._burst.cut(sent.burst * MICRO, sent.burst, again=again)
            self._burst.limit(min(self._burst.ceiling, (sent.burst - 1) * MICRO))
            return Revision(Quantity.BURST, reason, self._burst.value)
        if told_cap or (sent.in_flight > self._cap.safe and sent.carried <= self._rate.safe):
            reason = self._cap.cut(sent.in_flight * MICRO, sent.in_flight, again=again)
            return Revision(Quantity.CAP, reason, self._cap.value)
        reason = self._rate.cut(self._rate.value, sent.carried, again=again)
        return Revision(Quantity.RATE, reason, self._rate.value)

    def _pause(self, now_ms: int, wait_ms: int) -> None:
        self.paused_until_ms = max(self.paused_until_ms, now_ms + wait_ms)

    def _open_window(self, from_ms: int) -> None:
        self._window_from_ms = from_ms
        self._accepted = self._peak_in_flight = self._peak_burst = 0
