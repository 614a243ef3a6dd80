"""
The life of a call until its request leaves: connect, ask, wait for a turn, be deferred.

A token is taken last, when a connection is ready, and is lost if it gets older than the route allows (design 2: P1).
A deferral is not a failure: it uses no retry and keeps its place (P6). Every function here is an entry of the table
in core/call.py.
"""

from swarmgate.core.answers import Blocker, BlockKind, Denied, Granted
from swarmgate.core.book import Take, first_score
from swarmgate.core.commands import (
    CONNECT,
    PARK,
    SEND,
    Answer,
    Ask,
    Command,
    End,
    Intent,
    Leave,
    Release,
)
from swarmgate.core.events import StoreLost
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call, State

LEASE_MS = 60_000  # a reservation nobody settles or renews is charged after this
CANDIDATES = 3  # keys offered in one take
ASK_STORE_AGAIN_MS = 250

Commands = tuple[Command, ...]

_WHY = {
    BlockKind.TIME: Reason.POLICY_RATE,
    BlockKind.LINE: Reason.POLICY_LINE,
    BlockKind.EVENT: Reason.POLICY_SLOTS,
    BlockKind.NEVER: Reason.POLICY_LARGER_THAN_LIMIT,
}


def connect(call: Call, _event: object, _now_ms: int) -> Commands:
    """Have a connection to the rung's target; the token comes after it."""
    call.room.wake(call)
    call.state = State.CONNECTING
    return (CONNECT,)


def ask(call: Call, _event: object, now_ms: int) -> Commands:
    """Take from the budgets of the best keys, all or nothing."""
    rung = call.rungs[call.rung]
    # One key is offered at first, since most calls are admitted at once; a call that was denied offers more.
    keys = rung.ring.candidates(now_ms, 1 if call.denied is None else CANDIDATES)
    if not keys:
        return _no_key(call, now_ms)
    call.offered = tuple([rung.routes[key] for key in keys])
    call.asked_ms = now_ms
    call.state = State.ASKING
    return (
        Ask(
            Take(
                call.ticket,
                f"{call.id}.{call.attempt + 1}",
                call.rank,
                call.score,
                tuple([route.demands(call.prompt, call.reserve) for route in call.offered]),
                LEASE_MS,
                call.standing,
                waits=now_ms < call.wait_until_ms,
            )
        ),
    )


def granted(call: Call, event: Granted, now_ms: int) -> Commands:
    """Send at once; a token that got old on its way is lost and another one taken."""
    route = call.offered[event.chosen]
    call.route = route
    call.denied = None
    if call.standing:
        call.room.leave(call)
        call.standing = ()
    if now_ms - call.asked_ms > route.fresh_ms:
        return (Release(f"{call.id}.{call.attempt + 1}", route.budgets()), *ask(call, event, now_ms))
    call.attempt += 1
    call.rung_sends += 1
    if call.attempt == 1:
        call.rungs[call.rung].retries.first_send(now_ms)
    call.reserved_left = call.reserve
    call.sent_ms = now_ms
    call.alarm_ms = now_ms + call.content_ms
    call.state = State.SENDING
    return (Intent(call.attempt), SEND)


def denied(call: Call, event: Denied, now_ms: int) -> Commands:
    """Wait for a turn while the caller's patience lasts, else defer."""
    call.denied = event
    if event.kind is BlockKind.NEVER:
        if call.rung + 1 < len(call.rungs):
            call.rung += 1
            return (PARK, *connect(call, event, now_ms))
        return (PARK, *leave_and_end(call, End.REFUSED, Reason.POLICY_LARGER_THAN_LIMIT))
    call.standing = event.lines
    if call.room.crowded(call, event.lines):
        call.score = first_score(call.rank)  # no place is kept for what there was no room for
        return (PARK, *leave_and_end(call, End.DEFERRED, Reason.POLICY_AGENT_BACKLOG))
    call.score = event.score
    if now_ms >= call.wait_until_ms:
        return (PARK, *defer(call, event, now_ms))
    call.state = State.WAITING
    due_ms = now_ms + max(1, event.due_ms - event.now_ms)  # the store's clock is not ours
    call.room.wait(call, min(due_ms, call.wait_until_ms))
    return (PARK,)


def store_lost(call: Call, event: StoreLost, now_ms: int) -> Commands:
    """A store that is closed without its server defers like an exhausted budget."""
    again_ms = now_ms + ASK_STORE_AGAIN_MS
    blocker = Blocker(event.reason, BlockKind.EVENT, again_ms, again_ms, 0, 0, 0, 0)
    return denied(call, _synthetic(call, now_ms, again_ms, blocker), now_ms)


def defer(call: Call, _event: object, _now_ms: int) -> Commands:
    """Answer with when to come back; the ticket keeps its place for a while by itself."""
    reason = _WHY[call.denied.kind] if call.denied is not None else Reason.POLICY_KEYS_OUT
    call.room.leave(call)
    return end(call, End.DEFERRED, reason)


def leave_and_end(call: Call, how: End, reason: Reason) -> Commands:
    """End a call that stands in lines; nobody waits behind a ticket that is gone."""
    lines = call.standing
    call.room.leave(call)
    call.standing = ()
    finish = end(call, how, reason)
    return (Leave(lines), *finish) if lines else finish


def end(call: Call, how: End, reason: Reason | None) -> Commands:
    """The one place where a call ends."""
    call.state = State.ENDED
    call.alarm_ms = 0
    call.end = how
    call.reason = reason
    return (Answer(how, reason, call.denied if how is End.DEFERRED else None),)


def grant_after_end(call: Call, event: Granted, _now_ms: int) -> Commands:
    """The answer of a slow store to a call that is gone: nothing left, nothing is used."""
    return (Release(f"{call.id}.{call.attempt + 1}", call.offered[event.chosen].budgets()),)


def denial_after_end(_call: Call, event: Denied, _now_ms: int) -> Commands:
    """The place that a slow store gave to a call that is gone is given up."""
    return (Leave(event.lines),) if event.lines else ()


def _no_key(call: Call, now_ms: int) -> Commands:
    back_ms = call.rungs[call.rung].ring.back_at_ms(now_ms)
    if back_ms is None:  # only a person can bring a key back
        if call.rung + 1 < len(call.rungs):
            call.rung += 1
            return (PARK, *connect(call, None, now_ms))
        return (PARK, *leave_and_end(call, End.FAILED, Reason.POLICY_KEYS_OUT))
    blocker = Blocker("keys", BlockKind.TIME, back_ms, back_ms, 0, 0, 0, 0)
    return denied(call, _synthetic(call, now_ms, back_ms, blocker), now_ms)


def _synthetic(call: Call, now_ms: int, at_ms: int, blocker: Blocker) -> Denied:
    lines = call.standing
    return Denied(now_ms, blocker.kind, at_ms, at_ms, at_ms, 0, (blocker,), call.score, lines, 0, 0)
