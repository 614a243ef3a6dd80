"""Which ladder serves a model: its own, its family's, or the one for all."""

from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.keys import KeyRing, QuotaScope
from swarmgate.core.ladders import LONGEST_OWN, MOST_KEYS, MOST_MODELS, Ladders
from swarmgate.core.record import Route, Rung
from swarmgate.core.retry import RetryBudget


def named(model):
    return (Rung("up", model, {}, KeyRing(()), RetryBudget()),)


FAST, CLAUDE, OPUS, ALL = map(named, ("fast", "claude", "opus", "all"))
LADDERS = Ladders({"fast": FAST, "claude-*": CLAUDE, "claude-opus-*": OPUS, "*": ALL})


def test_the_longest_beginning_counts():
    assert LADDERS.by_model == {"fast": FAST}
    assert LADDERS.other("claude-opus-4") == OPUS
    assert LADDERS.other("claude-3") == CLAUDE
    assert LADDERS.other("claude") == ALL


def test_without_a_family_nothing_serves_it():
    some = Ladders({"fast": FAST, "claude-*": CLAUDE})
    assert some.other("gpt-4o") is None
    assert some.nearest("claude_3") == ["claude-*"]
    assert some.nearest("zzz") == ["claude-*", "fast"]


@given(st.text(max_size=200))
def test_every_name_has_a_ladder_where_one_serves_all(model):
    assert LADDERS.by_model.get(model) or LADDERS.other(model)
    assert LADDERS.nearest(model)


def of_any(keys=1, target="up"):
    names = tuple(f"k{number}" for number in range(keys))
    ring = KeyRing([QuotaScope("all", names)])
    return Rung(target, "", {key: Route(key, ()) for key in names}, ring, RetryBudget(), apart=ring.apart)


def test_each_model_that_is_called_has_a_ring_of_its_own():
    any_model = of_any()
    ladders = Ladders({"a-*": (any_model, *FAST), "*": (any_model,)})
    assert ladders.other("m")[0] is any_model  # nobody has called it
    own = ladders.called("m")
    assert ladders.called("m") is own is ladders.other("m")
    rings = [ladders.called(name)[0].ring for name in ("m", "a-1", "a-2")]
    assert len({any_model.ring, *rings}) == 4
    assert ladders.called("a-1")[1] is FAST[0]  # serves one model: its ring is that one's already
    assert own[0].routes is any_model.routes
    assert own[0].retries is any_model.retries
    assert [rung.ring for rung in ladders.met] == rings[:1] + rings[2:] + rings[1:2]
    assert ladders.rungs == [any_model, *FAST]


def test_only_so_many_are_remembered_those_called_last():
    ladders = Ladders({"*": (of_any(),)})
    first, second = ladders.called("first"), ladders.called("second")
    for number in range(2 * MOST_MODELS):
        ladders.called(f"m{number}")
        assert ladders.called("first") is first
    assert len(ladders.met) == MOST_MODELS
    assert ladders.called("second") is not second


def test_names_without_end_and_rings_without_number_share():
    any_model = of_any(MOST_KEYS // 2)
    ladders = Ladders({"*": (any_model,)})
    assert ladders.called("m" * (LONGEST_OWN + 1))[0] is any_model
    for number in range(9):
        ladders.called(f"m{number}")
    assert len(ladders.met) == 2


def test_another_configuration_keeps_the_rings_of_keys_that_stay():
    kept, renewed = of_any(), of_any(target="two")
    ladders = Ladders({"*": (kept, renewed)})
    before = ladders.called("m")
    ladders.called("fast")
    ladders.replace({"fast": FAST, "*": (renewed._replace(ring=KeyRing(()), apart=of_any().apart), kept)})
    after = ladders.other("m")
    assert after[1].ring is before[0].ring
    assert after[0].ring is not before[1].ring
    assert len(ladders.met) == 2  # of one model: the other has a ladder of its own now
    ladders.replace({"fast": FAST})
    assert ladders.met == []
    assert ladders.called("m") is None
