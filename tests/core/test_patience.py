"""How long a call may wait and its answer may take: never longer than any bound that is known."""

from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.patience import (
    FIRST_CONTENT_MS,
    LONGEST_WAIT_MS,
    USUAL_WAIT_MS,
    WHOLE_ANSWER_MS,
    content_ms,
    wait_ms,
)

bounds = st.none() | st.integers(0, 10**9)


@given(bounds, bounds, bounds)
def test_it_waits_as_long_as_every_known_bound_allows(said, timeout, read):
    known = [bound for bound in (said, timeout, None if read is None else read // 2) if bound is not None]
    assert wait_ms(said, timeout, read) == (min([*known, LONGEST_WAIT_MS]) if known else USUAL_WAIT_MS)


def test_the_default_of_an_sdk_is_five_minutes():
    assert wait_ms(None, None, 600_000) == 300_000


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_longer_answer_has_longer_and_a_stream_never(tokens, more):
    assert content_ms(tokens, streams=True) == FIRST_CONTENT_MS
    assert WHOLE_ANSWER_MS <= content_ms(tokens, streams=False) <= content_ms(tokens + more, streams=False)
