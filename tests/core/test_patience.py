"""How long a call may wait: never longer than any bound that is known."""

from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.patience import LONGEST_WAIT_MS, USUAL_WAIT_MS, wait_ms

bounds = st.none() | st.integers(0, 10**9)


@given(bounds, bounds, bounds)
def test_it_waits_as_long_as_every_known_bound_allows(said, timeout, read):
    known = [bound for bound in (said, timeout, None if read is None else read // 2) if bound is not None]
    assert wait_ms(said, timeout, read) == (min([*known, LONGEST_WAIT_MS]) if known else USUAL_WAIT_MS)


def test_the_default_of_an_sdk_is_five_minutes():
    assert wait_ms(None, None, 600_000) == 300_000
