"""What waits for the server is bounded, in order, and never half a batch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.commands import Release
from swarmgate.stores.valkey.flight import MOST_BATCHES, MOST_KEPT, Query, Queue
from swarmgate.stores.valkey.wire import MOST_OPERATIONS, BadOperation


def release(number):
    return Release(f"l{number}", ("a",))


def everything(queue):
    while (flight := queue.pop(9.0)) is not None:
        assert 0 < len(flight.batch) == len(flight.asked) <= MOST_OPERATIONS
        yield from (asked.operation.lease for asked in flight.asked)


@given(st.integers(0, 300))
def test_operations_leave_in_the_order_they_came(count):
    queue = Queue()
    for number in range(count):
        assert queue.add(Query(release(number), 0.0))
    assert list(everything(queue)) == [f"l{number}" for number in range(count)]


def test_too_many_are_not_taken():
    queue = Queue()
    most = MOST_BATCHES * MOST_OPERATIONS
    taken = [queue.add(Query(release(number), 0.0)) for number in range(most + 5)]
    assert taken == [True] * most + [False] * 5
    assert len(list(queue.drain())) == most
    assert queue.pop(9.0) is None


@given(st.lists(st.booleans(), max_size=200))
def test_who_waits_is_counted(adds):
    queue, waiting = Queue(), 0
    for number, is_add in enumerate(adds):
        if is_add:
            waiting += queue.add(Query(release(number), 0.0))
        elif (flight := queue.pop(9.0)) is not None:
            waiting -= len(flight.asked)
        assert queue.waiting == waiting
    assert len(list(queue.drain())) == waiting
    assert queue.waiting == 0


def test_what_is_kept_is_bounded_and_in_order():
    queue = Queue()
    for number in range(MOST_KEPT + 3):
        queue.keep(release(number))
    assert list(everything(queue)) == [f"l{number}" for number in range(3, MOST_KEPT + 3)]
    assert queue.dropped == 3


def test_what_is_kept_waits_while_others_are_on_their_way():
    queue = Queue()
    queue.keep(release("kept"))
    queue.add(Query(release("new"), 1.0))
    assert [asked.operation.lease for asked in queue.pop(2.0).asked] == ["lnew"]
    kept = queue.pop(3.0)
    assert [asked.operation.lease for asked in kept.asked] == ["lkept"]
    assert kept.since_s == 3.0


def test_a_flight_waits_since_its_oldest():
    queue = Queue()
    for since_s in (5.0, 3.0, 4.0):
        queue.add(Query(release(1), since_s))
    assert queue.pop(9.0).since_s == 3.0


def test_what_cannot_cross_the_wire_is_refused_at_once():
    queue = Queue()
    with pytest.raises(BadOperation):
        queue.keep(Release("", ()))
    with pytest.raises(BadOperation):
        queue.add(Query(Release("", ()), 0.0))
    assert list(everything(queue)) == []
