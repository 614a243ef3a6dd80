"""How many connections fit beside those to targets."""

import resource

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.cli.descriptors import MOST, connections, raise_limit
from swarmgate.core.errors import BadInput


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
    kept = 1_024 + 260 * targets
    if open_files - kept < (asked or 1):
        with pytest.raises(BadInput, match=str(kept)):
            connections(asked, targets, open_files)
    else:
        found = connections(asked, targets, open_files)
        assert found == asked if asked else 1 <= found <= MOST
        assert found + kept <= open_files
