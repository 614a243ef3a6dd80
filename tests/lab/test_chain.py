"""A text that tells what is missing in it (SE-07)."""

from hypothesis import given
from hypothesis import strategies as st

from swarmgate.lab.chain import CHARS_PER_TOKEN, Heard, chained, heard

LENGTHS = st.integers(4, 60)


def cut_out(text, at):
    return (
        text[: at * CHARS_PER_TOKEN],
        text[at * CHARS_PER_TOKEN :][:CHARS_PER_TOKEN],
        text[(at + 1) * CHARS_PER_TOKEN :],
    )


@given(st.text(max_size=20), LENGTHS)
def test_what_came_whole_is_whole(name, tokens):
    assert heard(name, tokens, chained(name, tokens)) == Heard(tokens)


@given(LENGTHS, st.data())
def test_each_token_that_is_lost_doubled_or_moved_is_told(tokens, data):
    text = chained("a", tokens)
    before, token, after = cut_out(text, data.draw(st.integers(0, tokens - 2)))
    assert heard("a", tokens, before + after)[1:] == (1, 0, 0)
    assert heard("a", tokens, before + token + token + after)[1:] == (0, 1, 0)
    assert heard("a", tokens, before + after[:CHARS_PER_TOKEN] + token + after[CHARS_PER_TOKEN:])[1:] == (0, 0, 2)


def test_another_stream_is_not_this_one():
    assert heard("a", 40, chained("b", 40)) == Heard(40, 40, 40)
    assert heard("a", 40, "") == Heard(0, 40)
