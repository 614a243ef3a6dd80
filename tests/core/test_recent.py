from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.recent import RecentCount


@given(st.integers(1, 12), st.lists(st.tuples(st.integers(-500, 20_000), st.integers(0, 5)), max_size=60))
def test_counts_what_a_list_of_instants_counts(seconds, steps):
    counted, events, second, now_ms = RecentCount(seconds), [], 0, 0
    for gap_ms, amount in steps:
        now_ms = max(0, now_ms + gap_ms)  # a little backwards too
        second = max(second, now_ms // 1_000)
        counted.add(now_ms, amount)
        events.append((second, amount))
        assert counted.at(now_ms) == sum(amount for at, amount in events if at > second - seconds)


def test_forgets_after_any_pause():
    counted = RecentCount(10)
    counted.add(1_790_000_000_000, 7)
    assert counted.at(1_790_000_009_999) == 7
    assert counted.at(1_790_000_010_000) == 0
    assert counted.at(10**18) == 0
