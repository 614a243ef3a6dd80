"""
How a call ends or is sent away that is not on the wire, and what becomes of what a slow store grants it afterwards.

A deferral is not a failure: it says when to come back, and leaves no place behind in any line (design 2: P6). Every function
here is an entry of the table in core/call.py, or what several of them share.
"""

from typing import Final

from swarmgate.core.answers import Blocker, BlockKind, Denied, Granted
from swarmgate.core.commands import Answer, Command, End, Leave, Lose, Loss, Release
from swarmgate.core.events import OwnAnswer
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call, State

COME_BACK_MS: Final = 1_000
NEXT_NAME_MS: Final = 1_000  # one more name of a domain may be looked up in this time (gate/resolve.py)

Commands = tuple[Command, ...]
_new: Final = tuple.__new__  # what every call makes is made without the Python code of a named tuple's constructor
_ENDED, _DEFERRED = State.ENDED, End.DEFERRED  # members that every call meets, as in core/queueing.py


def leave(call: Call) -> Commands:
    """Give up every place in line, here and in the store."""
    lines, call.standing = call.standing, ()
    call.room.leave(call)
    return (Leave(lines),) if lines else ()


def leave_and_end(call: Call, how: End, reason: Reason) -> Commands:
    """End a call that is not on the wire; nobody waits behind a ticket that is gone."""
    if call.answer_lost and how in {End.FAILED, End.REFUSED}:
        how = End.UNKNOWN_EFFECT  # whatever was answered since (P7)
    return (*leave(call), *end(call, how, reason))


def end(call: Call, how: End, reason: Reason | None) -> Commands:
    """The one place where a call ends."""
    call.state = _ENDED
    call.alarm_ms = 0
    call.end = how
    call.reason = reason
    return (_new(Answer, (how, reason, call.denied if how is _DEFERRED else None)),)


def own_answer(call: Call, event: OwnAnswer, _now_ms: int) -> Commands:
    """It ends before it began; nothing was taken."""
    return end(call, *event)


def defer(call: Call, denied: Denied, reason: Reason) -> Commands:
    """Answer with when to come back; who may never return stands in no line: its place is its score."""
    call.denied = denied
    return (*leave(call), *end(call, End.DEFERRED, reason))


def crowded_out(call: Call, now_ms: int) -> Commands:
    """No connection is to be had because too many calls want one: that is a line, and no failure of the target."""
    denied = synthetic(call, now_ms, now_ms + COME_BACK_MS, call.rungs[call.rung].target, BlockKind.EVENT)
    return defer(call, denied, Reason.POLICY_SLOTS)


def names_used_up(call: Call, now_ms: int) -> Commands:
    """A name is looked up before a budget is asked, so names have a pace of their own (reliability EG-12)."""
    denied = synthetic(call, now_ms, now_ms + NEXT_NAME_MS, call.rungs[call.rung].target, BlockKind.TIME)
    return defer(call, denied, Reason.POLICY_NAMES)


def synthetic(call: Call, now_ms: int, at_ms: int, budget: str, kind: BlockKind) -> Denied:
    """A denial that no store gave: the call keeps the places it has."""
    blocker = Blocker(budget, kind, at_ms, at_ms, 0, 0, 0, 0)
    return Denied(now_ms, kind, at_ms, at_ms, at_ms, 0, (blocker,), call.score, call.standing, 0, 0)


def grant_after_end(call: Call, event: Granted, _now_ms: int) -> Commands:
    """The answer of a slow store to a call that is gone: nothing left, nothing is used."""
    unused(call)
    budgets = call.offered[event.chosen].budgets()
    call.room.freed(budgets)
    return (Release(call.lease, budgets), Lose(Loss.CALL_OVER))


def denial_after_end(call: Call, event: Denied, _now_ms: int) -> Commands:
    """The place that a slow store gave to a call that is gone is given up."""
    unused(call)
    call.room.freed(event.lines)
    return (Leave(event.lines),) if event.lines else ()


def unused(call: Call) -> None:
    """The key that was offered first was not taken: if it was to be probed, it still is."""
    ring = call.rungs[call.rung].ring
    if ring.unused(call.offered[0].key, call.asked_ms):
        call.room.keys_changed(ring)
