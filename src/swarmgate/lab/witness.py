"""
The witness at a target: it writes down every arrival and answers, afterwards, whether a promise was kept.

It stands beside one quota scope of one target, believes nobody's counters and shares no code with the core. Windows are
half-open: one of length W holds the instants t .. t + W - 1 in ms. The largest excess over burst + rate * T among all
windows is found in one pass: with S(i) the amount up to arrival i, it is the largest S(j) - rate * t(j) minus the least
S(i - 1) - rate * t(i), i <= j. Every answer is an exact integer but the shares, which only reports read.
"""

from collections import Counter, deque
from collections.abc import Iterator
from typing import Literal, NamedTuple

from swarmgate.lab.errors import LabError, at_least

Unit = Literal["requests", "tokens"]


class Arrival(NamedTuple):
    """One request as the target saw it; `ok` is what the target's limiters said, `cost` its tokens at that instant."""

    t_ms: int
    call_id: str
    attempt: int
    key_id: str
    cost: int
    ok: bool


class Departure(NamedTuple):
    """The end of an answer; `cost` is what it added to the tokens of its arrival (its output)."""

    t_ms: int
    call_id: str
    attempt: int
    cost: int


class Witness:
    """
    An append-only record of what reached one quota scope, in the order in which it came.

    Amounts are `requests` (every arrival is one, refused or not: the target had to answer it) or `tokens` (the cost of
    every arrival, and of every departure when it ended).
    """

    __slots__ = ("_amounts", "_departures", "_rows")

    def __init__(self) -> None:
        self._rows: list[Arrival] = []
        self._departures: list[Departure] = []
        self._amounts: list[tuple[int, int, bool]] = []  # (t_ms, tokens, ok) of arrivals and departures, in order

    def arrived(self, row: Arrival) -> None:
        """Appends one arrival; LabError if it lies before the last one, or costs less than nothing."""
        self._append(row.t_ms, row.cost, row.ok)
        self._rows.append(row)

    def departed(self, row: Departure) -> None:
        """Appends the end of one answer; LabError as for `arrived`."""
        self._append(row.t_ms, row.cost, ok=True)
        self._departures.append(row)

    def _append(self, t_ms: int, tokens: int, ok: bool) -> None:
        at_least("cost", tokens, 0)
        if self._amounts and t_ms < self._amounts[-1][0]:
            raise LabError("t_ms", f"{t_ms} lies before {self._amounts[-1][0]}, which is already written down")
        self._amounts.append((t_ms, tokens, ok))

    @property
    def arrivals(self) -> tuple[Arrival, ...]:
        """Every arrival, oldest first."""
        return tuple(self._rows)

    @property
    def sent(self) -> int:
        """How many requests arrived, refused ones included."""
        return len(self._rows)

    @property
    def refused(self) -> int:
        """How many arrivals the target refused."""
        return sum(not row.ok for row in self._rows)

    def by_key(self) -> Counter[str]:
        """Arrivals per key id."""
        return Counter(row.key_id for row in self._rows)

    def amounts(self, unit: Unit = "requests") -> Iterator[tuple[int, int]]:
        """Pairs (t_ms, amount) in order of time; amounts of 0 are left out."""
        if unit == "requests":
            return ((row.t_ms, 1) for row in self._rows)
        return ((t_ms, tokens) for t_ms, tokens, _ in self._amounts if tokens)

    def most_in_window(self, window_ms: int, unit: Unit = "requests") -> int:
        """The largest amount in any half-open window of `window_ms`."""
        return max((held for _, held in self._trailing(window_ms, unit)), default=0)

    def over_limit(self, limit: int, window_ms: int, unit: Unit = "requests") -> int:
        """
        How many arrivals (for tokens: arrivals and departures) lie beyond `limit` in some window of `window_ms`.

        One is beyond it if it and what came before it in the window that ends with it amount to more than `limit`.
        """
        return sum(held > limit for _, held in self._trailing(window_ms, unit))

    def _trailing(self, window_ms: int, unit: Unit) -> Iterator[tuple[int, int]]:
        at_least("window_ms", window_ms, 1)
        window: deque[tuple[int, int]] = deque()
        held = 0
        for t_ms, amount in self.amounts(unit):
            while window and window[0][0] <= t_ms - window_ms:
                held -= window.popleft()[1]
            window.append((t_ms, amount))
            held += amount
            yield t_ms, held

    def excess(self, burst: int, rate: int, per_ms: int, unit: Unit = "requests") -> int:
        """
        The most by which any window T exceeds burst + rate / per_ms * T, times `per_ms` to stay exact (design 2: P1).

        Zero or less means that the bound held; T is the time between the first and the last arrival of a window.
        """
        at_least("per_ms", per_ms, 1)
        scaled_burst = burst * per_ms
        least_before: int | None = None
        worst = -scaled_burst
        total = 0
        for t_ms, amount in self.amounts(unit):
            before = total - rate * t_ms
            least_before = before if least_before is None else min(least_before, before)
            total += amount * per_ms
            worst = max(worst, total - rate * t_ms - least_before - scaled_burst)
        return worst

    def per_second(self, unit: Unit = "requests") -> dict[int, int]:
        """Amount by whole second; seconds in which nothing came are absent."""
        series: dict[int, int] = {}
        for t_ms, amount in self.amounts(unit):
            second = t_ms // 1000
            series[second] = series.get(second, 0) + amount
        return series

    def passed(self, from_ms: int, until_ms: int, unit: Unit = "requests") -> int:
        """The amount that the target let through in from_ms <= t < until_ms."""
        if unit == "requests":
            return sum(row.ok for row in self._rows if from_ms <= row.t_ms < until_ms)
        return sum(tokens for t_ms, tokens, ok in self._amounts if ok and from_ms <= t_ms < until_ms)

    def utilisation(self, from_ms: int, until_ms: int, limit: int, window_ms: int, unit: Unit = "requests") -> float:
        """What passed, as a share of `limit` per `window_ms` (a published limit, or a compiled rate per its ms)."""
        possible = at_least("until_ms", until_ms - from_ms, 1) * at_least("limit", limit, 1)
        return self.passed(from_ms, until_ms, unit) * at_least("window_ms", window_ms, 1) / possible

    def most_in_progress(self) -> int:
        """The most requests that were in progress at once; at one instant, what ends counts before what begins."""
        changes = [(row.t_ms, 1) for row in self._rows if row.ok] + [(row.t_ms, -1) for row in self._departures]
        most = busy = 0
        for _, change in sorted(changes):
            busy += change
            most = max(most, busy)
        return most

    def in_progress_ms(self, from_ms: int, until_ms: int) -> int:
        """The sum over all requests of the ms that they were in progress within from_ms <= t < until_ms."""

        def within(t_ms: int) -> int:
            return until_ms - min(max(t_ms, from_ms), until_ms)

        began = sum(within(row.t_ms) for row in self._rows if row.ok)
        return began - sum(within(row.t_ms) for row in self._departures)
