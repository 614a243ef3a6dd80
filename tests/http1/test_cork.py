import asyncio
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.engine.loops import new_event_loop
from swarmgate.http1.cork import LONG_BYTES, MOST_HELD, Cork


class Wire:
    def __init__(self, log):
        self.log = log
        self.closing = False

    def write(self, data):
        self.log.append((self, data))

    def is_closing(self):
        return self.closing


class Turn:
    """Runs what was asked for when the test says that the turn is over."""

    def __init__(self):
        self.later = []

    def end(self):
        later, self.later = self.later, []
        for act in later:
            act()


@given(st.lists(st.tuples(st.integers(0, 3), st.binary(min_size=1, max_size=8)), max_size=30))
def test_what_was_written_in_a_turn_leaves_at_its_end_in_order(writes):
    log, turn = [], Turn()
    cork, wires = Cork(turn.later.append), [Wire(log) for _ in range(4)]
    for number, data in writes:
        cork.write(wires[number], data)
    assert log == []
    assert len(turn.later) == bool(writes)
    turn.end()
    assert log == [(wires[number], data) for number, data in writes]


def test_a_connection_that_closes_takes_nothing_more():
    log, turn = [], Turn()
    cork, gone, here = Cork(turn.later.append), Wire(log), Wire(log)
    cork.write(gone, b"a")
    cork.write(here, b"b")
    gone.closing = True
    turn.end()
    assert log == [(here, b"b")]


def test_much_leaves_at_once_and_so_does_what_was_before_it():
    log, turn = [], Turn()
    cork, wire = Cork(turn.later.append), Wire(log)
    for _ in range(MOST_HELD):
        cork.write(wire, b"much")
    assert len(log) == MOST_HELD
    cork.write(wire, b"next")
    assert len(log) == MOST_HELD
    turn.end()
    assert log[MOST_HELD:] == [(wire, b"next")]


def test_without_a_turn_nothing_is_held():
    log = []
    wire = Wire(log)
    Cork().write(wire, b"now")
    assert log == [(wire, b"now")]


@pytest.mark.parametrize("make", [new_event_loop, asyncio.SelectorEventLoop])
def test_the_turn_of_a_loop_ends_by_itself(make):
    log = []
    with contextlib.closing(make()) as loop:
        cork, wire = Cork(loop.call_soon), Wire(log)
        loop.call_soon(cork.write, wire, b"a")
        loop.call_soon(cork.write, wire, b"b")
        loop.call_soon(lambda: log.append("same turn"))
        loop.call_soon(loop.call_soon, loop.call_soon, loop.stop)
        loop.run_forever()
    assert log == ["same turn", (wire, b"a"), (wire, b"b")]


def test_what_is_long_leaves_at_once_with_what_was_before_it():
    """Who is full says so before the next read of whoever feeds it (reliability SE-05)."""
    log, turn = [], Turn()
    cork, wire = Cork(turn.later.append), Wire(log)
    for data in (b"a", bytes(LONG_BYTES + 1), b"b"):
        cork.write(wire, data)
    assert [len(data) for _, data in log] == [1, LONG_BYTES + 1]
    turn.end()
    assert log[-1] == (wire, b"b")
