"""
What calls notice of an importer at 5,000 rows/s (bench_journal.py asks; pairs.py compares).

The importer has CPU 1 for itself; gate, load and stand-in share CPU 0, which 500 calls/s use to a third.
`python benchmarks/beside_importer.py STATE` is that importer.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import gate_lab as lab
from pairs import HALF_S, Side, compare
from swarmgate.control.importer import Importer, give_way
from swarmgate.control.watching import Watching
from swarmgate.stores.journal import reader

ROWS_PER_S = 5_000
LOOK_S = 0.4  # between two looks of the control process at its journal (control/process.py)
ROW_BYTES = 165


def feed(state):
    """What the control process does with its journal, at `ROWS_PER_S` as long as there is anything; the count stands in `fed`."""
    give_way()
    reader._CHUNK_BYTES = int(ROWS_PER_S * LOOK_S * ROW_BYTES)  # noqa: SLF001  what would have been written since the last look
    importer = Importer.opened(state)
    told = os.open(state / "fed", os.O_WRONLY | os.O_CREAT)
    with Path(os.devnull).open("w") as nowhere:
        importer.listeners.append(Watching(importer.price, nowhere).hear)
        while True:
            start_s = time.perf_counter()
            if importer.step():
                return
            os.pwrite(told, b"%012d" % importer.rows, 0)
            time.sleep(max(0.0, LOOK_S - (time.perf_counter() - start_s)))


class Feeder:
    """The importer as a process of its own, stopped until it is wanted."""

    def __init__(self, state):
        self._fed = state / "fed"
        command = ["taskset", "-c", "1", sys.executable, __file__, str(state)]
        self._process = subprocess.Popen(command)
        while not self.rows:
            time.sleep(0.05)
        self.pause()

    @property
    def rows(self):
        return int(self._fed.read_text() or 0) if self._fed.exists() else 0

    def pause(self):
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self._process.send_signal(signal.SIGCONT)

    def end(self):
        self._process.kill()
        self._process.wait()


class Half(Side):
    """The calls with or without the importer, and what the gate took for them."""

    def __init__(self, name, gate, pairs, feeder=None):
        super().__init__(name, gate.port, pairs)
        self._pid, self._feeder = gate.pid, feeder
        self.cpu_us = self.waited_us = self.rows = 0.0

    def began(self):
        ran_us, waited_us = spent_us(self._pid)
        self.cpu_us -= ran_us
        self.waited_us -= waited_us
        if self._feeder:
            self.rows -= self._feeder.rows
            self._feeder.go_on()

    def ended(self):
        ran_us, waited_us = spent_us(self._pid)
        self.cpu_us += ran_us
        self.waited_us += waited_us
        if self._feeder:
            self._feeder.pause()
            self.rows += self._feeder.rows


def spent_us(pid):
    """On a processor, and waiting for one."""
    ran, waited, _ = Path(f"/proc/{pid}/schedstat").read_text().split()
    return int(ran) / 1e3, int(waited) / 1e3


def beside_calls(state, pairs):
    """What calls notice of an importer of this state folder beside them; us."""
    lab.build()
    os.sched_setaffinity(0, {0})
    with lab.start_upstream(cpu=0) as upstream, lab.start_gate(upstream.port) as gate:
        feeder = Feeder(state)
        try:
            halves = Half("alone", gate, pairs), Half("importing", gate, pairs, feeder)
            found = {"beside calls, rows/s": 0.0} | compare(halves, pairs)
        finally:
            feeder.end()
    found["beside calls, rows/s"] = halves[1].rows / (pairs * HALF_S)
    for half in halves:
        found[f"gate's CPU, us a call, {half.name}"] = half.cpu_us / half.calls
        found[f"gate waited for a CPU, us a call, {half.name}"] = half.waited_us / half.calls
    return found


if __name__ == "__main__":
    feed(Path(sys.argv[1]))
