from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.backoff import BASE_MS, LONGEST_MS, OWN_CAP_MS, delay_ms, jitter
from swarmgate.core.errors import BadInput

attempts = st.integers(0, 100)


@given(st.text(), attempts, st.integers(1, 10**9))
def test_llm_gateways_15_without_a_hint_the_delay_stays_around_the_doubling(request_id, attempt, base_ms):
    middle_ms = min(OWN_CAP_MS, base_ms * 2**attempt)
    assert middle_ms // 2 <= delay_ms(request_id, attempt, base_ms=base_ms) <= min(LONGEST_MS, middle_ms * 3 // 2)


@given(st.text(), attempts, st.integers(1, 10**15))
def test_llm_gateways_21_never_earlier_than_the_hint_and_beyond_30_s_exactly_the_hint(request_id, attempt, hint_ms):
    delay = delay_ms(request_id, attempt, hint_ms)
    assert delay >= hint_ms
    assert delay <= LONGEST_MS or delay == hint_ms
    own_ms = delay_ms(request_id, attempt)
    assert delay <= max(hint_ms * 6 // 5 + 1, own_ms)


@given(st.text(), attempts, st.sampled_from([None, 0, -1, -(10**12)]))
def test_no_hint_and_no_wait_are_the_same(request_id, attempt, hint_ms):
    assert delay_ms(request_id, attempt, hint_ms) == delay_ms(request_id, attempt)


@pytest.mark.parametrize("attempt", range(6))
@pytest.mark.parametrize("prefix", ["req-", "018f3a1c-", "0"])
def test_calls_that_fail_together_come_back_apart(prefix, attempt):
    """OV-05: the densest bin holds at most twice the mean; bins of 100 ms, or a tenth of the spread where it is wider."""
    delays = [delay_ms(f"{prefix}{number}", attempt) for number in range(2_000)]
    spread_ms = min(OWN_CAP_MS, BASE_MS << attempt)
    bin_ms = max(100, spread_ms // 10)
    bins = Counter(delay // bin_ms for delay in delays)
    assert max(bins.values()) <= 2 * 2_000 * bin_ms // spread_ms


def test_calls_with_the_same_hint_come_back_apart():
    delays = [delay_ms(f"req-{number}", 0, 20_000) for number in range(2_000)]
    assert max(Counter(delay // 100 for delay in delays).values()) <= 2 * 2_000 / 40
    assert 20_000 <= min(delays) <= 20_100
    assert 23_900 <= max(delays) <= 24_000


def test_jitter_is_the_same_everywhere():
    assert [jitter("req-1", attempt) for attempt in range(3)] == [3108024159, 524666356, 3973570643]


def test_every_attempt_of_a_call_has_its_own_jitter():
    assert len({jitter("req-1", attempt) for attempt in range(100)} | {jitter(f"1{n}", 0) for n in range(100)}) == 200


@pytest.mark.parametrize(
    ("attempt", "base_ms", "field"), [(-1, 1_000, "attempt"), (0, 0, "base_ms"), (0, -5, "base_ms")]
)
def test_nonsense_is_refused(attempt, base_ms, field):
    with pytest.raises(BadInput) as refusal:
        delay_ms("req", attempt, base_ms=base_ms)
    assert refusal.value.field == field
