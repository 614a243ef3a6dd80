"""
What follows a send: relay, repeat, another key, the next rung, back to the line, or an end that a person can see.

Retries multiply load exactly when a target is weak, so they are rationed three times: per call (3), per target (a
share of first sends), and by the caller's deadline. A 429 is no retry: it returns the call to its line. The rules are
one ordered table; the first that applies decides and gives its name as the reason (design 4: Retry; P7).
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

from swarmgate.core.backoff import delay_ms
from swarmgate.core.effect import Effect
from swarmgate.core.outcome import Ending, Outcome, Verdict
from swarmgate.core.patience import FIRST_CONTENT_MS
from swarmgate.core.recent import RecentCount

MOST_RETRIES: Final = 3  # 4 sends, rungs included
RUNG_MS: Final = FIRST_CONTENT_MS  # who would wait for longer than a slow primary may take goes to the next rung
BUDGET_SECONDS: Final = 10
BUDGET_PERCENT: Final = 10
BUDGET_PER_SECOND: Final = 1


class RetryBudget:
    """
    What one target tolerates in repeats: 10 % of first sends over 10 s, and always 1 per second on average.

    Finagle's and tower's rule: a target that fails for everybody gets at most 1.1 times its normal load (OV-01).
    """

    __slots__ = ("_first_sends", "_retries", "first_send")

    def __init__(self) -> None:
        self._first_sends = RecentCount(BUDGET_SECONDS)
        self._retries = RecentCount(BUDGET_SECONDS)
        self.first_send = self._first_sends.add  # counts a call's first send to this target, at an instant

    def left(self, now_ms: int) -> int:
        """How many retries may still be sent now."""
        allowed = max(self._first_sends.at(now_ms) * BUDGET_PERCENT // 100, BUDGET_SECONDS * BUDGET_PER_SECOND)
        return max(0, allowed - self._retries.at(now_ms))

    def spend(self, now_ms: int) -> bool:
        """Take one retry; False, and nothing taken, if none is left."""
        if not self.left(now_ms):
            return False
        self._retries.add(now_ms)
        return True


class CallFacts(NamedTuple):
    """
    What the decision needs to know of a call.

    `bytes_left`: a byte of the request went out in this attempt. `honours_key`: the target itself honours the
    idempotency key that the call carries. `content_sent`: the client has seen content. `other_key`: the ring, after it
    heard this outcome, has a candidate; `tried_other_key`: one was tried since the call last stood in line.
    `sends_on_rung` counts the sends at this rung including the failed one, `rungs_below` the rungs that may serve it next,
    `retries` those of the call so far, `listens_until_ms` when its caller hears nothing more (0: not known), `budget_left` those that the target's `RetryBudget` still allows.
    """

    request_id: str
    effect: Effect
    deadline_ms: int
    retries: int = 0
    sends_on_rung: int = 1
    bytes_left: bool = True
    honours_key: bool = False
    content_sent: bool = False
    other_key: bool = False
    tried_other_key: bool = False
    rungs_below: int = 0
    budget_left: int = 1
    listens_until_ms: int = 0


class Action(StrEnum):
    """What to do next."""

    RELAY = "relay"  # the answer or the upstream's error goes to the client
    RETRY_AT = "retry_at"  # the same deployment, at an instant; spends the target's retry budget
    OTHER_KEY = "other_key"  # at once
    LINE = "line"  # back to the call's line, not before an instant
    NEXT_RUNG = "next_rung"  # at once
    DEAD_LETTER = "dead_letter"
    UNKNOWN_EFFECT = "unknown_effect"


class RetryReason(StrEnum):
    """Which rule decided; closed, one per row of the table."""

    ANSWERED = "answered"
    CONTENT_STARTED = "content_started"
    WRITE_ANSWER_LOST = "write_answer_lost"
    WRITE_NOT_REPEATED = "write_not_repeated"
    FINAL = "final"
    DEADLINE_OVER = "deadline_over"
    OTHER_KEY_FREE = "other_key_free"
    WAIT_WORTH_A_RUNG = "wait_worth_a_rung"
    LIMIT_REACHED = "limit_reached"
    WAIT_BEYOND_DEADLINE = "wait_beyond_deadline"
    RETRIES_USED_UP = "retries_used_up"
    TARGET_UNTRUSTED = "target_untrusted"
    KEY_DEAD = "key_dead"
    NO_KEY_LEFT = "no_key_left"
    MODEL_FAILED = "model_failed"
    SENDS_KEPT_FOR_RUNGS = "sends_kept_for_rungs"
    RUNG_FAILED_TWICE = "rung_failed_twice"
    RETRY_BUDGET_EMPTY = "retry_budget_empty"
    RETRY = "retry"


# What would have led to another rung, had one below been able to serve.
LADDER_ENDS: Final = frozenset(
    {
        RetryReason.WAIT_BEYOND_DEADLINE,
        RetryReason.RETRIES_USED_UP,
        RetryReason.TARGET_UNTRUSTED,
        RetryReason.NO_KEY_LEFT,
        RetryReason.RETRY_BUDGET_EMPTY,
    }
)


class RetryDecision(NamedTuple):
    """
    The action, the rule that chose it, and whether it counts as one of the call's retries.

    `at_ms` is now, but for RETRY_AT, LINE and relayed limits: the instant from which the same may be tried again.
    """

    action: Action
    reason: RetryReason
    at_ms: int
    counts: bool


class _Case(NamedTuple):
    """One decision's inputs; `at_ms` is the instant until which backoff or a hint make it wait."""

    call: CallFacts
    outcome: Outcome
    now_ms: int
    at_ms: int

    @property
    def verdict(self) -> Verdict:
        return self.outcome.verdict

    @property
    def limited(self) -> bool:
        return self.outcome.verdict in {Verdict.OTHER_KEY, Verdict.WAIT}

    @property
    def repeatable(self) -> bool:
        return self.call.effect is Effect.READ or not self.call.bytes_left or self.call.honours_key

    @property
    def too_late(self) -> bool:
        return self.at_ms >= self.call.deadline_ms or 0 < self.call.listens_until_ms <= self.at_ms

    @property
    def worth_a_rung(self) -> bool:
        return self.call.rungs_below > 0 and (self.too_late or self.at_ms - self.now_ms > RUNG_MS)


_UNANSWERED: Final = frozenset(ending.value for ending in Ending if ending is not Ending.ANSWERED)

_RULES: tuple[tuple[RetryReason, Action, Callable[[_Case], bool]], ...] = (
    (RetryReason.ANSWERED, Action.RELAY, lambda c: c.verdict is Verdict.OK),
    (
        RetryReason.WRITE_ANSWER_LOST,
        Action.UNKNOWN_EFFECT,
        lambda c: not c.repeatable and c.outcome.kind in _UNANSWERED,
    ),
    (RetryReason.WRITE_NOT_REPEATED, Action.RELAY, lambda c: not c.repeatable),
    (RetryReason.CONTENT_STARTED, Action.RELAY, lambda c: c.call.content_sent),
    (RetryReason.FINAL, Action.RELAY, lambda c: c.verdict in {Verdict.REFUSE, Verdict.FAILED}),
    (RetryReason.DEADLINE_OVER, Action.RELAY, lambda c: c.now_ms >= c.call.deadline_ms),
    # Limits: time heals them, so waiting costs no retry.
    (RetryReason.OTHER_KEY_FREE, Action.OTHER_KEY, lambda c: c.verdict is Verdict.OTHER_KEY and _untried_key(c.call)),
    (RetryReason.WAIT_WORTH_A_RUNG, Action.NEXT_RUNG, lambda c: c.limited and c.worth_a_rung and _retries_left(c.call)),
    (RetryReason.WAIT_BEYOND_DEADLINE, Action.RELAY, lambda c: c.limited and c.too_late),
    (RetryReason.LIMIT_REACHED, Action.LINE, lambda c: c.limited),
    # Failures: each further send is a retry; each rung below is to have one.
    (RetryReason.RETRIES_USED_UP, Action.DEAD_LETTER, lambda c: not _retries_left(c.call)),
    (RetryReason.MODEL_FAILED, Action.NEXT_RUNG, lambda c: c.verdict is Verdict.OTHER_MODEL and c.call.rungs_below > 0),
    (RetryReason.TARGET_UNTRUSTED, Action.NEXT_RUNG, lambda c: c.verdict is Verdict.OTHER_TARGET),
    (
        RetryReason.SENDS_KEPT_FOR_RUNGS,
        Action.NEXT_RUNG,
        lambda c: 0 < c.call.rungs_below >= MOST_RETRIES - c.call.retries,
    ),
    (RetryReason.KEY_DEAD, Action.OTHER_KEY, lambda c: c.verdict is Verdict.KEY_DEAD and c.call.other_key),
    (RetryReason.NO_KEY_LEFT, Action.NEXT_RUNG, lambda c: c.verdict is Verdict.KEY_DEAD),
    (RetryReason.RUNG_FAILED_TWICE, Action.NEXT_RUNG, lambda c: c.call.rungs_below > 0 and c.call.sends_on_rung > 1),
    (RetryReason.WAIT_WORTH_A_RUNG, Action.NEXT_RUNG, lambda c: c.worth_a_rung),
    (RetryReason.WAIT_BEYOND_DEADLINE, Action.RELAY, lambda c: c.too_late),
    (RetryReason.RETRY_BUDGET_EMPTY, Action.NEXT_RUNG, lambda c: c.call.budget_left < 1),
    (RetryReason.RETRY, Action.RETRY_AT, lambda _: True),
)


def decide(call: CallFacts, outcome: Outcome, now_ms: int) -> RetryDecision:
    """
    The action after one send that ended in `outcome`; the first rule that applies, for any facts.

    A rule that would go to the next rung where there is none relays the upstream's error.
    """
    at_ms = now_ms + delay_ms(call.request_id, max(0, call.retries), outcome.hint_ms)
    case = _Case(call, outcome, now_ms, at_ms)
    reason, action = next((reason, action) for reason, action, applies in _RULES if applies(case))
    if action is Action.NEXT_RUNG and not call.rungs_below:
        action = Action.RELAY
    waits = action in {Action.RETRY_AT, Action.LINE} or (action is Action.RELAY and case.limited)
    counts = action in {Action.RETRY_AT, Action.NEXT_RUNG} or (
        action is Action.OTHER_KEY and outcome.verdict is Verdict.KEY_DEAD
    )
    return RetryDecision(action, reason, at_ms if waits else now_ms, counts)


def _retries_left(call: CallFacts) -> bool:
    return call.retries < MOST_RETRIES


def _untried_key(call: CallFacts) -> bool:
    return call.other_key and not call.tried_other_key
