import heapq
from collections import deque
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.backoff import LONGEST_PAUSE_MS
from swarmgate.core.errors import BadInput
from swarmgate.core.hidden_value import MICRO, RevisionReason
from swarmgate.core.learning import Ceilings, Learned, LearnedLimit, Quantity
from swarmgate.core.outcome import Signal, classify

OK = classify(Signal(200))
RATE = classify(Signal(429))
RATE_5S = classify(Signal(429, hint_ms=5_000))
BUSY = classify(Signal(429, message="too many concurrent requests"))
TOO_LARGE = classify(Signal(413, hint_ms=48_000))
UNAVAILABLE = classify(Signal(503, hint_ms=30_000))
MINUTE_MS = 60_000
CEILINGS = Ceilings(1_000_000, 1_000, 1_000)


class FixedWindow:
    def __init__(self, limit, window_ms, offset_ms=0):
        self.limit, self.window_ms, self.offset_ms = limit, window_ms, offset_ms
        self.window, self.count = -1, 0

    def wait_ms(self, now_ms):
        window = (now_ms + self.offset_ms) // self.window_ms
        if window != self.window:
            self.window, self.count = window, 0
        if self.count >= self.limit:
            return (window + 1) * self.window_ms - self.offset_ms - now_ms
        self.count += 1
        return 0


class SlidingWindow:
    def __init__(self, limit, window_ms):
        self.limit, self.window_ms, self.hits = limit, window_ms, deque()

    def wait_ms(self, now_ms):
        while self.hits and self.hits[0] <= now_ms - self.window_ms:
            self.hits.popleft()
        if len(self.hits) >= self.limit:
            return self.hits[0] + self.window_ms - now_ms
        self.hits.append(now_ms)
        return 0


class Bucket:
    """A token bucket if it holds a window's tokens, a GCRA limiter with a small tolerance if it holds few."""

    def __init__(self, limit, window_ms, holds):
        self.limit, self.window_ms, self.holds = limit, window_ms, holds
        self.fill, self.at_ms = 0, 0

    def wait_ms(self, now_ms):
        self.fill = max(0, self.fill - (now_ms - self.at_ms) * self.limit)
        self.at_ms = now_ms
        over = self.fill + self.window_ms - self.holds * self.window_ms
        if over > 0:
            return -(-over // self.limit)
        self.fill += self.window_ms
        return 0


class InFlight:
    """Refuses whatever would be more than `limit` at once; says no wait."""

    def __init__(self, limit):
        self.limit, self.inside = limit, 0

    def wait_ms(self, now_ms):
        if self.inside >= self.limit:
            return 1
        self.inside += 1
        return 0


LIMITERS = {
    "fixed": lambda limit, window_ms: FixedWindow(limit, window_ms, window_ms // 3),
    "sliding": SlidingWindow,
    "token bucket": lambda limit, window_ms: Bucket(limit, window_ms, limit),
    "gcra": lambda limit, window_ms: Bucket(limit, window_ms, max(1, limit // 6)),
    "gcra without tolerance": lambda limit, window_ms: Bucket(limit, window_ms, 1),
}


def saturate(limiter, learner, until_ms, *, hints, latency_ms=(50, 150), now_ms=0, seed=0):
    """Always something to send, paced by what was learned. Returns (instant, milliseconds of work or 0) per send."""
    random, answers, record = Random(seed), [], []
    fill, filled_ms, number = 0, now_ms, 0
    while now_ms < until_ms:
        while answers and answers[0][0] <= now_ms:
            _, _, sent, outcome = heapq.heappop(answers)
            learner.observe(sent, outcome, now_ms)
            if outcome is OK and isinstance(limiter, InFlight):
                limiter.inside -= 1
        learner.grow(now_ms)
        rate = learner.rate_micro
        drained = max(0, fill - (now_ms - filled_ms) * rate)
        over = drained + (1 - learner.burst) * MICRO * learner.window_ms
        open_ms = max(learner.paused_until_ms, now_ms + max(0, -(-over // rate)))
        if open_ms <= now_ms and len(answers) < learner.cap:
            number += 1
            fill, filled_ms = drained + MICRO * learner.window_ms, now_ms
            sent = learner.sent(now_ms, len(answers) + 1)
            wait_ms = limiter.wait_ms(now_ms)
            outcome = classify(Signal(429, hint_ms=wait_ms if hints else None)) if wait_ms else OK
            work_ms = 20 if wait_ms else random.randrange(*latency_ms)
            heapq.heappush(answers, (now_ms + work_ms, number, sent, outcome))
            record.append((now_ms, 0 if wait_ms else work_ms))
        else:
            after = [open_ms] * (open_ms > now_ms) + [at_ms for at_ms, *_ in answers[:1]]
            now_ms = max(now_ms + 1, min(after))
    return record


def judged(record, warm_ms):
    """Accepted sends, refused sends and milliseconds of work after the warm-up."""
    late = [work_ms for at_ms, work_ms in record if at_ms >= warm_ms]
    return sum(work_ms > 0 for work_ms in late), late.count(0), sum(late)


def learner_from(rate, window_ms=MINUTE_MS, cap=1_000, burst=2, ceilings=CEILINGS):
    return LearnedLimit(Learned(rate * MICRO, cap * MICRO, burst * MICRO), window_ms, ceilings, 0)


@pytest.mark.parametrize("hints", [True, False], ids=["with hints", "without hints"])
@pytest.mark.parametrize(("limit", "window_ms", "until_ms"), [(60, MINUTE_MS, 7_200_000), (10, 1_000, 600_000)])
@pytest.mark.parametrize("kind", LIMITERS)
def test_finds_a_hidden_limit(kind, limit, window_ms, until_ms, hints):
    warm_ms = until_ms // 4
    learner = learner_from(limit * 3 // 10, window_ms)
    record = saturate(LIMITERS[kind](limit, window_ms), learner, until_ms, hints=hints)
    accepted, refused, _ = judged(record, warm_ms)
    assert accepted * window_ms >= 0.85 * limit * (until_ms - warm_ms)
    assert refused <= 0.01 * (accepted + refused)


@pytest.mark.parametrize("kind", LIMITERS)
def test_finds_a_limit_of_three_per_minute(kind):
    learner = learner_from(1)
    accepted, refused, _ = judged(saturate(LIMITERS[kind](3, MINUTE_MS), learner, 28_800_000, hints=True), 7_200_000)
    assert accepted >= 0.85 * 3 * 360
    assert refused <= 0.02 * (accepted + refused)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("latency_ms", [(2_000, 2_001), (200, 8_000), (100, 1_500)])
def test_finds_a_hidden_concurrency_cap_and_blames_it(latency_ms, seed):
    learner = learner_from(20)
    record = saturate(InFlight(10), learner, 4_500_000, hints=False, latency_ms=latency_ms, seed=seed)
    _, refused, work_ms = judged(record, 2_400_000)
    assert work_ms >= 0.85 * 10 * 2_100_000
    assert refused <= 0.02 * len(record)
    assert learner.cap in {9, 10, 11}


@pytest.mark.parametrize("kind", LIMITERS)
def test_slow_answers_do_not_confuse_a_rate_with_a_cap(kind):
    learner = learner_from(200)
    limiter = LIMITERS[kind](600, MINUTE_MS)
    accepted, refused, _ = judged(
        saturate(limiter, learner, 2_700_000, hints=False, latency_ms=(2_000, 9_000)), 900_000
    )
    assert accepted >= 0.85 * 600 * 30
    assert refused <= 0.01 * accepted


@pytest.mark.parametrize("kind", LIMITERS)
def test_follows_a_limit_that_shrinks(kind):
    learner = learner_from(100)
    saturate(LIMITERS[kind](100, MINUTE_MS), learner, 1_800_000, hints=True)
    record = saturate(LIMITERS[kind](20, MINUTE_MS), learner, 5_400_000, hints=True, now_ms=1_800_000)
    accepted, refused, _ = judged(record, 3_600_000)
    assert accepted >= 0.85 * 20 * 30
    assert refused <= 0.02 * (accepted + refused)


@pytest.mark.parametrize("kind", LIMITERS)
def test_follows_a_limit_that_grows(kind):
    learner = learner_from(20)
    saturate(LIMITERS[kind](20, MINUTE_MS), learner, 1_800_000, hints=True)
    record = saturate(LIMITERS[kind](100, MINUTE_MS), learner, 5_400_000, hints=True, now_ms=1_800_000)
    accepted, refused, _ = judged(record, 3_600_000)
    assert accepted >= 0.85 * 100 * 30
    assert refused <= 0.01 * accepted


def test_parallel_refusals_are_one_event():
    learner = learner_from(60)
    burst = [learner.sent(10, number) for number in range(1, 51)]
    revisions = [learner.observe(sent, RATE, 20 + sent.in_flight) for sent in burst]
    assert [revision is not None for revision in revisions] == [True] + [False] * 49
    assert learner.paused_until_ms == 21 + 1_000


def test_pauses_double_until_something_passes():
    learner, now_ms, pauses = learner_from(60), 0, []
    for _ in range(9):
        learner.observe(learner.sent(now_ms, 1), RATE, now_ms)
        pauses.append(learner.paused_until_ms - now_ms)
        now_ms = learner.paused_until_ms
    assert pauses == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]
    assert learner.rate_micro == 54 * MICRO  # one stop is one cut, however often the pause was too short
    learner.observe(learner.sent(now_ms, 1), OK, now_ms)
    learner.observe(learner.sent(now_ms + 1, 1), RATE, now_ms + 1)
    assert learner.paused_until_ms == now_ms + 1 + 1_000


def test_hints_outrank_the_own_pause_and_the_longest_counts():
    learner = learner_from(60)
    first, second = learner.sent(0, 1), learner.sent(0, 2)
    learner.observe(first, RATE_5S, 10)
    assert learner.paused_until_ms == 5_010
    learner.observe(second, RATE_5S, 500)
    assert learner.paused_until_ms == 5_500
    learner.observe(second, RATE, 500)
    assert learner.paused_until_ms == 5_500


def test_unavailable_pauses_without_blaming_the_rate_and_too_large_does_neither():
    learner = learner_from(60)
    assert learner.observe(learner.sent(0, 1), TOO_LARGE, 10) is None
    assert learner.paused_until_ms == 0
    assert learner.observe(learner.sent(0, 1), UNAVAILABLE, 10) is None
    assert learner.paused_until_ms == 30_010
    assert learner.rate_micro == 60 * MICRO


def test_a_refusal_that_names_concurrency_moves_the_cap():
    learner = learner_from(60)
    revision = learner.observe(learner.sent(0, 8), BUSY, 10)
    assert (revision.quantity, revision.reason) == (Quantity.CAP, RevisionReason.REFUSED)
    assert (learner.cap, learner.rate_micro) == (7, 60 * MICRO)


def test_llm_gateways_22_a_refused_burst_moves_the_burst_for_good():
    learner = learner_from(60, burst=3)
    assert learner.burst == 3
    learner.observe(learner.sent(0, 1), OK, 5)
    sent = [learner.sent(10, number) for number in (1, 2)]
    revision = learner.observe(sent[1], RATE, 20)
    assert (revision.quantity, learner.burst, learner.rate_micro) == (Quantity.BURST, 2, 60 * MICRO)
    saturate(Bucket(60, MINUTE_MS, 60), learner, 3_600_000, hints=False, now_ms=MINUTE_MS)
    assert learner.burst == 2
    assert LearnedLimit(learner.learned, MINUTE_MS, CEILINGS, 0).burst == 2


def test_the_burst_grows_to_a_sixteenth_of_the_window():
    learner = learner_from(60, burst=1)
    saturate(Bucket(60, MINUTE_MS, 60), learner, 3_600_000, hints=False)
    assert learner.burst == 3
    assert learner.learned.burst_micro < 5 * MICRO


def test_an_unused_window_proves_nothing():
    learner = learner_from(60)
    for now_ms in range(0, 3_600_000, 2_000):  # 30 per minute
        learner.observe(learner.sent(now_ms, 1), OK, now_ms)
        assert learner.grow(now_ms) == ()
    for now_ms in range(3_600_000, 3_722_000, 1_000):
        learner.observe(learner.sent(now_ms, 1), OK, now_ms)
        learner.grow(now_ms)
    assert learner.rate_micro > 60 * MICRO


def test_what_the_target_says_is_a_ceiling_both_ways():
    learner = learner_from(60, ceilings=Ceilings(80, 10, 10))
    assert learner.told(20) == (Quantity.RATE, RevisionReason.TOLD, 16 * MICRO)  # with headroom
    assert learner.told(20) is None
    saturate(Bucket(1_000, MINUTE_MS, 1_000), learner, 600_000, hints=False)
    assert learner.rate_micro == 16 * MICRO
    assert learner.told(1_000) == (Quantity.RATE, RevisionReason.TOLD, 80 * MICRO)  # it stood at the target's last word
    saturate(Bucket(1_000, MINUTE_MS, 1_000), learner, 3_600_000, hints=False, now_ms=600_000)
    assert learner.rate_micro == 80 * MICRO


@pytest.mark.parametrize(
    ("window_ms", "ceilings", "field"),
    [
        (0, CEILINGS, "window_ms"),
        (1, Ceilings(0, 1, 1), "rate"),
        (1, Ceilings(1, 0, 1), "cap"),
        (1, Ceilings(1, 1, -1), "burst"),
    ],
)
def test_impossible_limits_are_refused(window_ms, ceilings, field):
    with pytest.raises(BadInput) as refusal:
        LearnedLimit(Learned(MICRO, MICRO, MICRO), window_ms, ceilings, 0)
    assert refusal.value.field == field


refusals = st.sampled_from([RATE, RATE_5S, BUSY, TOO_LARGE, UNAVAILABLE])
gaps = st.integers(0, 90_000)


@given(st.integers(1, 1_000), st.lists(st.tuples(gaps, gaps, st.integers(1, 50), refusals), max_size=60))
def test_a_storm_of_refusals_never_raises_anything(rate, steps):
    learner, now_ms = learner_from(rate), 0
    for gap_ms, delay_ms, in_flight, outcome in steps:
        before = learner.learned[:3]
        sent = learner.sent(now_ms + gap_ms, in_flight)
        now_ms += gap_ms + delay_ms
        learner.observe(sent, outcome, now_ms)
        assert learner.grow(now_ms) == ()
        assert all(after <= value for value, after in zip(before, learner.learned[:3], strict=True))


@given(
    st.tuples(st.integers(1, 100), st.integers(1, 20), st.integers(1, 20)),
    st.lists(st.tuples(gaps, gaps, st.integers(1, 50), refusals | st.just(OK)), max_size=80),
)
def test_values_stay_below_the_ceilings_and_every_change_is_a_revision(limits, steps):
    ceilings = Ceilings(*limits)
    learner, now_ms = learner_from(10**6, 1_000, 10**6, 10**6, ceilings), 0
    for gap_ms, delay_ms, in_flight, outcome in steps:
        before = dict(zip(Quantity, learner.learned, strict=False))
        sent = learner.sent(now_ms + gap_ms, in_flight)
        now_ms += gap_ms + delay_ms
        revisions = [learner.observe(sent, outcome, now_ms), *learner.grow(now_ms)]
        changed = {revision.quantity: revision.value_micro for revision in revisions if revision}
        after = dict(zip(Quantity, learner.learned, strict=False))
        assert before | changed == after
        assert learner.rate_micro <= ceilings.rate * MICRO
        assert 1 <= learner.cap <= ceilings.cap
        assert 1 <= learner.burst <= ceilings.burst
        assert now_ms <= max(now_ms, learner.paused_until_ms) <= now_ms + LONGEST_PAUSE_MS
