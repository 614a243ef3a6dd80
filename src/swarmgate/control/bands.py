"""
What context costs: latency and money of answered calls by task type and by how long their prompt was.

The users' own finding stands behind the bounds: 16K tokens took 4.2 s and 0.03, 64K took 11.8 s and 0.14, with hardly better
answers (essay A).
"""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

BOUNDS: Final = (4_096, 16_384, 32_768, 65_536)
NAMES: Final = ("up to 4K", "4K to 16K", "16K to 32K", "32K to 64K", "over 64K")
MOST_KEPT: Final = 20_000  # durations per band; what comes later counts for the mean only
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


class _Cell:
    __slots__ = ("calls", "cost", "ms", "output", "priced", "took")

    def __init__(self) -> None:
        self.calls = self.ms = self.output = self.cost = self.priced = 0
        self.took: list[int] = []


class Bands:
    """Filled attempt by attempt."""

    def __init__(self) -> None:
        self._cells: dict[tuple[str, int], _Cell] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """An attempt of the ledger; one that was not answered, or whose tokens nobody knows, is passed."""
        if row["kind"] != "ok" or row["prompt_tokens"] is None or row["took_ms"] is None:
            return
        # bisect_right would put exactly 16,384 into the next band: a ceiling of 16K is still 16K
        index = bisect_right(BOUNDS, row["prompt_tokens"] - 1)
        cell = self._cells.setdefault((row["task_type"], index), _Cell())
        cell.calls += 1
        cell.ms += row["took_ms"]
        cell.output += row["output_tokens"] or 0
        if row["cost_micro"] is not None:
            cell.cost += row["cost_micro"]
            cell.priced += 1
        if len(cell.took) < MOST_KEPT:
            cell.took.append(row["took_ms"])

    def found(self) -> list[Band]:
        """By task type, shortest band first."""
        return [_band(task_type, index, cell) for (task_type, index), cell in sorted(self._cells.items())]


def _band(task_type: str, index: int, cell: _Cell) -> Band:
    took = sorted(cell.took)
    return Band(
        task_type,
        NAMES[index],
        cell.calls,
        cell.ms // cell.calls,
        _percentile(took, P50),
        _percentile(took, P99),
        cell.output // cell.calls,
        cell.cost // cell.priced if cell.priced else None,
    )


def _percentile(ordered: list[int], percent: int) -> int:
    """The smallest value that at least so many percent do not exceed."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]
