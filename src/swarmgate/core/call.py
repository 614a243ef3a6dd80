"""
The life of a call as one table: state x event -> what is done and where it may lead.

`step` is the only door: it looks the pair up, lets the entry change the record, and returns commands for the pump.
A pair that is not in the table cannot happen; if it does, `BadTransition` says which. The diagram in the docs is
drawn from `TABLE` (`python -m swarmgate.core.call`). Entries live in core/queueing.py, core/running.py and
core/leaving.py.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from swarmgate.core import leaving, queueing, running
from swarmgate.core.answers import Denied, Granted
from swarmgate.core.commands import ABORT, Command, End
from swarmgate.core.events import (
    Arrived,
    ClientLeft,
    Content,
    DeadlinePassed,
    Delivered,
    Ended,
    Event,
    GivenUp,
    Lost,
    OwnAnswer,
    Progress,
    Ready,
    StoreLost,
    Woken,
)
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call, State

Act = Callable[[Call, Any, int], tuple[Command, ...]]


class BadTransition(Exception):
    """An event that cannot happen in the call's state, or an entry that left its declared states: a bug of the gate."""


class Entry(NamedTuple):
    """What is done on one event in one state, and the states that may follow."""

    act: Act
    leads_to: frozenset[State]


def _ignore(_call: Call, _event: Event, _now_ms: int) -> tuple[Command, ...]:
    """Nothing: the event came too late to matter."""
    return ()


def _left_in_line(call: Call, _event: Event, _now_ms: int) -> tuple[Command, ...]:
    """The caller left while nothing is on the wire: out of every line at once."""
    return (ABORT, *leaving.leave_and_end(call, End.CANCELLED, Reason.CALLER_LEFT))


def _late_in_line(call: Call, _event: Event, _now_ms: int) -> tuple[Command, ...]:
    """The caller's time is over while nothing is on the wire."""
    return (ABORT, *leaving.leave_and_end(call, End.FAILED, Reason.CALLER_DEADLINE))


def _given_up_in_line(call: Call, event: GivenUp, _now_ms: int) -> tuple[Command, ...]:
    """The gate's own fault while nothing is on the wire."""
    return (ABORT, *leaving.leave_and_end(call, End.FAILED, event.reason))


def _to(*states: State) -> frozenset[State]:
    return frozenset(states)


S = State
_AFTER_FAILURE: Final = _to(S.CONNECTING, S.BACKOFF, S.ENDED)
_AFTER_ASKING: Final = _to(S.ASKING, S.CONNECTING, S.WAITING, S.ENDED)
_IN_LINE: dict[type, Entry] = {
    ClientLeft: Entry(_left_in_line, _to(S.ENDED)),
    DeadlinePassed: Entry(_late_in_line, _to(S.ENDED)),
    GivenUp: Entry(_given_up_in_line, _to(S.ENDED)),
}
_ON_THE_WIRE: dict[type, Entry] = {
    ClientLeft: Entry(running.left, _to(S.ENDED)),
    DeadlinePassed: Entry(running.too_late, _to(S.ENDED)),
    GivenUp: Entry(running.given_up, _to(S.ENDED)),
}

TABLE: dict[State, dict[type, Entry]] = {
    S.NEW: {
        Arrived: Entry(queueing.arrive, _to(S.CONNECTING, S.ENDED)),
        OwnAnswer: Entry(leaving.own_answer, _to(S.ENDED)),
    },
    S.CONNECTING: {
        **_IN_LINE,
        Ready: Entry(queueing.ask, _AFTER_ASKING),
        Lost: Entry(running.unconnected, _AFTER_FAILURE),
        Woken: Entry(queueing.unserved, _to(S.CONNECTING, S.ENDED)),
    },
    S.ASKING: {
        **_IN_LINE,
        Granted: Entry(queueing.granted, _AFTER_ASKING | {S.SENDING}),
        Denied: Entry(queueing.denied, _AFTER_ASKING),
        StoreLost: Entry(queueing.store_lost, _to(S.WAITING, S.ENDED)),
        Lost: Entry(_ignore, _to(S.ASKING)),  # sending will find out
        Woken: Entry(_ignore, _to(S.ASKING)),
    },
    S.WAITING: {**_IN_LINE, Woken: Entry(queueing.connect, _to(S.CONNECTING))},
    S.BACKOFF: {**_IN_LINE, Woken: Entry(queueing.resume, _to(S.BACKOFF, S.CONNECTING))},
    S.SENDING: {
        **_ON_THE_WIRE,
        Content: Entry(running.content, _to(S.RELAYING)),
        Delivered: Entry(running.delivered, _to(S.SENDING)),
        Progress: Entry(running.uploading, _to(S.SENDING)),
        Ended: Entry(running.ended, _AFTER_FAILURE),
        Lost: Entry(running.lost, _AFTER_FAILURE),
        Woken: Entry(running.slow, _AFTER_FAILURE | {S.SENDING}),
    },
    S.RELAYING: {
        **_ON_THE_WIRE,
        Progress: Entry(running.progress, _to(S.RELAYING)),
        Delivered: Entry(running.delivered, _to(S.RELAYING)),
        Ended: Entry(running.ended, _to(S.ENDED)),
        Lost: Entry(running.lost, _to(S.ENDED)),
        Woken: Entry(running.slow, _to(S.RELAYING, S.ENDED)),
    },
    S.ENDED: {
        Granted: Entry(leaving.grant_after_end, _to(S.ENDED)),
        Denied: Entry(leaving.denial_after_end, _to(S.ENDED)),
        **dict.fromkeys((Ready, Woken, Lost, Ended, Content, Progress, StoreLost), Entry(_ignore, _to(S.ENDED))),
        **dict.fromkeys((ClientLeft, DeadlinePassed, GivenUp, Delivered), Entry(_ignore, _to(S.ENDED))),
    },
}


def step(call: Call, event: Event, now_ms: int) -> tuple[Command, ...]:
    """The commands that follow from `event`; the record is changed. Errors: `BadTransition`."""
    entry = TABLE[call.state].get(type(event))
    if entry is None:
        raise BadTransition(f"{type(event).__name__} cannot happen to {call!r}")
    act, leads_to = entry
    commands = act(call, event, now_ms)
    if call.state not in leads_to:
        raise BadTransition(f"{type(event).__name__} led {call!r} out of the table")
    return commands


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    arrows = {
        f"    {state.value} --> {after.value}: {event.__name__}"
        for state, row in TABLE.items()
        for event, entry in row.items()
        for after in entry.leads_to
        if not (after is state and entry.act is _ignore)
    }
    return "\n".join(["stateDiagram-v2", "    [*] --> new", *sorted(arrows), "    ended --> [*]"])


if __name__ == "__main__":
    print(diagram())  # noqa: T201  the one module of the core that can be run, to draw the docs
