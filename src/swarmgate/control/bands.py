"""
What context costs: latency and money of answered calls by task type, by how long their prompt was and by the ceiling in force.

The users' own finding stands behind the bounds: 16K tokens took 4.2 s and 0.03, 64K took 11.8 s and 0.14, with hardly better
answers (essay A).
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

BOUNDS: Final = (4_096, 16_384, 32_768, 65_536)
NAMES: Final = ("up to 4K", "4K to 16K", "16K to 32K", "32K to 64K", "over 64K")
MOST_KEPT: Final = 20_000  # durations per band; what comes later counts for the mean only
MOST_TYPES: Final = 8  # task types in a drawing
P99: Final = 99
P50: Final = 50


class Band(NamedTuple):
    """Answered calls of one task type whose prompt fell into one band; `cost_micro` is the mean of those with a price."""

    task_type: str
    band: str
    calls: int
    mean_ms: int
    p50_ms: int
    p99_ms: int
    output_tokens: int
    cost_micro: int | None


class Spell(NamedTuple):
    """Answered calls of one task type while one ceiling held; `ceiling` 0 = none, `longest` the longest prompt in tokens."""

    task_type: str
    ceiling: int
    from_ms: int
    calls: int
    mean_ms: int
    p50_ms: int
    p99_ms: int
    longest: int
    cost_micro: int | None


class Moment(NamedTuple):
    """Answers of one task type that left in one window of a report."""

    task_type: str
    from_ms: int
    calls: int
    mean_ms: int
    p99_ms: int


class _Cell:
    __slots__ = ("calls", "cost", "longest", "ms", "output", "priced", "took")

    def __init__(self) -> None:
        self.calls = self.ms = self.output = self.cost = self.priced = self.longest = 0
        self.took: list[int] = []

    def add(self, row: Mapping[str, Any]) -> None:
        """One answer."""
        self.calls += 1
        self.ms += row["took_ms"]
        self.output += row["output_tokens"] or 0
        self.longest = max(self.longest, row["prompt_tokens"])
        if row["cost_micro"] is not None:
            self.cost += row["cost_micro"]
            self.priced += 1
        if len(self.took) < MOST_KEPT:
            self.took.append(row["took_ms"])

    @property
    def cost_micro(self) -> int | None:
        """The mean of those with a price."""
        return self.cost // self.priced if self.priced else None

    def times(self) -> tuple[int, int, int]:
        """Mean, P50 and P99 in ms."""
        took = sorted(self.took)
        return self.ms // self.calls, _percentile(took, P50), _percentile(took, P99)


class Bands:
    """Filled attempt by attempt."""

    def __init__(self) -> None:
        self._cells: dict[tuple[str, int], _Cell] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """An attempt of the ledger; one that was not answered, or whose tokens nobody knows, is passed."""
        if not _tells(row):
            return
        # bisect_right would put exactly 16,384 into the next band: a ceiling of 16K is still 16K
        index = bisect_right(BOUNDS, row["prompt_tokens"] - 1)
        self._cells.setdefault((row["task_type"], index), _Cell()).add(row)

    def found(self) -> list[Band]:
        """By task type, shortest band first."""
        return [_band(task_type, index, cell) for (task_type, index), cell in sorted(self._cells.items())]


class Spells:
    """The same by the ceiling that held: what a ceiling did to latency and cost. `ceilings` as reading.py tells them."""

    def __init__(self, ceilings: Iterable[tuple[int, str, int]], from_ms: int) -> None:
        self._begins: dict[str, list[tuple[int, int]]] = {}  # by task type: since when which ceiling held
        self._cells: dict[tuple[str, int, int], _Cell] = {}
        self._from_ms = from_ms
        for at_ms, task_type, tokens in ceilings:
            held = self._begins.setdefault(task_type, [(0, 0)])
            if held[-1][1] != tokens:
                held.append((at_ms, tokens))

    def add(self, row: Mapping[str, Any]) -> None:
        """An attempt of the ledger, as for `Bands`; the ceiling is that of the instant at which it left."""
        if not _tells(row):
            return
        held = self._begins.get(row["task_type"], [(0, 0)])
        since_ms, tokens = next(one for one in reversed(held) if one[0] <= row["sent_ms"])
        self._cells.setdefault((row["task_type"], max(since_ms, self._from_ms), tokens), _Cell()).add(row)

    def found(self) -> list[Spell]:
        """By task type, in order of time."""
        return [
            Spell(task_type, ceiling, from_ms, cell.calls, *cell.times(), cell.longest, cell.cost_micro)
            for (task_type, from_ms, ceiling), cell in sorted(self._cells.items())
        ]


class Moments:
    """The same window by window; `begin_of` an instant is the beginning of its window. Of many task types the first ones count."""

    def __init__(self, begin_of: Callable[[int], int]) -> None:
        self._begin_of = begin_of
        self._cells: dict[tuple[str, int], _Cell] = {}
        self._types: set[str] = set()

    def add(self, row: Mapping[str, Any]) -> None:
        """An attempt of the ledger, as for `Bands`."""
        task_type = row["task_type"]
        if not _tells(row) or (len(self._types) >= MOST_TYPES and task_type not in self._types):
            return
        self._types.add(task_type)
        self._cells.setdefault((task_type, self._begin_of(row["sent_ms"])), _Cell()).add(row)

    def found(self) -> list[Moment]:
        """By task type, in order of time."""
        return [
            Moment(task_type, from_ms, cell.calls, mean_ms, p99_ms)
            for (task_type, from_ms), cell in sorted(self._cells.items())
            for mean_ms, _, p99_ms in (cell.times(),)
        ]


def _tells(row: Mapping[str, Any]) -> bool:
    return row["kind"] == "ok" and row["prompt_tokens"] is not None and row["took_ms"] is not None


def _band(task_type: str, index: int, cell: _Cell) -> Band:
    return Band(task_type, NAMES[index], cell.calls, *cell.times(), cell.output // cell.calls, cell.cost_micro)


def _percentile(ordered: list[int], percent: int) -> int:
    """The smallest value that at least so many percent do not exceed."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]
