from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.prompt_size import PROMPT_BOUNDS, PROMPT_SIZES, prompt_size


def test_each_bound_is_the_last_of_its_size():
    assert [prompt_size(bound) for bound in PROMPT_BOUNDS] == list(range(PROMPT_SIZES - 1))
    assert [prompt_size(bound + 1) for bound in PROMPT_BOUNDS] == list(range(1, PROMPT_SIZES))
    assert (prompt_size(-1), prompt_size(0), prompt_size(2**70)) == (0, 0, PROMPT_SIZES - 1)


@given(st.integers(0, 1 << 24), st.integers(0, 1 << 24))
def test_a_longer_prompt_is_of_no_smaller_size(one, more):
    assert 0 <= prompt_size(one) <= prompt_size(one + more) < PROMPT_SIZES
