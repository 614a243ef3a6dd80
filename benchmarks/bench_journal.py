"""
What evidence costs: us per call on the loop of the data process, rows per second into the ledger, bytes per call.

`python benchmarks/bench_journal.py`: a few seconds, in a temporary folder (TMPDIR names another disk).
"""

import argparse
import asyncio
import gc
import json
import tempfile
import time
from pathlib import Path

from swarmgate.control.importer import Importer
from swarmgate.core.commands import Answer, End, Intent, Note
from swarmgate.core.keys import KeyRing, QuotaScope
from swarmgate.core.outcome import Signal, classify
from swarmgate.core.record import Call, Route, Rung, Step
from swarmgate.core.retry import RetryBudget
from swarmgate.core.waiting import Room
from swarmgate.engine.clock import LoopClock, unix_ms
from swarmgate.engine.memory_journal import MemoryJournal
from swarmgate.ports import AttemptFacts
from swarmgate.stores.journal.journal import FileJournal
from swarmgate.stores.journal.segments import FOLDER, listed

CALLS = 20_000
BATCH = 80
A_TURN = (1, 4, 16)
OK = classify(Signal(status=200))
STEP = Step("agent-0017", "task-3", "goal-9", "step-12", "", "hypotheses")


class Wire:
    def facts(self):
        return AttemptFacts(200, 812, 240, -1, 0, 2_048, 780)


def calls(clock, count):
    route = Route("key-13", ())
    rung = Rung("openai", "gpt-4o-mini", {"key-13": route}, KeyRing([QuotaScope("key-13", ("key-13",))]), RetryBudget())
    room, wire, made = Room(), Wire(), []
    for number in range(count):
        call = Call(f"req-ab12cd34ef-{number:x}", (rung,), room, rank=1, arrived_ms=clock.now_ms())
        call.step, call.wire, call.route, call.attempt = STEP, wire, route, 1
        call.sent_ms = call.arrived_ms
        made.append(call)
    return made


async def per_call_us(journal, made, a_turn):
    """A turn of the loop sees so many calls leave, and the next one sees them end."""
    intent, note, answer = Intent(1), Note(1, None, 240, OK), Answer(End.ANSWERED, None)
    best = float("inf")  # the fastest batch: on a busy machine the only one that says something about the code
    for at in range(0, len(made) - BATCH, BATCH):
        start = time.perf_counter_ns()
        for first in range(at, at + BATCH, a_turn):
            turn = made[first : first + a_turn]
            for call in turn:
                journal.intent(call, intent)
            for call in turn:
                journal.note(call, note)
                journal.end(call, answer)
        best = min(best, time.perf_counter_ns() - start)
        await asyncio.sleep(0)
    return best / BATCH / 1_000


async def on_the_loop(folder, number):
    """Figures by name; the state folder of the first journal."""
    loop = asyncio.get_running_loop()
    clock = LoopClock(loop)
    gc.collect()
    gc.freeze()
    made = calls(clock, number)
    found = {"in memory, us a call": await per_call_us(MemoryJournal(), made, 1)}
    for a_turn in A_TURN:
        journal = FileJournal(loop, clock, unix_ms, folder / str(a_turn) / FOLDER, print)
        found[f"{a_turn} calls a turn, us a call"] = await per_call_us(journal, made, a_turn)
        journal.close(0)
    return found, folder / str(A_TURN[0])


def into_the_ledger(state):
    size = sum(one.path.stat().st_size for one in listed(state / FOLDER))
    importer = Importer.opened(state)
    start = time.perf_counter()
    while not importer.step():
        pass
    took = time.perf_counter() - start
    importer.close()
    made = importer.rows // 2
    return {
        "imported, rows/s": importer.rows / took,
        "journal, bytes a call": size / made,
        "ledger, bytes a call": sum(path.stat().st_size for path in state.glob("ledger*")) / made,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the calls")
    parser.add_argument("--json", action="store_true", help="for programs")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found, state = asyncio.run(on_the_loop(Path(folder), CALLS // 10 if told.quick else CALLS))
        found |= into_the_ledger(state)
    if told.json:
        print(json.dumps(found))
        return
    for name, figure in found.items():
        print(f"{name:>32}: {figure:,.2f}" if figure < 100 else f"{name:>32}: {figure:,.0f}")


if __name__ == "__main__":
    main()
