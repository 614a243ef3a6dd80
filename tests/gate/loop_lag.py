"""
How late the gate's loop is, measured inside it: a timer every few ms, and by how much each came late.

`install` is called in the process of a gate before its command runs; what it saw is written when that process ends. A loop
that is blocked for long would miss many ticks and be asked only once; each missed tick counts as late as it was. Beside
the whole lateness stands the gate's own, without the time for which other processes had all cores (proc(5): schedstat).
"""

import asyncio
import atexit
import json
import os
import time
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path

from swarmgate.engine import loops

PERIOD_S = 0.005
SHARES = (0.5, 0.99, 0.999, 1.0)


class Lag:
    """Ticks by the second of the machine's clock in which they came, and by their lateness in tenths of a ms."""

    def __init__(self):
        self.whole, self.own = defaultdict(Counter), defaultdict(Counter)
        self._waits = None
        with suppress(OSError):
            self._waits = os.open("/proc/self/schedstat", os.O_RDONLY)

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_later(PERIOD_S, self._tick, loop, time.monotonic() + PERIOD_S, self._waited_s())

    def _tick(self, loop, due_s, waited_s):
        now_s, now_waited_s = time.monotonic(), self._waited_s()
        late_s = now_s - due_s
        for seen, behind_s in ((self.whole, late_s), (self.own, late_s - (now_waited_s - waited_s))):
            for missed in range(max(0, int(behind_s / PERIOD_S)) + 1):
                seen[int(now_s)][max(0, int((behind_s - missed * PERIOD_S) * 10_000))] += 1
        loop.call_later(PERIOD_S, self._tick, loop, now_s + PERIOD_S, now_waited_s)

    def _waited_s(self) -> float:
        """For how long this process could have run and had no core, since it began."""
        return 0.0 if self._waits is None else int(os.pread(self._waits, 128, 0).split()[1]) / 1e9

    def write(self, file: str) -> None:
        Path(file).write_text(json.dumps([self.whole, self.own]))


def install(file: str) -> None:
    """Watch the loop that this process will make; at its end what was seen stands in `file`."""
    lag, make = Lag(), loops.new_event_loop

    def watched() -> asyncio.AbstractEventLoop:
        loop = make()
        lag.begin(loop)
        return loop

    loops.new_event_loop = watched
    atexit.register(lag.write, file)


def read(file: Path, from_s: float, until_s: float) -> list[dict[float, float]]:
    """The lateness in ms, whole and own, that so large a share of the ticks in a stretch of time did not exceed."""
    found = []
    for seen in json.loads(file.read_text()):
        ticks = Counter()
        for second, steps in seen.items():
            if from_s <= int(second) < until_s:
                ticks.update({int(step): count for step, count in steps.items()})
        found.append({share: (at(ticks, share) + 1) / 10 for share in SHARES})
    return found


def at(ticks: Counter[int], share: float) -> int:
    """The value that so large a share did not exceed."""
    passed = 0
    for step in sorted(ticks):
        passed += ticks[step]
        if passed >= share * ticks.total():
            return step
    return 0
