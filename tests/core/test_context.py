"""What may give way to a summary: never what is fixed, last or signed, and no call without its result."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.context import KEPT_TURNS, SUMMARY_TOKENS, Cut, Turn, choose, cuts

names = st.frozensets(st.sampled_from("abcdef"), max_size=2)
turns = st.builds(
    Turn,
    st.sampled_from(["system", "developer", "user", "assistant", "tool"]),
    st.integers(1, 5_000),
    names,
    st.sampled_from([False, False, False, True]),
)
stories = st.lists(turns, max_size=24)


@given(stories, st.integers(0, 5_000))
def test_what_must_stay_stays_and_what_belongs_together_goes_together(story, beside):
    for cut in cuts(story, beside):
        gone = set(cut.dropped)
        assert gone
        for at in gone:
            assert story[at].role not in {"system", "developer"}
            assert not story[at].signed
            assert at < len(story) - KEPT_TURNS
        for at, turn in enumerate(story):
            for other, its in enumerate(story):
                if turn.calls & its.calls:
                    assert (at in gone) == (other in gone)
        left = sum(turn.tokens for at, turn in enumerate(story) if at not in gone)
        assert cut.tokens == left + beside + SUMMARY_TOKENS


@given(stories, st.integers(0, 5_000))
def test_cuts_grow(story, beside):
    found = cuts(story, beside)
    for smaller, larger in pairwise(found):
        assert set(smaller.dropped) < set(larger.dropped)
        assert smaller.tokens > larger.tokens


@given(stories, st.integers(0, 5_000), st.integers(0, 60_000), st.integers(0, 20))
def test_a_choice_fits_and_a_known_one_is_used_again(story, beside, ceiling, known_at):
    found = cuts(story, beside)
    chosen = choose(found, ceiling, lambda _cut: False)
    if chosen is None:
        assert all(cut.tokens > ceiling for cut in found)
        return
    assert chosen.tokens <= ceiling
    if chosen is not found[-1]:
        assert 2 * chosen.tokens <= ceiling
    known = found[known_at % len(found)]
    again = choose(found, ceiling, lambda cut: cut == known)
    assert again == (known if known.tokens <= ceiling else chosen)


def test_a_call_and_its_result():
    story = [
        Turn("system", 10),
        Turn("user", 100),
        Turn("assistant", 100, frozenset({"x"})),
        Turn("user", 100),
        Turn("tool", 100, frozenset({"x"})),
        *[Turn("user", 10)] * KEPT_TURNS,
    ]
    assert [cut.dropped for cut in cuts(story, 0)] == [(1,), (1, 2, 4), (1, 2, 3, 4)]
    assert choose([], 100, lambda _cut: True) is None
    assert choose([Cut((1,), 101)], 100, lambda _cut: True) is None
