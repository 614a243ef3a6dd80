"""
The life of a call from its request's first byte: content, usage, the end, and what follows a failure.

Whatever happens, the reservation is settled exactly once (design 2: P9) and the call has one end (P4). Failover only
before the first content reached the client; a write whose answer was lost is never repeated (P7).
"""

from typing import Final

from swarmgate.core.answers import BlockKind
from swarmgate.core.book import LEASE_MS, Used
from swarmgate.core.commands import ABORT, RELAY, End, Note, Release, Renew, Settle
from swarmgate.core.effect import Effect
from swarmgate.core.events import Content, Delivered, Ended, GivenUp, Lost, LostKind, Progress
from swarmgate.core.leaving import Commands, crowded_out, end, leave, leave_and_end, names_used_up, synthetic
from swarmgate.core.outcome import Ending, Kind, Outcome, Signal, classify
from swarmgate.core.queueing import RENEW_MS, connect, ladder_ends, next_rung, rungs_below, tried
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call, Route, State
from swarmgate.core.retry import LADDER_ENDS, MOST_RETRIES, RUNG_MS, Action, CallFacts, RetryDecision, decide
from swarmgate.core.rungs import UNSENT, Tried, is_broken, remember

IDLE_MS: Final = 30_000
_RELAY: Final = (RELAY,)
_new: Final = tuple.__new__  # what every call makes is made without the Python code of a named tuple's constructor
_OK, _ANSWERED = Kind.OK, End.ANSWERED  # as in core/queueing.py

_ENDINGS: Final = {
    LostKind.CONNECT: Ending.CONNECT_FAILED,
    LostKind.TLS: Ending.TLS_FAILED,
    LostKind.UNTRUSTED: Ending.UNTRUSTED,
    LostKind.UNNAMED: Ending.NO_SUCH_NAME,
    LostKind.CONNECT_TIMEOUT: Ending.CONNECT_TIMEOUT,
    LostKind.POOL_FULL: Ending.CONNECT_FAILED,
    LostKind.NAMES: Ending.CONNECT_FAILED,
    LostKind.DENIED: Ending.ADDRESS_DENIED,
    LostKind.STALE: Ending.LOST_BEFORE_BYTE,
    LostKind.RESET: Ending.LOST_BEFORE_BYTE,
    LostKind.FIRST_CONTENT: Ending.CONTENT_TIMEOUT,
    LostKind.IDLE: Ending.IDLE_TIMEOUT,
    LostKind.BROKEN: Ending.LOST_AFTER_BYTE,
}
_WHY: Final = {
    Kind.RATE: Reason.TARGET_RATE,
    Kind.DAILY: Reason.TARGET_DAILY,
    Kind.CONCURRENCY: Reason.TARGET_CONCURRENCY,
    Kind.TOO_LARGE: Reason.TARGET_REQUEST_TOO_LARGE,
    Kind.NO_MONEY: Reason.TARGET_NO_MONEY,
    Kind.KEY_REFUSED: Reason.TARGET_KEY_REFUSED,
    Kind.BAD_OUTPUT: Reason.TARGET_BAD_OUTPUT,
    Kind.CAPACITY: Reason.TARGET_CAPACITY,
    Kind.CONNECT_FAILED: Reason.TARGET_UNREACHABLE,
    Kind.CONNECT_TIMEOUT: Reason.TARGET_UNREACHABLE,
    Kind.TLS_FAILED: Reason.TARGET_TLS,
    Kind.UNTRUSTED: Reason.TARGET_TLS,
    Kind.NO_SUCH_NAME: Reason.TARGET_NO_SUCH_NAME,
    Kind.ADDRESS_DENIED: Reason.POLICY_ADDRESS,
    Kind.LOST_BEFORE_BYTE: Reason.TARGET_CUT,
    Kind.LOST_AFTER_BYTE: Reason.TARGET_CUT,
    Kind.CONTENT_TIMEOUT: Reason.TARGET_SLOW,
    Kind.IDLE_TIMEOUT: Reason.TARGET_SLOW,
}
_LIMITS: Final = frozenset({Kind.RATE, Kind.DAILY, Kind.CONCURRENCY})
_UNANSWERED: Final = frozenset(Kind(ending.value) for ending in _ENDINGS.values())


def content(call: Call, _event: Content, now_ms: int) -> Commands:
    """The first content is here: the client may see it, and slots that wait for the answer's beginning are free."""
    call.state = State.RELAYING
    call.committed = True
    call.alarm_ms = now_ms + IDLE_MS
    route = _route(call)
    slots = route.first_byte if call.delivered else route.first_byte + route.ways
    call.delivered = True
    ring = call.rungs[call.rung].ring
    if ring.begun(route.key, call.sent_ms, now_ms):
        call.room.keys_changed(ring)
    return (RELAY, *_free(call, slots))


def delivered(call: Call, _event: Delivered, _now_ms: int) -> Commands:
    """The request is no longer on its way: its place there is free."""
    if call.delivered:
        return ()
    call.delivered = True
    return _free(call, _route(call).ways)


def _free(call: Call, slots: tuple[str, ...]) -> Commands:
    if not slots:
        return ()
    call.room.freed(slots)
    return (Settle(call.lease, tuple([(name, 0, 0) for name in slots]), last=False),)


def uploading(call: Call, _event: Progress, now_ms: int) -> Commands:
    """The request itself still goes out: its answer may take as long to begin from now on as an answer may pause."""
    call.content_ms = max(call.content_ms, now_ms - call.sent_ms + IDLE_MS)
    return ()


def progress(call: Call, event: Progress, now_ms: int) -> Commands:
    """Settle what has arrived of a long answer, so that its reservation neither lapses nor hides use."""
    route = _route(call)
    call.alarm_ms = now_ms + IDLE_MS
    call.spent = max(call.spent, event.cost)  # content is sent once: it is of this attempt
    renew = Renew(call.lease, route.metered + route.outputs + route.whole + route.money, LEASE_MS)
    if not event.used:
        return (renew,)
    usage = tuple([(name, call.reserved_left, event.used) for name in route.metered + route.outputs])
    call.reserved_left = max(0, call.reserved_left - event.used)
    return (Settle(call.lease, usage, last=False), renew)


def ended(call: Call, event: Ended, now_ms: int) -> Commands:
    """The target's answer is whole: relay it, or follow what it means."""
    outcome, used, left, status, cost, beyond, output = event
    rung = call.rungs[call.rung]
    ring = rung.ring
    if call.route is not None:
        if ring.observe(call.route.key, outcome, call.sent_ms, now_ms):
            call.room.keys_changed(ring)
        if left is not None:
            ring.report(call.route.key, left, call.sent_ms, now_ms)
    settle = _settle(call, used, cost, beyond)
    if outcome.kind is _OK:
        if rung.breaker is not None and len(call.rungs) > 1:
            rung.breaker.observe(outcome, call.size, call.sent_ms, now_ms)
        if output >= 0 and (call.checked or not call.streams) and call.times is not None:
            each = -(-output // call.choices)
            call.times.seen(rung.target, rung.model or call.model, call.size, each, now_ms - call.sent_ms)
        note = _new(Note, (call.attempt, None, used, outcome, True, call.rung))
        relay = () if call.committed else _RELAY
        return (*relay, *settle, note, *end(call, _ANSWERED, None))
    return (*settle, *follow(call, outcome, now_ms, sent=True, used=used, status=status))


def lost(call: Call, event: Lost, now_ms: int) -> Commands:
    """The attempt died: what left is charged its estimate, what did not leave is released."""
    route = _route(call)
    outcome = classify(Signal(ending=_ENDINGS[event.kind]))
    observe(call, outcome, now_ms)
    if event.kind is LostKind.FIRST_CONTENT and (call.checked or not call.streams) and call.times is not None:
        rung = call.rungs[call.rung]
        call.times.cut(rung.target, rung.model or call.model, call.size, call.output, call.content_ms)
    if event.sent:
        settle = _settle(call, -1)
    else:
        settle = (Release(call.lease, route.budgets()),)
        call.room.freed(route.budgets())
    if event.kind is LostKind.STALE and not event.sent and call.retries < MOST_RETRIES:
        call.retries += 1  # a kept connection that the target closed says nothing about the target: again, at once
        return (
            *settle,
            Note(call.attempt, Reason.TARGET_CUT, 0, outcome, sent=False, rung=call.rung),
            *connect(call, event, now_ms),
        )
    return (*settle, *follow(call, outcome, now_ms, sent=event.sent, used=event.used))


def unconnected(call: Call, event: Lost, now_ms: int) -> Commands:
    """No connection: nothing was taken, nothing left."""
    if event.kind is LostKind.POOL_FULL:
        return crowded_out(call, now_ms)
    if event.kind is LostKind.NAMES:
        return names_used_up(call, now_ms)
    tried(call, now_ms)
    outcome = classify(Signal(ending=_ENDINGS[event.kind]))
    return follow(call, outcome, now_ms, sent=False, used=0)


def slow(call: Call, _event: object, now_ms: int) -> Commands:
    """An alarm rang while the request ran: a lease to keep, no first content in time, or content that stopped."""
    if now_ms < call.alarm_ms:
        return ()
    late_ms = call.sent_ms + call.content_ms
    if not call.committed and now_ms < late_ms:
        call.alarm_ms = min(late_ms, now_ms + RENEW_MS)
        return (Renew(call.lease, _route(call).budgets(), LEASE_MS),)
    kind = LostKind.IDLE if call.committed else LostKind.FIRST_CONTENT
    return (ABORT, *lost(call, Lost(kind, sent=True), now_ms))


def left(call: Call, _event: object, _now_ms: int) -> Commands:
    """The caller went away while its request ran: cancelled, charged its estimate."""
    note = Note(call.attempt, Reason.CALLER_LEFT, call.reserved_left, rung=call.rung)
    return (ABORT, *_settle(call, -1), note, *end(call, End.CANCELLED, Reason.CALLER_LEFT))


def too_late(call: Call, _event: object, now_ms: int) -> Commands:
    """The caller's time is over while its request ran; a write may have happened."""
    how = End.FAILED if call.effect is Effect.READ else End.UNKNOWN_EFFECT
    note = Note(call.attempt, Reason.CALLER_DEADLINE, call.reserved_left, rung=call.rung)
    remember(call, Tried(call.rung, Reason.CALLER_DEADLINE, _route(call).key, 0, now_ms - call.sent_ms))
    return (ABORT, *_settle(call, -1), note, *end(call, how, Reason.CALLER_DEADLINE))


def given_up(call: Call, event: GivenUp, now_ms: int) -> Commands:
    """The gate ends it while its request runs; a write may have happened."""
    how = End.FAILED if call.effect is Effect.READ else End.UNKNOWN_EFFECT
    note = Note(call.attempt, event.reason, call.reserved_left, rung=call.rung)
    remember(call, Tried(call.rung, event.reason, _route(call).key, 0, now_ms - call.sent_ms))
    return (ABORT, *_settle(call, -1), note, *end(call, how, event.reason))


def _route(call: Call) -> Route:
    assert call.route is not None
    return call.route


def _settle(call: Call, used: int, cost: int = -1, beyond: int = 0) -> Commands:
    """
    End the attempt's reservations; `beyond` of what was used is prompt.

    Unknown use and cost are charged as estimated, or what has flowed if that is more, and all of the prompt: nobody said that a
    cache held any.
    """
    route = call.route
    assert route is not None
    left = call.reserved_left
    spent = used
    if used < 0:
        spent, beyond = left + call.spared, call.spared
    slots = route.whole if call.committed else route.whole + route.first_byte
    if not call.delivered:
        slots += route.ways
    usage: list[Used] = []
    for name in route.metered:
        usage.append((name, left, spent))  # noqa: PERF401  a comprehension is one more call per answer
    for name in slots:
        usage.append((name, 0, 0))  # noqa: PERF401  see above
    for name in route.money:
        usage.append((name, call.money, max(call.money, call.spent) if cost < 0 else cost))  # noqa: PERF401  see above
    for name in route.outputs:
        usage.append((name, left, spent - beyond))  # noqa: PERF401  see above
    if beyond:
        usage += [(name, 0, beyond) for name in route.inputs]
    if not usage:
        return ()
    call.room.freed(route.metered + route.outputs + slots + route.money)
    return (_new(Settle, (call.lease, tuple(usage), True)),)


def observe(call: Call, outcome: Outcome, now_ms: int) -> None:
    """Let the key ring learn what its key's attempt came to."""
    ring = call.rungs[call.rung].ring
    if call.route is not None and ring.observe(call.route.key, outcome, call.sent_ms, now_ms):
        call.room.keys_changed(ring)


def follow(call: Call, outcome: Outcome, now_ms: int, *, sent: bool, used: int, status: int = 0) -> Commands:
    """What comes after a failure, as core/retry.py decides."""
    rung = call.rungs[call.rung]
    if sent and call.effect is Effect.WRITE:
        call.written = True
        call.answer_lost |= outcome.kind in _UNANSWERED
    if rung.breaker is not None and len(call.rungs) > 1:
        rung.breaker.observe(outcome, call.size, call.sent_ms if sent else now_ms, now_ms)
    facts = CallFacts(
        call.id,
        call.effect,
        call.deadline_ms,
        retries=call.retries,
        sends_on_rung=call.rung_tries,
        bytes_left=sent or call.written,
        honours_key=call.keyed and len(rung.routes) == 1,  # another account has not seen the first attempt
        content_sent=call.committed,
        other_key=rung.ring.ready(now_ms),
        tried_other_key=call.other_key_tried,
        rungs_below=rungs_below(call),
        budget_left=0 if is_broken(call, now_ms) else rung.retries.left(now_ms),
        listens_until_ms=call.listens_until_ms,
    )
    decision = decide(facts, outcome, now_ms)
    call.retries += decision.counts
    reason = _WHY.get(outcome.kind, Reason.TARGET_ERROR)
    key = call.route.key if call.route is not None else ""
    remember(call, Tried(call.rung, reason, key, status, now_ms - call.sent_ms if sent else UNSENT))
    if not facts.rungs_below and (decision.reason in LADDER_ENDS or decision.at_ms - now_ms > RUNG_MS):
        ladder_ends(call)
    note = Note(call.attempt, reason, used, outcome, sent, call.rung)
    return (note, *_act(call, outcome, decision, now_ms))


def _act(call: Call, outcome: Outcome, decision: RetryDecision, now_ms: int) -> Commands:
    reason = _WHY.get(outcome.kind, Reason.TARGET_ERROR)
    match decision.action:
        case Action.RETRY_AT:
            call.rungs[call.rung].retries.spend(now_ms)
            return back_off(call, decision.at_ms, reason)
        case Action.OTHER_KEY:
            call.other_key_tried = True
            return connect(call, None, now_ms)
        case Action.LINE:
            return _line(call, outcome, decision.at_ms, now_ms)
        case Action.NEXT_RUNG:
            return next_rung(call, None, now_ms)
        case Action.DEAD_LETTER:
            return leave_and_end(call, End.DEAD_LETTERED, reason)
        case Action.UNKNOWN_EFFECT:
            return leave_and_end(call, End.UNKNOWN_EFFECT, Reason.TARGET_UNKNOWN_EFFECT)
        case Action.RELAY:
            return _relay(call, outcome, decision.at_ms, now_ms)


def _relay(call: Call, outcome: Outcome, at_ms: int, now_ms: int) -> Commands:
    """The target's word is the last one; if it was a limit, the caller may come back when the target said."""
    reason = _WHY.get(outcome.kind, Reason.TARGET_ERROR)
    if outcome.kind in _LIMITS and not call.committed:
        back_ms = call.rungs[call.rung].ring.back_at_ms(now_ms) or now_ms
        return _defer_until(call, max(at_ms, back_ms), reason, now_ms)
    how = End.REFUSED if outcome.kind is Kind.ADDRESS_DENIED else End.FAILED
    return leave_and_end(call, how, reason)


def back_off(call: Call, until_ms: int, reason: Reason) -> Commands:
    """Wait outside every line; a state of its own that operators see."""
    left = leave(call)
    call.reason = reason
    call.alarm_ms = until_ms
    call.state = State.BACKOFF
    call.room.wait(call, until_ms)
    return left


def _line(call: Call, outcome: Outcome, at_ms: int, now_ms: int) -> Commands:
    """A limit costs a token, no retry: at once with a key that is not out, else when the target said."""
    if outcome.kind is not Kind.CONCURRENCY and call.rungs[call.rung].ring.ready(now_ms):
        return connect(call, None, now_ms)
    if at_ms > call.wait_until_ms:
        return _defer_until(call, at_ms, _WHY[outcome.kind], now_ms)
    return back_off(call, at_ms, _WHY[outcome.kind])


def _defer_until(call: Call, at_ms: int, reason: Reason, now_ms: int) -> Commands:
    call.denied = synthetic(call, now_ms, at_ms, call.rungs[call.rung].target, BlockKind.TIME)
    return leave_and_end(call, End.DEFERRED, reason)
