"""A request that is too long for one write: the same bytes in the same order, so many a turn, at the target's pace."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_upstream_end import SIZED
from wire import Far

from swarmgate.http1.cork import Cork
from swarmgate.http1.upload import MOST_A_TURN, PIECE_BYTES

HEAD = b"POST / HTTP/1.1\r\n\r\n"
LONG = bytes(range(256)) * 1024 * 32  # 8 MiB
TURN_BYTES = MOST_A_TURN * PIECE_BYTES


class Slow(Far):
    """One connection whose turns the test ends."""

    def __init__(self):
        super().__init__()
        self.later = []
        self.sweep.cork = Cork(self.soon)

    def soon(self, act):
        self.later.append(act)

    def turn(self):
        later, self.later = self.later, []
        for act in later:
            act()

    def send(self, *rest):
        assert self.end.send(self.owner, b"POST", HEAD, read_ms=1_000, rest=[memoryview(piece) for piece in rest])


def test_a_turn_writes_so_much_and_no_more():
    far = Slow()
    far.send(LONG[:100], LONG)
    sent = HEAD + LONG[:100] + LONG
    while far.transport.written != sent:
        assert not far.end.is_delivered()
        before = len(far.transport.written)
        assert far.later
        far.turn()
        assert 0 < len(far.transport.written) - before <= TURN_BYTES
    far.turn()
    far.receive(SIZED)
    assert [event[0] for event in far.events] == ["head", "free", "end"]


def test_a_target_that_reads_slowly_is_waited_for():
    far = Slow()
    far.send(LONG)
    for _ in range(3):
        far.end.pause_writing()
        before = len(far.transport.written)
        far.turn()
        assert len(far.transport.written) == before
        far.pass_ms(900)  # it reads, if slowly: that is no silence
        far.end.resume_writing()
        assert before < len(far.transport.written) <= before + TURN_BYTES
    while far.later:
        far.turn()
    assert far.transport.written == HEAD + LONG
    far.pass_ms(1_001)
    assert far.events[-1][0] == "lost"


@pytest.mark.parametrize("end", ["answered", "abandoned", "lost"])
def test_an_exchange_that_ends_before_its_request_leaves_no_connection_behind(end):
    far = Slow()
    far.send(LONG)
    if end == "answered":
        far.receive(SIZED)
    elif end == "abandoned":
        far.end.abandon()
    else:
        far.end.connection_lost(None)
        far.transport.closed = True
    before = far.transport.written
    while far.later:
        far.turn()
    assert far.transport.written == before
    assert far.transport.closed
    assert ("free",) not in far.events


@given(st.lists(st.integers(0, 3 * PIECE_BYTES), max_size=4))
def test_any_pieces_are_the_same_bytes(sizes):
    far = Slow()
    far.send(*[LONG[:size] for size in sizes])
    while far.later:
        far.turn()
    assert far.transport.written == HEAD + b"".join(LONG[:size] for size in sizes)
    far.receive(SIZED)
    assert ("free",) in far.events


def test_a_connection_whose_target_answered_before_it_took_all_of_the_request_is_used_no_more():
    far = Slow()
    assert far.end.send(far.owner, b"POST", HEAD, complete=False)
    far.end.send_more(LONG, complete=True)
    far.turn()
    far.end.pause_writing()
    far.receive(SIZED)
    assert far.transport.closed
    assert far.events[-1][0] == "end"
    assert ("free",) not in far.events
