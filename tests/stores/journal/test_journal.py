"""From what happens to a call to what stands in the journal, and that it stands there before anything leaves."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from disk import Desk, Wire, everything

from life import route, rung
from swarmgate.core.answers import Blocker, BlockKind, Denied
from swarmgate.core.commands import Answer, End, Lose, Loss, Note
from swarmgate.core.effect import Effect
from swarmgate.core.outcome import Ending, Signal, classify
from swarmgate.core.reasons import Reason
from swarmgate.stores.journal import rows


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


def noted(desk):
    """What stands there after the boot, but for what a first attempt takes from, as listeners hear it."""
    found = [row for row in everything(desk.folder)[0][1:] if not isinstance(row, rows.Way)]
    intents = {(row.call, row.attempt): row for row in found if isinstance(row, rows.Intent)}
    return [rows.noted(row, intents[row.call, row.attempt]) if isinstance(row, rows.Done) else row for row in found]


def test_the_first_attempt_of_a_way_says_what_it_takes_from(desk):
    for _ in range(2):
        desk.leaves(
            desk.call(
                "c1",
                rungs=(rung("t", route("k1", metered=("t: tokens",), fixed=(("t: 5", 1, 0), ("t: 5:way", 0, 1)))),),
            )
        )
    ways = [row for row in everything(desk.folder)[0] if isinstance(row, rows.Way)]
    assert {(way.target, way.key, way.budgets) for way in ways} == {("t", "k1", ("t: 5", "t: tokens"))}
    same = desk.call("c2")
    for _ in range(3):
        desk.leaves(same)
    assert len([row for row in everything(desk.folder)[0] if isinstance(row, rows.Way)]) == len(ways) + 1


def test_an_answered_call_is_two_rows(desk):
    call = desk.call(
        "c1",
        trace="t" * 32,
        client_request_id="own-1",
        team="blue",
        wire=Wire(status=200, prompt_tokens=9, output_tokens=3, sent_bytes=7),
    )
    desk.loop.ms += 40
    desk.leaves(call)
    desk.loop.ms += 400
    desk.answered(call)
    intent, note = noted(desk)
    assert (intent.agent, intent.goal, intent.step, intent.task_type) == ("a17", "g1", "s1", "hypotheses")
    assert (intent.target, intent.key, intent.team, intent.trace) == ("t", call.route.key, "blue", "t" * 32)
    assert intent.client_request_id == note.client_request_id == "own-1"
    assert (note.kind, note.end, note.status, note.sent, note.used) == ("ok", "answered", 200, True, 3)
    assert (note.queue_ms, note.took_ms, note.content_ms) == (40, 400, 400)
    assert (note.prompt_tokens, note.output_tokens, note.cached_tokens, note.sent_bytes) == (9, 3, -1, 7)
    assert (note.target, note.model, note.key) == (intent.target, intent.model, intent.key)
    assert (note.priority, note.task_type, note.team) == (intent.priority, intent.task_type, intent.team)


def test_a_note_whose_intent_was_not_recorded_says_what_it_can(desk):
    call = desk.call("c1", wire=Wire(status=200, prompt_tokens=9, output_tokens=3, content_ms=desk.loop.ms + 5))
    desk.leaves(call)
    desk.answered(call)
    done = everything(desk.folder)[0][-1]
    alone = rows.noted(done, None)
    assert (alone.call, alone.kind, alone.end, alone.output_tokens) == ("c1", "ok", "answered", 3)
    assert (alone.target, alone.key, alone.took_ms, alone.content_ms) == ("", "", 0, -1)


def test_llm_gateways_44_every_row_is_on_file_at_once(desk):
    call = desk.call("c1")
    desk.leaves(call)
    assert [type(row).__name__ for row in noted(desk)] == ["Intent"]
    desk.answered(call)
    assert [type(row).__name__ for row in noted(desk)] == ["Intent", "Note"]
    desk.journal.lost(call, Lose(Loss.TOO_OLD))
    assert [row.seq for row in noted(desk)] == [noted(desk)[0].seq + number for number in range(3)]


def test_an_attempt_after_which_the_call_goes_on(desk):
    call = desk.call("c1")
    desk.leaves(call)
    limited = classify(Signal(status=429))
    call.wire._facts = call.wire._facts._replace(status=429)
    desk.journal.note(call, Note(1, Reason.TARGET_RATE, 0, limited))
    call.route, call.wire = None, Wire()  # the core has moved on
    desk.leaves(call)
    desk.answered(call)
    first, second, third, fourth = noted(desk)
    assert [row.attempt for row in (first, second, third, fourth)] == [1, 1, 2, 2]
    assert (second.kind, second.reason, second.status, second.end, second.out_ms) == (
        "rate",
        "target_rate",
        429,
        "",
        60_000,
    )
    assert second.key == first.key
    assert fourth.end == "answered"


def test_a_key_that_is_dead_is_out_until_a_person_acts(desk):
    call = desk.call("c1")
    desk.leaves(call)
    desk.journal.note(call, Note(1, Reason.TARGET_NO_MONEY, 0, classify(Signal(status=402))))
    assert noted(desk)[1].out_ms == -1


def test_a_deferral_says_what_blocked_and_when_to_come_back_by_our_clock(desk):
    call = desk.call("c1")
    store_ms = 5_000  # the store's clock is its own
    blocker = Blocker("up: 4 per 60s", BlockKind.TIME, 0, 0, 0, 4, 60_000, 3)
    denied = Denied(store_ms, BlockKind.TIME, store_ms + 700, store_ms + 900, 0, 0, (blocker,), 0, (), 2, 5)
    desk.journal.end(call, Answer(End.DEFERRED, Reason.POLICY_RATE, denied))
    (end,) = noted(desk)
    assert (end.end, end.reason, end.attempts, end.agent) == ("deferred", "policy_rate", 0, "a17")
    assert (end.not_before_ms - desk.loop.ms, end.certain_ms - desk.loop.ms) == (700, 900)
    assert end.blocked == (rows.Blocked("up: 4 per 60s", "time", 3, 4, 60_000, 0),)
    assert (end.position, end.depth) == (2, 5)


def test_no_connection_is_no_attempt(desk):
    call = desk.call("c1")
    outcome = classify(Signal(ending=Ending.CONNECT_FAILED))
    desk.journal.note(call, Note(0, Reason.TARGET_UNREACHABLE, 0, outcome, sent=False, rung=0))
    desk.journal.end(call, Answer(End.DEAD_LETTERED, Reason.TARGET_UNREACHABLE))
    none, end = noted(desk)
    assert (none.target, none.kind, none.reason) == ("t", "connect_failed", "target_unreachable")
    assert (end.end, end.attempts) == ("dead_lettered", 0)


def test_every_intent_has_its_note_even_if_the_gate_gives_the_call_up(desk):
    call = desk.call("c1")
    desk.leaves(call)
    desk.journal.end(call, Answer(End.FAILED, Reason.GATE_STOPPING))
    _, note = noted(desk)
    assert (note.kind, note.end, note.end_reason) == ("given_up", "failed", "gate_stopping")


def test_notes_of_two_calls_in_one_turn(desk):
    one, two = desk.call("c1"), desk.call("c2")
    desk.leaves(one)
    desk.leaves(two)
    desk.journal.note(one, Note(1, None, 0, None))
    desk.journal.end(two, Answer(End.CANCELLED, Reason.CALLER_LEFT))
    desk.journal.end(one, Answer(End.CANCELLED, Reason.CALLER_LEFT))
    rest = noted(desk)[2:]
    assert [(type(row).__name__, row.call, row.end) for row in rest] == [
        ("Note", "c1", ""),
        ("Note", "c2", "cancelled"),
        ("End", "c1", "cancelled"),
    ]


def test_lost_tokens_and_steps_of_the_clock(desk):
    desk.journal.lost(desk.call("c1"), Lose(Loss.TOO_OLD))
    desk.loop.wall_step_ms = 7_000
    desk.loop.second()
    desk.loop.second()
    lost, step = noted(desk)
    assert (lost.call, lost.reason) == ("c1", "too_old")
    assert step.step_ms == 7_000


def test_only_a_write_that_may_happen_once_waits_for_the_disk(desk, monkeypatch):
    syncs = []
    monkeypatch.setattr(os, "fsync", syncs.append)
    desk.leaves(desk.call("read"))
    desk.leaves(desk.call("write", effect=Effect.WRITE))
    assert not syncs
    desk.leaves(desk.call("once", effect=Effect.WRITE, keyed=True))
    numbered = desk.call("numbered", effect=Effect.WRITE)
    numbered.step = numbered.step._replace(operation="4")
    desk.leaves(numbered)
    assert [syncs.count(fd) for fd in dict.fromkeys(syncs)] == [2, 1]  # the file, and once the folder with its name


def test_a_clean_stop_says_so(desk):
    desk.leaves(desk.call("c1"))
    desk.journal.close(1)
    found, bad = everything(desk.folder)
    assert isinstance(found[0], rows.Boot)
    assert (found[-1].run, found[-1].left, bad) == (found[0].run, 1, 0)


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
sys.path[:0] = {paths!r}
from disk import Wire
from life import rung
from swarmgate.core.commands import Intent
from swarmgate.core.record import Call
from swarmgate.core.waiting import Room
from swarmgate.engine.clock import LoopClock
from swarmgate.stores.journal.journal import FileJournal
from swarmgate.stores.journal.writer import Writer

async def main():
    loop = asyncio.get_running_loop()
    clock = LoopClock(loop)
    journal = FileJournal(loop, clock, clock.now_ms, Writer(Path(sys.argv[1]), clock.now_ms(), print))
    for number in range(3):
        call = Call(f"c{{number}}", (rung(),), Room(), rank=1, arrived_ms=1)
        call.wire, call.route, call.attempt = Wire(), next(iter(call.rungs[0].routes.values())), 1
        journal.intent(call, Intent(1))
    os.kill(os.getpid(), signal.SIGKILL)  # what follows an intent in the same turn is the send

asyncio.run(main())
"""


def test_a_gate_that_is_killed_between_intent_and_send_has_noted_the_intent(tmp_path):
    here = Path(__file__).parent
    script = KILLED.format(paths=[str(here), str(here.parents[1])])
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False, capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    found, bad = everything(tmp_path)
    assert [type(row).__name__ for row in found] == ["Boot", *["Way", "Intent"] * 3]
    assert bad == 0
