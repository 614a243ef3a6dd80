"""Which ladder serves a model: its own, its family's, or the one for all."""

from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.ladders import Ladders

LADDERS = Ladders({"fast": ("fast",), "claude-*": ("claude",), "claude-opus-*": ("opus",), "*": ("all",)})


def test_the_longest_beginning_counts():
    assert LADDERS.by_model == {"fast": ("fast",)}
    assert LADDERS.other("claude-opus-4") == ("opus",)
    assert LADDERS.other("claude-3") == ("claude",)
    assert LADDERS.other("claude") == ("all",)


def test_without_a_family_nothing_serves_it():
    some = Ladders({"fast": ("fast",), "claude-*": ("claude",)})
    assert some.other("gpt-4o") is None
    assert some.nearest("claude_3") == ["claude-*"]
    assert some.nearest("zzz") == ["claude-*", "fast"]


@given(st.text(max_size=200))
def test_every_name_has_a_ladder_where_one_serves_all(model):
    assert LADDERS.by_model.get(model) or LADDERS.other(model)
    assert LADDERS.nearest(model)
