"""How many connections fit beside those to targets."""

import resource

from hypothesis import given
from hypothesis import strategies as st

from swarmgate.cli.descriptors import MOST, connections, raise_limit
from swarmgate.core.errors import BadInput
from swarmgate.http1.upstreams import DEFAULT_LIMITS


def test_the_limit_is_raised_as_far_as_it_goes():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = raise_limit()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft >= before[0]
    assert hard == before[1]
    assert most == soft or hard == resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@given(st.integers(0, 2_000_000), st.integers(0, 50), st.none() | st.integers(1, 2_000_000))
def test_what_is_allowed_fits(open_files, targets, asked):
    refused = True
    try:
        found = connections(asked, targets, open_files)
        refused = False
    except BadInput as bad:
        assert str(open_files) in bad.reason  # noqa: PT017  either may happen
    callers = asked or (1 if refused else found)
    fits = callers + min(callers, DEFAULT_LIMITS.most * targets) + 1_024 <= open_files
    assert refused is not fits
    assert refused or found == asked or (asked is None and found <= MOST)
