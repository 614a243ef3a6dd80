"""
The life of a call until its request leaves: connect, ask, wait for a turn, step down a rung.

A token is taken last, when a connection is ready, and is lost if it gets older than the route allows (design 2: P1).
A deferral is not a failure: it uses no retry and keeps its place (P6). Every function here is an entry of the table
in core/call.py, or what several of them share.
"""

from typing import Final

from swarmgate.core.answers import BlockKind, Denied, Granted
from swarmgate.core.book import LEASE_MS, STAY_MS, Demand, Take, first_score
from swarmgate.core.caps import ANY_TARGET
from swarmgate.core.commands import ABORT, CONNECT, PARK, SEND, End, Intent, Lose, Loss, Release
from swarmgate.core.denial import ASK_AGAIN_MS
from swarmgate.core.events import StoreLost
from swarmgate.core.leaving import (
    COME_BACK_MS,
    Commands,
    crowded_out,
    defer,
    end,
    leave,
    leave_and_end,
    synthetic,
    unused,
)
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call, Rung, State
from swarmgate.core.retry import RUNG_MS
from swarmgate.core.rungs import (
    Tried,
    bar,
    count_fit,
    is_broken,
    is_last,
    last_able,
    pass_over_broken,
    pass_over_rest,
    remember,
    sent_for,
    stand_on,
    step_to,
)

RENEW_MS: Final = 30_000
CANDIDATES: Final = 8  # keys offered in one take after a denial; with 3 of 20, budgets idled while P1 calls waited
ASK_STORE_AGAIN_MS: Final = 250
OLD_TOKENS: Final = 3  # lost one after the other; then the store is too slow to be asked at once again
DIAL_MS: Final = 6_000  # a dial ends by itself after 5 s; whoever has no connection by then waits for somebody else's
STORE: Final = "store"  # the name under which a store that is lost blocks

_new: Final = tuple.__new__  # what every call makes is made without the Python code of a named tuple's constructor
# Members that every call meets: an enumeration takes 0.1 us to look one up.
_NEW, _CONNECTING, _ASKING, _SENDING = State.NEW, State.CONNECTING, State.ASKING, State.SENDING

_WHY: Final = {
    BlockKind.TIME: Reason.POLICY_RATE,
    BlockKind.LINE: Reason.POLICY_LINE,
    BlockKind.EVENT: Reason.POLICY_SLOTS,
    BlockKind.NEVER: Reason.POLICY_LARGER_THAN_LIMIT,
}

# Why a rung above was left that is gone back to where none below can serve: for a wait, or by a word of its target.
_LEFT_FOR_LINE: Final = frozenset({*_WHY.values(), Reason.POLICY_KEYS_OUT, Reason.TARGET_BROKEN})
_LIMITED: Final = frozenset({Reason.TARGET_RATE, Reason.TARGET_DAILY, Reason.TARGET_CONCURRENCY})
_NOT_REPEATED: Final = frozenset({Reason.TARGET_KEY_REFUSED, Reason.TARGET_NO_MONEY, Reason.TARGET_TLS})


def connect(call: Call, _event: object, now_ms: int) -> Commands:
    """Have a connection to the rung's target; the token comes after it."""
    if call.state is not _NEW:
        call.room.wake(call)
    call.route = None
    call.alarm_ms = max(call.wait_until_ms, now_ms + DIAL_MS)
    if call.form:
        call.checked = call.rung > 0 and is_last(call, now_ms)
    call.state = _CONNECTING
    return (CONNECT,)


def arrive(call: Call, event: object, now_ms: int) -> Commands:
    """
    Stand on the first rung that may serve the call; the usual first one asks nothing.

    A prompt that is too large for all of them is for the first to refuse.
    """
    if call.least_tokens and not count_fit(call, 1):
        call.least_tokens = 0
    if (call.rungs[0].serves is None and not call.least_tokens) or step_to(call, 0):
        if len(call.rungs) > 1:
            pass_over_broken(call, now_ms)
        return connect(call, event, now_ms)
    return end(call, End.REFUSED, call.trail[-1].reason)


def unserved(call: Call, _event: object, now_ms: int) -> Commands:
    """No connection as long as the caller's patience lasted: all are in use, or too much is on its way."""
    if now_ms < call.alarm_ms:
        return ()
    return (ABORT, *crowded_out(call, now_ms))


def ask(call: Call, _event: object, now_ms: int) -> Commands:
    """Take from the budgets of the best keys, all or nothing."""
    if now_ms >= call.deadline_ms:
        return (PARK, *leave_and_end(call, End.FAILED, Reason.CALLER_DEADLINE))
    if len(call.rungs) > 1 and is_broken(call, now_ms):
        return (PARK, *next_rung(call, Reason.TARGET_BROKEN, now_ms))
    rung = call.rungs[call.rung]
    waits = now_ms < call.wait_until_ms and not call.crowded
    # One key is offered at first, since most calls are admitted at once; a call that was denied offers more.
    keys = rung.ring.candidates(now_ms, 1 if waits and call.denied is None else CANDIDATES)
    if not keys:
        return _no_key(call, now_ms)
    routes, caps = rung.routes, call.caps
    capped = None if caps is None else caps.get(rung.target) or caps[ANY_TARGET]
    alternatives: tuple[tuple[Demand, ...], ...]
    if len(keys) == 1:
        route = routes[keys[0]] if capped is None else routes[keys[0]].plus(capped)
        call.offered = (route,)
        alternatives = (route.demands(call.prompt, call.reserve, call.money),)
    else:
        call.offered = tuple([routes[key] if capped is None else routes[key].plus(capped) for key in keys])
        alternatives = tuple([route.demands(call.prompt, call.reserve, call.money) for route in call.offered])
    call.asked_ms = now_ms
    call.asked_turn = call.room.turn
    call.asks += 1
    call.lease = lease = f"{call.id}.{call.asks}"  # never used again: a late answer must not end another's
    call.state = _ASKING
    asked = call.ticket, lease, call.rank, call.score, alternatives, LEASE_MS, call.standing, waits, STAY_MS
    return (_new(Take, asked),)


def granted(call: Call, event: Granted, now_ms: int) -> Commands:
    """Send at once; a token that got old on its way is lost, and another one taken if there is time."""
    route = call.offered[event.chosen]
    if call.standing:
        call.room.leave(call)
        call.standing = ()
    if event.chosen:
        unused(call)
    if now_ms - call.asked_ms > route.fresh_ms or now_ms >= call.deadline_ms:
        return _too_old(call, event, now_ms)
    call.denied = None
    call.crowded = False
    call.route = route
    call.attempt += 1
    call.rung_tries += 1
    rung = call.rungs[call.rung]
    if call.rung_tries == 1:
        rung.retries.first_send(now_ms)
    if (call.checked or not call.streams) and call.times is not None:
        call.content_ms = call.times.patience_ms(rung.target, rung.model or call.model, call.size, call.output)
    call.reserved_left = call.reserve
    call.delivered = False
    call.sent_ms = now_ms
    call.queued_ms = now_ms - call.arrived_ms - (sent_for(call.trail) if call.trail else 0)
    call.alarm_ms = now_ms + min(call.content_ms, RENEW_MS)
    call.state = _SENDING
    return (_new(Intent, (call.attempt,)), SEND)


def denied(call: Call, event: Denied, now_ms: int) -> Commands:
    """Offer more keys if only one was, then wait for a turn while the caller's patience lasts, else defer."""
    unused(call)
    rung = call.rungs[call.rung]
    first = call.denied is None and event.kind is not BlockKind.LINE
    if first and len(call.offered) == 1 < len(rung.routes) and _key_blocks(rung, event) and rung.ring.ready(now_ms):
        call.denied, call.score, call.standing = event, event.score, event.lines
        return ask(call, event, now_ms)
    if event.kind is BlockKind.NEVER:
        return _never(call, event, now_ms)
    if _worth_a_rung(call, event, now_ms):
        call.score, call.standing = event.score, event.lines
        return (PARK, *next_rung(call, _WHY[event.kind], now_ms))
    if not call.crowded and call.room.crowded(call, event.lines):
        call.crowded = True
        call.room.leave(call)  # while its score is still that of its places
        call.denied, call.standing = event, event.lines
        call.score = first_score(call.rank)  # no place is kept for what there is no room for
        return ask(call, event, now_ms)
    return _wait(call, event, _why(event), now_ms)


def _key_blocks(rung: Rung, event: Denied) -> bool:
    """Whether another key may be free of what blocks."""
    return rung.own is None or any(blocker.budget in rung.own for blocker in event.blockers)


def _why(event: Denied) -> Reason:
    if event.kind is BlockKind.EVENT and any(not blocker.limit for blocker in event.blockers):
        return Reason.POLICY_PAUSED
    return _WHY[event.kind]


def store_lost(call: Call, event: StoreLost, now_ms: int) -> Commands:
    """A store that is closed without its server defers like an exhausted budget; a crowd asks again one after the other."""
    unused(call)
    again_ms = now_ms + ASK_STORE_AGAIN_MS + len(call.room.sleeping)
    return _wait(call, synthetic(call, now_ms, again_ms, STORE, BlockKind.EVENT), event.reason, now_ms)


def resume(call: Call, event: object, now_ms: int) -> Commands:
    """The backoff is over; nothing wakes a call earlier."""
    if now_ms < call.alarm_ms:
        return ()
    return next_rung(call, Reason.TARGET_BROKEN, now_ms) if is_broken(call, now_ms) else connect(call, event, now_ms)


def tried(call: Call, now_ms: int) -> None:
    """Count a try at this rung, be it a send or a connection that could not be had."""
    call.rung_tries += 1
    if call.rung_tries == 1:
        call.rungs[call.rung].retries.first_send(now_ms)


def next_rung(call: Call, passed_over: Reason | None, now_ms: int) -> Commands:
    """
    Step down: of the old rung nothing stays, no place in its lines either; only the age in line does.

    `passed_over` is why nothing was sent at the old rung; None if something was.
    """
    left = leave(call)
    if passed_over is not None:
        remember(call, Tried(call.rung, passed_over))
    step_to(call, call.rung + 1)
    pass_over_broken(call, now_ms)
    call.rung_tries = 0
    call.other_key_tried = False
    call.denied = None
    return (*left, *connect(call, None, now_ms))


def rungs_below(call: Call) -> int:
    """How many the call may still step down to: another target does not know what a write has done already (P7)."""
    return 0 if call.written else count_fit(call, call.rung + 1)


def has_next_rung(call: Call) -> bool:
    """Whether a call that would leave its rung may; where none below can serve it, each is passed over with its reason."""
    if rungs_below(call):
        return True
    if call.rung + 1 < len(call.rungs):
        ladder_ends(call)
    return False


def ladder_ends(call: Call) -> None:
    """No rung below is tried any more; those that cannot serve are told."""
    if not (call.written or call.committed):
        pass_over_rest(call)


def _too_old(call: Call, event: Granted, now_ms: int) -> Commands:
    unused(call)
    budgets = call.offered[event.chosen].budgets()
    call.room.freed(budgets)
    call.old_tokens += 1
    lost = (Release(call.lease, budgets), Lose(Loss.TOO_OLD))
    if call.old_tokens % OLD_TOKENS:
        return (*lost, *ask(call, event, now_ms))
    return (*lost, *store_lost(call, StoreLost(Reason.GATE_STORE_LOST), now_ms))


def _wait(call: Call, denied: Denied, reason: Reason, now_ms: int) -> Commands:
    call.denied = denied
    call.reason = reason
    if call.crowded:
        return (PARK, *_send_back(call, denied))
    call.score = denied.score
    call.standing = denied.lines
    if now_ms >= call.wait_until_ms:
        return (PARK, *defer(call, denied, reason))
    call.alarm_ms = 0
    call.state = State.WAITING
    due_ms = now_ms + max(1, denied.due_ms - denied.now_ms)  # the store's clock is not ours
    least_ms = 1 if denied.kind is BlockKind.TIME else ASK_AGAIN_MS
    ready_ms = max([blocker.at_ms for blocker in denied.blockers], default=denied.now_ms)
    first_ms = now_ms + max(least_ms, ready_ms - denied.now_ms)
    call.room.wait(call, min(due_ms, call.wait_until_ms), min(first_ms, call.wait_until_ms))
    return (PARK,)


def _send_back(call: Call, denied: Denied) -> Commands:
    """The agent's places are all taken: come back paced with everybody who was sent away, without a place."""
    left = leave(call)
    call.score = first_score(call.rank)
    call.denied = denied._replace(score=call.score, lines=())
    return (*left, *end(call, End.DEFERRED, Reason.POLICY_AGENT_BACKLOG))


def _never(call: Call, event: Denied, now_ms: int) -> Commands:
    call.denied = event
    bar(call, Reason.POLICY_LARGER_THAN_LIMIT)
    return (PARK, *_without_rung(call, End.REFUSED, Reason.POLICY_LARGER_THAN_LIMIT, now_ms))


def _without_rung(call: Call, how: End, reason: Reason, now_ms: int) -> Commands:
    """
    The rung can never serve the call: on to the next one, else on as if it were not there.

    A rung above that was left for its line takes the call back. One that failed has the last word, and without either the
    call ends as this rung says.
    """
    if has_next_rung(call):
        return next_rung(call, None, now_ms)
    last = last_able(call)
    if last is None:
        return leave_and_end(call, how, reason)
    left = leave(call)
    stand_on(call, last.rung)
    call.rung_tries = 0
    call.other_key_tried = False
    call.denied = None
    if last.reason in _LEFT_FOR_LINE:
        return (*left, *connect(call, None, now_ms))
    if last.reason in _LIMITED:
        back_ms = call.rungs[last.rung].ring.back_at_ms(now_ms) or now_ms + COME_BACK_MS
        denied = synthetic(call, now_ms, back_ms, call.rungs[last.rung].target, BlockKind.TIME)
        return (*left, *defer(call, denied, last.reason))
    how = End.FAILED if last.reason in _NOT_REPEATED else End.DEAD_LETTERED
    return (*left, *leave_and_end(call, how, last.reason))


def _worth_a_rung(call: Call, event: Denied, now_ms: int) -> bool:
    """Whether waiting here would last longer than a slow target, or than the caller waits, and another rung stands."""
    last_ms = min(call.wait_until_ms, now_ms + RUNG_MS)
    is_late = now_ms + event.not_before_ms - event.now_ms > last_ms or now_ms >= call.wait_until_ms
    return is_late and not call.crowded and has_next_rung(call)


def _no_key(call: Call, now_ms: int) -> Commands:
    ring = call.rungs[call.rung].ring
    back_ms = ring.back_at_ms(now_ms)
    if back_ms is None:  # only a person can bring a key back
        bar(call, ring.why(now_ms))
        return (PARK, *_without_rung(call, End.FAILED, Reason.POLICY_KEYS_OUT, now_ms))
    if back_ms - now_ms > RUNG_MS and has_next_rung(call):
        return (PARK, *next_rung(call, ring.why(now_ms), now_ms))
    call.room.keyless[call] = ring
    why = ring.why(now_ms)
    return _wait(call, synthetic(call, now_ms, back_ms, call.rungs[call.rung].target, BlockKind.TIME), why, now_ms)
