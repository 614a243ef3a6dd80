"""What is certain of a prompt's size: never more words than its strings have, and nothing where a provider may cut."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from swarmgate.core.keys import KeyRing
from swarmgate.core.record import Rung
from swarmgate.core.retry import RetryBudget
from swarmgate.gate.least import MOST_BYTES, least_tokens
from swarmgate.gate.peek import peek

WORDS = "word " * 5_000
LONG = {"messages": [{"role": "user", "content": WORDS}]}


def least(said, window=1_000, **form):
    rung = Rung("up", "m", {}, KeyRing(()), RetryBudget(), window=lambda _model: window)
    return least_tokens(peek(json.dumps({"model": "m"} | said, **form).encode()), rung)


@pytest.mark.parametrize("form", [{}, {"separators": (",", ":")}, {"indent": 4}], ids=["spaced", "compact", "pretty"])
def test_words_are_tokens(form):
    assert 4_900 < least(LONG, **form) <= 5_000
    assert least(LONG, window=6_000, **form) == 0
    assert least(LONG, window=0, **form) == 0


@pytest.mark.parametrize(
    "said",
    [
        {"messages": [{"role": "user", "content": "x" * 40_000}]},  # a picture, say
        {"messages": [{"role": "user", "content": " " * 40_000}]},
        {"messages": [], "tools": [{"function": {"name": "f", "description": WORDS}}]},
        {"input": WORDS, "truncation": "auto"},
        LONG | {"context_management": {}},
        LONG | {"transforms": ["middle-out"]},
        LONG | {"plugins": [{"id": "context-compression"}]},
        LONG | {"truncate_prompt_tokens": 500},
        {"messages": [{"role": "assistant", "content": [{"type": "thinking", "thinking": WORDS}]}]},
        {"messages": [{"role": "assistant", "reasoning_content": WORDS}]},
        {"messages": [{"role": "assistant", "content": f"<think>{WORDS}</think>"}]},
        {"prompt": ["word " * 100] * 50},
        {"messages": [{"role": "user", "content": "hi"}]},
    ],
)
def test_what_a_model_may_not_read_counts_nothing(said):
    assert least(said) == 0


def test_a_long_prompt_is_looked_at_only_so_far():
    assert least({"input": "a " * MOST_BYTES}) <= MOST_BYTES // 2


TEXT = st.text("ab ,:{}[]\n\t\\\"'\u00e9\u00a0\u2003\u3000", max_size=60)


@example(parts=[(" ", [])], indent=None)
@example(parts=[(" \n" * 30, [])], indent=None)
@example(parts=[(" \u00a0" * 30, [])], indent=None)
@example(parts=[("\u2003 \u3000 " * 15, ["\t \t" * 15])], indent=None)
@given(st.lists(st.tuples(TEXT, st.lists(TEXT, max_size=3)), max_size=20), st.sampled_from([None, 1, 4]))
def test_never_more_than_there_are_words(parts, indent):
    tree = [{"role": one, "content": [{"text": text} for text in texts]} for one, texts in parts]
    words = sum(len(text.split()) for one, texts in parts for text in (one, *texts))
    padding = {"role": "user", "content": "word " * 2_000}
    for ascii_only in (True, False):
        said = {"messages": [*tree, padding]}
        assert least(said, window=1, indent=indent, ensure_ascii=ascii_only) <= words + 2_000
