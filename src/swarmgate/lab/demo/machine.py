"""
Whether the machine had room for an arm: what others took of its processors meanwhile, and how late its timers were.

Waits and goodput are figures in time: who breaks them on a busy machine has proved nothing. Linux tells what was used
(proc_stat(5)); elsewhere only the timers speak.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

STAT = Path("/proc/stat")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
BUSY_SHARE = 0.1  # of all processors; less is what any system does beside its work
LATE_MS = 30
LATE_PERCENT = 90


class Used(NamedTuple):
    """Processor seconds since some beginning: of everybody, of ours with their ended children, and stolen by a hypervisor."""

    everybody_s: float
    ours_s: float
    stolen_s: float
    at_s: float


class Machine(NamedTuple):
    """
    An arm's machine: how many processors, how many of them others and the hypervisor took on average, how late timers were.

    `others` is None where the system does not tell. `late_ms` is the P90 of the latest timer of each half second.
    """

    cores: int
    others: float | None
    late_ms: int

    @property
    def is_busy(self) -> bool:
        """Whether other work disturbed the arm."""
        return self.others is not None and self.others > BUSY_SHARE * self.cores

    @property
    def is_slow(self) -> bool:
        """Whether the agents' own process could not keep up."""
        return self.late_ms > LATE_MS

    def told(self) -> str:
        """The figures in words."""
        late = f"agents' timers were {self.late_ms} ms late (P90)"
        if self.others is None:
            return f"{self.cores} processors; {late}"
        return f"other work took {self.others:.2f} of {self.cores} processors; {late}"

    def verdict(self) -> str:
        """Whether a promise that was broken says anything of the gate."""
        if self.is_busy:
            return f"This machine was too busy to tell: {self.told()}. Figures in time want a quiet one; limits hold on any."
        if self.is_slow:
            return (
                f"This machine was too slow for so many agents: {self.told()}. Try fewer: swarmgate demo --agents 500."
            )
        return f"This machine was quiet enough, so the gate broke it: {self.told()}."


def used_now(stat: Path = STAT) -> Used | None:
    """What was used until now; None where the system does not tell."""
    try:
        numbers = [int(word) for word in stat.read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    user, nice, system, _idle, _waiting, hard, soft, stolen = numbers
    ours = os.times()
    everybody_s = (user + nice + system + hard + soft) / TICKS_PER_S
    return Used(everybody_s, sum(ours[:4]), stolen / TICKS_PER_S, ours.elapsed)


def machine(before: Used | None, after: Used | None, late_ms: Sequence[int]) -> Machine:
    """What lay between two readings, all of our children having ended."""
    cores = os.cpu_count() or 1
    ordered = sorted(late_ms)
    late = ordered[len(ordered) * LATE_PERCENT // 100] if ordered else 0
    if before is None or after is None:
        return Machine(cores, None, late)
    span_s = max(0.01, after.at_s - before.at_s)
    others_s = (
        after.everybody_s - before.everybody_s - (after.ours_s - before.ours_s) + after.stolen_s - before.stolen_s
    )
    return Machine(cores, max(0.0, others_s / span_s), late)
