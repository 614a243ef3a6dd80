"""Deferrals as values: read from any shape, nothing hostile believed, and waited for exactly."""

import asyncio
import json

import httpx
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.sdk import Blocking, Deferred, current, deferral_of, patience, until_admitted, until_admitted_async

SAID = {
    "id": "req-1",
    "target": "up",
    "blocking": [
        {"budget": "up: 1 per 1s", "kind": "time", "revision": 3, "limit": 1, "window_ms": 1_000, "remaining": 0}
    ],
    "not_before_ms": 40,
    "certain_by_ms": 40,
    "retry_after_ms": 55,
    "reason": "policy_rate",
    "priority": "P1",
    "queue": {"position": 2, "depth": 5},
    "ticket": "seal.1.2.req-1",
    "alternatives": [],
}
IN_ERROR = {"error": {"message": "", "type": "deferred", "code": "policy_rate", "deferral": SAID}}
PROBLEM = {"type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "deferral": SAID}

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*SAID, "error", "deferral"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("said", [IN_ERROR, PROBLEM, {"type": "error", **IN_ERROR}])
@pytest.mark.parametrize("dress", [lambda said: said, json.dumps, lambda said: json.dumps(said).encode()])
def test_it_is_found_in_every_shape(said, dress):
    found = deferral_of(dress(said))
    assert (found.id, found.ticket, found.reason, found.target) == ("req-1", "seal.1.2.req-1", "policy_rate", "up")
    assert (found.not_before_ms, found.certain_by_ms, found.retry_after_ms) == (40, 40, 55)
    assert (found.position, found.depth, found.priority) == (2, 5, "P1")
    assert found.blocking == (Blocking("up: 1 per 1s", "time", 3, 1, 1_000, 0),)
    assert "up: 1 per 1s" in str(found)
    assert 0 < found.left_s <= 0.04


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_it_is_found_in_an_answer_and_in_an_sdks_error(library):
    answer = library.Response(429, json=IN_ERROR, request=library.Request("GET", "http://x/"))
    assert deferral_of(answer).id == "req-1"
    error = library.HTTPStatusError("429", request=answer.request, response=answer)
    assert deferral_of(error).id == "req-1"
    assert deferral_of(library.Response(200, json=IN_ERROR)) is None


@pytest.mark.parametrize(
    "what", [b"", b"[]", "no json", {"error": "x"}, {"error": {"deferral": 7}}, None, ValueError("x")]
)
def test_what_is_none_is_none(what):
    assert deferral_of(what) is None


@given(anything)
def test_nothing_hostile_breaks_the_reader(said):
    found = deferral_of({"deferral": said})
    assert isinstance(found, Deferred) == isinstance(said, dict)
    if found is not None:
        assert found.not_before_ms >= 0
        assert found.left_s >= 0


class Gate:
    """Defers so many times, and remembers with which ticket each call came."""

    def __init__(self, deferrals, error=None):
        self.deferrals = deferrals
        self.tickets = []
        self.error = error

    def __call__(self):
        self.tickets.append(current().ticket)
        if len(self.tickets) <= self.deferrals:
            raise Deferred(SAID | {"ticket": f"t{len(self.tickets)}"})
        if self.error is not None:
            raise self.error
        return "served"

    async def call(self):
        return self()


@pytest.fixture
def slept(monkeypatch):
    """How long it would have slept; no time passes."""
    naps = []

    async def nap(seconds):
        naps.append(seconds)

    monkeypatch.setattr(patience.time, "sleep", naps.append)
    monkeypatch.setattr(patience.asyncio, "sleep", nap)
    return naps


def both(gate, **bounds):
    """The same, called and awaited."""
    return (
        lambda: until_admitted(gate, **bounds),
        lambda: asyncio.run(until_admitted_async(gate.call, **bounds)),
    )


@pytest.mark.parametrize("kind", [0, 1])
def test_each_repeat_brings_the_newest_ticket_and_comes_when_told(kind, slept):
    gate = Gate(3)
    assert both(gate)[kind]() == "served"
    assert gate.tickets == ["", "t1", "t2", "t3"]
    assert len(slept) == 3
    assert all(patience.LEAST_S <= pause_s <= 0.041 for pause_s in slept)  # less what has passed since it was told


@pytest.mark.parametrize("kind", [0, 1])
def test_attempts_and_deadline_end_it_with_the_deferral(kind, slept):
    gate = Gate(9)
    with pytest.raises(Deferred, match="up: 1 per 1s"):
        both(gate, attempts=3)[kind]()
    assert len(gate.tickets) == 3
    assert len(slept) == 2
    late = Gate(9)
    with pytest.raises(Deferred):
        both(late, deadline_s=0.01)[kind]()
    assert len(late.tickets) == 1


@pytest.mark.parametrize("kind", [0, 1])
def test_what_is_no_deferral_comes_as_it_is(kind, slept):
    gate = Gate(1, ZeroDivisionError("own"))
    with pytest.raises(ZeroDivisionError, match="own"):
        both(gate)[kind]()
    assert len(gate.tickets) == 2
    assert len(slept) == 1


def test_no_attempt_at_all_is_a_mistake():
    with pytest.raises(ValueError, match="attempts"):
        until_admitted(lambda: None, attempts=0)
