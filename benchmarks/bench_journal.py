"""
What evidence costs: us per call on the loop of the data process, rows per second into the ledger, bytes per call.

`python benchmarks/bench_journal.py`: a few seconds, in a temporary folder (TMPDIR names another disk).
"""

import asyncio
import gc
import sys
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


def calls(clock):
    route = Route("key-13", ())
    rung = Rung("openai", "gpt-4o-mini", {"key-13": route}, KeyRing([QuotaScope("key-13", ("key-13",))]), RetryBudget())
    room, wire, made = Room(), Wire(), []
    for number in range(CALLS):
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


async def on_the_loop(folder):
    clock = LoopClock(asyncio.get_running_loop())
    gc.collect()
    gc.freeze()
    made = calls(clock)
    print(f"{'in memory':>24}: {await per_call_us(MemoryJournal(), made, 1):5.2f} us a call")
    for a_turn in A_TURN:
        state = folder / str(a_turn)
        journal = FileJournal(asyncio.get_running_loop(), clock, unix_ms, state / FOLDER, print)
        best = await per_call_us(journal, made, a_turn)
        print(f"{f'{a_turn} calls a turn':>24}: {best:5.2f} us a call")
        journal.close(0)
    return folder / str(A_TURN[0])


def into_the_ledger(state):
    size = sum(one.path.stat().st_size for one in listed(state / FOLDER))
    importer = Importer.opened(state)
    start = time.perf_counter()
    while not importer.step():
        pass
    took = time.perf_counter() - start
    importer.close()
    ledger = sum(path.stat().st_size for path in state.glob("ledger*"))
    made = importer.rows // 2
    print(f"{'imported':>24}: {importer.rows / took:,.0f} rows/s ({importer.rows:,} rows)")
    print(f"{'on disk':>24}: {size / made:,.0f} bytes of journal and {ledger / made:,.0f} of ledger a call")


def main():
    with tempfile.TemporaryDirectory() as folder:
        state = asyncio.run(on_the_loop(Path(folder)))
        into_the_ledger(state)


if __name__ == "__main__":
    sys.exit(main())
