"""How long a call may wait: never longer than any bound that is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.patience import LONGEST_WAIT_MS, USUAL_WAIT_MS, listens_ms, wait_ms

bounds = st.none() | st.integers(0, 10**9)


@given(bounds, bounds, bounds)
def test_it_waits_as_long_as_every_known_bound_allows(said, timeout, read):
    known = [bound for bound in (said, timeout, None if read is None else read // 2) if bound is not None]
    assert wait_ms(said, timeout, read) == (min([*known, LONGEST_WAIT_MS]) if known else USUAL_WAIT_MS)


def test_the_default_of_an_sdk_is_five_minutes():
    assert wait_ms(None, None, 600_000) == 300_000


@pytest.mark.parametrize(
    ("read_ms", "streams", "listens"),
    [(None, False, 0), (600_000, False, 300_000), (5_000, False, 2_500), (5_000, True, 2_500), (60_000, True, 0)],
)
def test_who_hears_nothing_listens_for_half_of_what_it_reads_for(read_ms, streams, listens):
    """A stream hears that its call still stands, if it reads for as long as that takes."""
    assert listens_ms(read_ms, streams=streams) == listens
