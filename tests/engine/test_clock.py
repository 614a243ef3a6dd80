"""The clock of a gate: monotonic whatever the wall clock does, and one integer per turn of the loop."""

import asyncio
import time

import pytest

from records import a_call
from swarmgate.core.answers import Granted
from swarmgate.core.book import Take, first_score
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.engine.clock import LoopClock, unix_ms
from swarmgate.stores.memory.store import MemoryStore

BUCKET = Limits(BudgetKind.LEVEL, burst=5, quota=10, window_ms=1_000)
HOUR_S = 3_600


class Loop:
    """What a clock asks of a loop."""

    def __init__(self):
        self.now_s = 1_000.0

    def time(self):
        return self.now_s


def decisions(monkeypatch, step_s):
    """What a bucket admits in ten seconds, in the middle of which the wall clock steps."""
    loop, wall_s, answers = Loop(), [1_700_000_000.0], []
    monkeypatch.setattr(time, "time", lambda: wall_s[0])
    clock = LoopClock(loop)
    store = MemoryStore(clock, lambda _call, answer: answers.append(answer))
    store.define("a", BUCKET)
    for number in range(200):
        loop.now_s += 0.05
        wall_s[0] += 0.05 + step_s * (number == 100)
        store.take(
            a_call(), Take(f"t{number}", f"l{number}", 1, first_score(1), ((("a", 1, 0),),), 60_000, waits=False)
        )
    return answers, clock.now_ms() - unix_ms()


@pytest.mark.parametrize("step_s", [-HOUR_S, -1, 1, HOUR_S])
def test_rb_09_a_step_of_the_wall_clock_changes_no_decision(monkeypatch, step_s):
    usual, _ = decisions(monkeypatch, 0)
    answers, apart_ms = decisions(monkeypatch, step_s)
    assert answers == usual
    assert sum(isinstance(one, Granted) for one in usual) == pytest.approx(100, abs=1)
    assert apart_ms == pytest.approx(-step_s * 1_000, abs=2)


def test_it_is_read_once_where_the_loop_reads_its_own_once():
    async def act():
        clock = LoopClock(asyncio.get_running_loop())
        first = clock.now_ms()
        assert clock.read_ms == clock.now_ms() >= first

    asyncio.run(act())
