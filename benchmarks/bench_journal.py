"""
What evidence costs: us per call on the loop of the data process, rows per second into the ledger, bytes per call; and what
calls notice of an importer at 5,000 rows/s.

`python benchmarks/bench_journal.py`: a few seconds in a temporary folder (TMPDIR names another disk), and, where the tools of
gate_lab.py are, 500 calls a second over `--pairs` pairs of halves with and without an importer (pairs.py, beside_importer.py). Beside
what is added to the calls' P99 stands what no caller's clock disturbs: the gate's own processor time per call, and how long it
waited for a processor (/proc/PID/schedstat).
"""

import argparse
import asyncio
import gc
import json
import sys
import tempfile
import time
from pathlib import Path

import beside_importer as beside
import gate_lab as lab
from swarmgate.control.importer import Importer
from swarmgate.core.book import Book
from swarmgate.core.caps import ANY_TARGET
from swarmgate.core.commands import Answer, End, Intent, Note
from swarmgate.core.kernel import define
from swarmgate.core.keys import KeyRing, QuotaScope
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.outcome import Signal, classify
from swarmgate.core.record import Call, Route, Rung, Step
from swarmgate.core.retry import RetryBudget
from swarmgate.core.waiting import Room
from swarmgate.engine.clock import LoopClock, unix_ms
from swarmgate.engine.loops import new_event_loop
from swarmgate.engine.memory_journal import MemoryJournal
from swarmgate.ports import AttemptFacts
from swarmgate.stores.journal.journal import FileJournal
from swarmgate.stores.journal.segments import FOLDER, listed
from swarmgate.stores.journal.writer import Writer

CALLS = 20_000
BATCH = 80
ROUNDS = 5
APART_S = 1.0  # a busy neighbour of the processor does not last for all of them
PROMPT, RESERVE, BEYOND = 780, 240, 32
A_TURN = (1, 4, 16)
OK = classify(Signal(status=200))
STEP = Step("agent-0017", "task-3", "goal-9", "step-12", "", "hypotheses")


class Wire:
    def facts(self):
        return tuple.__new__(AttemptFacts, (200, PROMPT + BEYOND, RESERVE, -1, 0, 2_048, 780))


def calls(clock, count, caps=None):
    route = Route("key-13", ())
    rung = Rung("openai", "gpt-4o-mini", {"key-13": route}, KeyRing([QuotaScope("key-13", ("key-13",))]), RetryBudget())
    room, wire, made = Room(), Wire(), []
    for number in range(count):
        call = Call(f"req-ab12cd34ef-{number:x}", (rung,), room, rank=1, arrived_ms=clock.now_ms())
        call.step, call.wire, call.route, call.attempt, call.caps = STEP, wire, route, 1, caps
        call.sent_ms, call.end, call.prompt, call.reserve = call.arrived_ms, End.ANSWERED, PROMPT, RESERVE
        made.append(call)
    return made


def capped(journal):
    """Two counters of a calling agent, which stand in the journal's book; what its calls take from."""
    caps = Route("", (("agent 17: requests", 1, 0),), ("agent 17: tokens",))
    book = journal.book = Book(journal.clock.now_ms())
    for name in ("agent 17: requests", "agent 17: tokens"):
        define(book, name, Limits(BudgetKind.COUNTER, burst=10**9, window_ms=86_400_000, slices=24))
    return {ANY_TARGET: caps}


async def per_call_us(journal, made, a_turn, used=lambda _units: None):
    """
    A turn of the loop sees so many calls leave, and the next one sees them end; `used` hears what each takes, and what it
    used beyond that.
    """
    intent, note, answer = Intent(1), Note(1, None, RESERVE, OK), Answer(End.ANSWERED, None)
    best = float("inf")  # the fastest batch: on a busy machine the only one that says something about the code
    for at in range(0, len(made) - BATCH, BATCH):
        start = time.perf_counter_ns()
        for first in range(at, at + BATCH, a_turn):
            turn = made[first : first + a_turn]
            for call in turn:
                used(PROMPT + RESERVE)
                journal.intent(call, intent)
            for call in turn:
                used(BEYOND)
                journal.note(call, note)
                journal.end(call, answer)
        best = min(best, time.perf_counter_ns() - start)
        await asyncio.sleep(0)
    return best / BATCH / 1_000


async def on_the_loop(folder, number):
    """Figures by name; the state folder of the first journal. Each is the quickest of rounds that lie apart."""
    loop = asyncio.get_running_loop()
    clock = LoopClock(loop)
    made = calls(clock, number // ROUNDS)
    journals = [
        FileJournal(loop, clock, unix_ms, Writer(folder / name / FOLDER, clock.now_ms(), print))
        for name in (*map(str, A_TURN), "caps")
    ]
    caps = capped(journals[-1])
    requests, tokens = journals[-1].book.cells.values()

    def used(units):
        requests.level += units == PROMPT + RESERVE
        tokens.level += units

    under_caps = calls(clock, number // ROUNDS, caps)
    gc.collect()
    gc.freeze()
    found = {}
    for _ in range(ROUNDS):
        told = {"in memory, us a call": await per_call_us(MemoryJournal(), made, 1)}
        for a_turn, journal in zip(A_TURN, journals, strict=False):
            told[f"{a_turn} calls a turn, us a call"] = await per_call_us(journal, made, a_turn)
        told["under two caps, us a call"] = await per_call_us(journals[-1], under_caps, 1, used)
        found = {name: min(figure, found.get(name, figure)) for name, figure in told.items()}
        await asyncio.sleep(APART_S)
    for journal in journals:
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


def fill(folder, rows):
    """The state folder of a gate that noted so many rows."""

    async def write():
        loop = asyncio.get_running_loop()
        journal = FileJournal(loop, LoopClock(loop), unix_ms, Writer(folder / FOLDER, unix_ms(), print))
        await per_call_us(journal, calls(journal.clock, rows // 2 + BATCH), 1)
        journal.close(0)

    asyncio.run(write())
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the calls, eight pairs")
    parser.add_argument("--pairs", type=int, default=160, help="of halves of calls")
    parser.add_argument("--json", action="store_true", help="for programs")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            found, state = runner.run(on_the_loop(Path(folder), CALLS // 10 if told.quick else CALLS))
        found |= into_the_ledger(state)
        if absent := lab.missing():
            print(f"bench_journal: not beside calls, not here: {absent}", file=sys.stderr)
        else:
            pairs = 8 if told.quick else told.pairs
            fed = fill(Path(folder) / "fed", int(beside.ROWS_PER_S * (pairs * beside.HALF_S + 5)))
            found |= beside.beside_calls(fed, pairs)
    if told.json:
        print(json.dumps(found))
        return
    print(lab.listed(found))


if __name__ == "__main__":
    main()
