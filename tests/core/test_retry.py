import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.effect import Effect
from swarmgate.core.outcome import Ending, Kind, Signal, Verdict, classify
from swarmgate.core.retry import MOST_RETRIES, Action, CallFacts, RetryBudget, RetryReason, decide

NOW_MS = 1_000_000
READ = CallFacts("req-1", Effect.READ, NOW_MS + 60_000)
WRITE = READ._replace(effect=Effect.WRITE)
OK = classify(Signal(200))
RATE = classify(Signal(429, hint_ms=2_000))
LATER = classify(Signal(429, hint_ms=20_000))
TOMORROW = classify(Signal(429, hint_ms=86_400_000))
BUSY = classify(Signal(429, message="too many concurrent requests"))
TOO_LARGE = classify(Signal(413))
BAD_KEY = classify(Signal(401))
OVERLOADED = classify(Signal(529))
BROKEN = classify(Signal(500))
BROKEN_FOR_LONG = classify(Signal(503, hint_ms=25_000))
LOST = classify(Signal(ending=Ending.LOST_BEFORE_BYTE))
UNTRUSTED = classify(Signal(ending=Ending.UNTRUSTED))
SLOW = classify(Signal(ending=Ending.CONTENT_TIMEOUT))
BAD_REQUEST = classify(Signal(400))


@pytest.mark.parametrize(
    ("outcome", "call", "action", "reason"),
    [
        (OK, WRITE, Action.RELAY, RetryReason.ANSWERED),
        (BAD_REQUEST, READ, Action.RELAY, RetryReason.FINAL),
        (TOO_LARGE, READ._replace(rungs_below=1, other_key=True), Action.RELAY, RetryReason.FINAL),
        (BROKEN, READ, Action.RETRY_AT, RetryReason.RETRY),
        (LOST, READ, Action.RETRY_AT, RetryReason.RETRY),
        (OVERLOADED, READ, Action.RETRY_AT, RetryReason.RETRY),
        (BROKEN, READ._replace(retries=3), Action.DEAD_LETTER, RetryReason.RETRIES_USED_UP),
        (BROKEN, READ._replace(content_sent=True), Action.RELAY, RetryReason.CONTENT_STARTED),
        (BROKEN, READ._replace(deadline_ms=NOW_MS), Action.RELAY, RetryReason.DEADLINE_OVER),
        (BROKEN, READ._replace(deadline_ms=NOW_MS + 1), Action.RELAY, RetryReason.WAIT_BEYOND_DEADLINE),
        (
            BROKEN,
            READ._replace(deadline_ms=NOW_MS + 1, rungs_below=1),
            Action.NEXT_RUNG,
            RetryReason.WAIT_WORTH_A_RUNG,
        ),
        (BROKEN, READ._replace(listens_until_ms=NOW_MS + 1), Action.RELAY, RetryReason.WAIT_BEYOND_DEADLINE),
        (BROKEN, READ._replace(listens_until_ms=NOW_MS + 2_000), Action.RETRY_AT, RetryReason.RETRY),
        (
            BROKEN,
            READ._replace(listens_until_ms=NOW_MS - 1, rungs_below=1),
            Action.NEXT_RUNG,
            RetryReason.WAIT_WORTH_A_RUNG,
        ),
        (BROKEN, READ._replace(budget_left=0), Action.RELAY, RetryReason.RETRY_BUDGET_EMPTY),
        (BROKEN, READ._replace(budget_left=0, rungs_below=1), Action.NEXT_RUNG, RetryReason.RETRY_BUDGET_EMPTY),
        (BROKEN, READ._replace(rungs_below=1), Action.RETRY_AT, RetryReason.RETRY),
        (BROKEN, READ._replace(rungs_below=1, sends_on_rung=2), Action.NEXT_RUNG, RetryReason.RUNG_FAILED_TWICE),
        (BROKEN, READ._replace(rungs_below=2), Action.RETRY_AT, RetryReason.RETRY),
        (BROKEN, READ._replace(rungs_below=2, retries=1), Action.NEXT_RUNG, RetryReason.SENDS_KEPT_FOR_RUNGS),
        (BROKEN, READ._replace(rungs_below=1, retries=2), Action.NEXT_RUNG, RetryReason.SENDS_KEPT_FOR_RUNGS),
        (BROKEN, READ._replace(rungs_below=3), Action.NEXT_RUNG, RetryReason.SENDS_KEPT_FOR_RUNGS),
        (BROKEN_FOR_LONG, READ, Action.RETRY_AT, RetryReason.RETRY),
        (BROKEN_FOR_LONG, READ._replace(rungs_below=1), Action.NEXT_RUNG, RetryReason.WAIT_WORTH_A_RUNG),
        (OVERLOADED, READ._replace(rungs_below=1), Action.NEXT_RUNG, RetryReason.MODEL_FAILED),
        (SLOW, READ._replace(rungs_below=1), Action.NEXT_RUNG, RetryReason.MODEL_FAILED),
        (SLOW, READ._replace(rungs_below=1, retries=3), Action.DEAD_LETTER, RetryReason.RETRIES_USED_UP),
        (BAD_KEY, READ._replace(other_key=True), Action.OTHER_KEY, RetryReason.KEY_DEAD),
        (
            BAD_KEY,
            READ._replace(other_key=True, rungs_below=1, retries=2),
            Action.NEXT_RUNG,
            RetryReason.SENDS_KEPT_FOR_RUNGS,
        ),
        (BAD_KEY, READ._replace(rungs_below=1), Action.NEXT_RUNG, RetryReason.NO_KEY_LEFT),
        (BAD_KEY, READ, Action.RELAY, RetryReason.NO_KEY_LEFT),
        (RATE, READ._replace(other_key=True), Action.OTHER_KEY, RetryReason.OTHER_KEY_FREE),
        (RATE, READ._replace(other_key=True, tried_other_key=True), Action.LINE, RetryReason.LIMIT_REACHED),
        (RATE, READ, Action.LINE, RetryReason.LIMIT_REACHED),
        (RATE, READ._replace(retries=3), Action.LINE, RetryReason.LIMIT_REACHED),
        (RATE, READ._replace(rungs_below=1), Action.LINE, RetryReason.LIMIT_REACHED),
        (LATER, READ._replace(rungs_below=1), Action.NEXT_RUNG, RetryReason.WAIT_WORTH_A_RUNG),
        (LATER, READ._replace(rungs_below=1, retries=3), Action.LINE, RetryReason.LIMIT_REACHED),
        (TOMORROW, READ, Action.RELAY, RetryReason.WAIT_BEYOND_DEADLINE),
        (TOMORROW, READ._replace(rungs_below=1), Action.NEXT_RUNG, RetryReason.WAIT_WORTH_A_RUNG),
        (BUSY, READ._replace(other_key=True), Action.LINE, RetryReason.LIMIT_REACHED),
        (UNTRUSTED, READ, Action.RELAY, RetryReason.TARGET_UNTRUSTED),
        (UNTRUSTED, WRITE._replace(bytes_left=False), Action.RELAY, RetryReason.TARGET_UNTRUSTED),
        (UNTRUSTED, READ._replace(other_key=True), Action.RELAY, RetryReason.TARGET_UNTRUSTED),
        (UNTRUSTED, READ._replace(rungs_below=2), Action.NEXT_RUNG, RetryReason.TARGET_UNTRUSTED),
        (LOST, WRITE, Action.UNKNOWN_EFFECT, RetryReason.WRITE_ANSWER_LOST),
        (SLOW, WRITE._replace(rungs_below=1), Action.UNKNOWN_EFFECT, RetryReason.WRITE_ANSWER_LOST),
        (BROKEN, WRITE, Action.RELAY, RetryReason.WRITE_NOT_REPEATED),
        (RATE, WRITE._replace(other_key=True), Action.RELAY, RetryReason.WRITE_NOT_REPEATED),
        (LOST, WRITE._replace(bytes_left=False), Action.RETRY_AT, RetryReason.RETRY),
        (LOST, WRITE._replace(honours_key=True), Action.RETRY_AT, RetryReason.RETRY),
    ],
)
def test_the_rules_in_their_order(outcome, call, action, reason):
    decision = decide(call, outcome, NOW_MS)
    assert (decision.action, decision.reason) == (action, reason)


outcomes = st.sampled_from(
    [OK, RATE, LATER, TOMORROW, BUSY, TOO_LARGE, BAD_KEY, OVERLOADED, BROKEN, BROKEN_FOR_LONG, LOST, SLOW, BAD_REQUEST]
)
calls = st.builds(
    CallFacts,
    st.text(),
    st.sampled_from(Effect),
    st.integers(NOW_MS - 10, NOW_MS + 200_000),
    st.integers(-1, 5),
    st.integers(0, 5),
    *[st.booleans()] * 5,
    st.integers(0, 4),
    st.integers(-1, 5),
)


@given(calls, outcomes)
def test_every_decision_keeps_the_promises(call, outcome):
    decision = decide(call, outcome, NOW_MS)
    sends = {Action.RETRY_AT, Action.OTHER_KEY, Action.LINE, Action.NEXT_RUNG}
    if decision.action in sends:
        assert call.effect is Effect.READ or not call.bytes_left or call.honours_key
        assert not call.content_sent
        assert outcome.verdict not in {Verdict.OK, Verdict.FAILED, Verdict.REFUSE}
        assert decision.at_ms < call.deadline_ms
    relayed_limit = decision.action is Action.RELAY and outcome.verdict in {Verdict.WAIT, Verdict.OTHER_KEY}
    if decision.action in {Action.RETRY_AT, Action.LINE} or relayed_limit:
        assert decision.at_ms >= NOW_MS + max(500, outcome.hint_ms or 0)
    else:
        assert decision.at_ms == NOW_MS
    if decision.counts:
        assert decision.action in sends
        assert call.retries < MOST_RETRIES
    if decision.action is Action.RETRY_AT:
        assert call.budget_left > 0
        assert decision.counts
    if decision.action is Action.NEXT_RUNG:
        assert call.rungs_below
        assert decision.counts
    if decision.action is Action.UNKNOWN_EFFECT:
        assert outcome.kind is not Kind.OK
        assert call.effect is Effect.WRITE


@given(st.lists(outcomes, min_size=50, max_size=50), st.integers(1, 4))
def test_a_call_is_sent_at_most_four_times_beside_its_waits_for_limits(endings, rungs):
    call, now_ms, sends, refused = READ._replace(deadline_ms=10**9), 0, 0, 0
    for outcome in endings:
        sends += 1
        decision = decide(call._replace(rungs_below=rungs - 1, other_key=True), outcome, now_ms)
        if decision.action in {Action.RELAY, Action.DEAD_LETTER, Action.UNKNOWN_EFFECT}:
            break
        now_ms = decision.at_ms
        refused += not decision.counts
        down = decision.action is Action.NEXT_RUNG
        rungs -= down
        call = call._replace(
            retries=call.retries + decision.counts,
            sends_on_rung=1 if down else call.sends_on_rung + 1,
            tried_other_key=decision.action is Action.OTHER_KEY,
        )
    assert sends - refused <= MOST_RETRIES + 1


@given(st.lists(st.sampled_from([BROKEN, SLOW, OVERLOADED, BAD_KEY, LOST]), min_size=4, max_size=4), st.integers(1, 4))
def test_no_rung_of_four_is_left_untried(endings, rungs):
    call, below = READ._replace(deadline_ms=10**9), rungs - 1
    for outcome in endings:
        decision = decide(call._replace(rungs_below=below, other_key=True), outcome, 0)
        if decision.action is Action.DEAD_LETTER:
            break
        down = decision.action is Action.NEXT_RUNG
        below -= down
        call = call._replace(
            retries=call.retries + decision.counts, sends_on_rung=1 if down else call.sends_on_rung + 1
        )
    assert below == 0


def test_a_target_that_always_fails_sees_a_tenth_more():
    budget, first, retries = RetryBudget(), 0, 0
    for now_ms in range(0, 60_000, 10):  # OV-01: 100 calls per second, all of them fail and want three retries
        budget.first_send(now_ms)
        first += 1
        retries += sum(budget.spend(now_ms) for _ in range(3))
    assert first / 10 <= retries <= first * 0.12 + 10


def test_a_quiet_target_still_gets_one_retry_per_second():
    budget = RetryBudget()
    granted = sum(budget.spend(now_ms) for now_ms in range(0, 100_000, 10))
    assert granted == 100


@given(st.lists(st.tuples(st.integers(0, 3_000), st.booleans()), max_size=80))
def test_the_budget_is_never_overdrawn(steps):
    budget, now_ms, spent = RetryBudget(), 0, []
    for gap_ms, is_retry in steps:
        now_ms += gap_ms
        if not is_retry:
            budget.first_send(now_ms)
        elif budget.left(now_ms):
            assert budget.spend(now_ms)
            spent.append(now_ms)
        else:
            assert not budget.spend(now_ms)
        assert sum(at > now_ms - 9_000 for at in spent) <= max(10, len(steps) // 10)
