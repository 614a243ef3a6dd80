import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.effect import EFFECT_HEADER, Effect, effect_of
from swarmgate.core.errors import BadInput


@pytest.mark.parametrize(
    ("method", "path_class", "effect"),
    [
        ("POST", "generate", Effect.READ),
        ("POST", "embeddings", Effect.READ),
        ("POST", "count_tokens", Effect.READ),
        ("GET", "", Effect.READ),
        ("HEAD", "anything", Effect.READ),
        ("OPTIONS", "", Effect.READ),
        ("POST", "", Effect.WRITE),
        ("PUT", "", Effect.WRITE),
        ("DELETE", "", Effect.WRITE),
        ("get", "", Effect.WRITE),
        ("BREW", "Generate", Effect.WRITE),
    ],
)
def test_what_the_call_itself_tells(method, path_class, effect):
    assert effect_of(method, path_class) is effect


def test_the_operator_outranks_method_and_class():
    assert effect_of("POST", "search", declared=Effect.READ) is Effect.READ
    assert effect_of("GET", "unsubscribe", declared=Effect.WRITE) is Effect.WRITE


def test_the_caller_may_be_stricter_and_never_laxer_without_policy():
    assert effect_of("GET", "", asked="write") is Effect.WRITE
    assert effect_of("GET", "", asked="read") is Effect.READ
    assert effect_of("POST", "", asked="read", may_relax=True) is Effect.READ
    with pytest.raises(BadInput, match="policy") as refusal:
        effect_of("POST", "", asked="read")
    assert refusal.value.field == EFFECT_HEADER


unknown_words = st.text(min_size=1).filter(lambda word: word not in {"read", "write"})


@given(st.text(), st.text(), st.none() | st.sampled_from(Effect), unknown_words, st.booleans())
def test_an_unknown_word_is_refused(method, path_class, declared, asked, may_relax):
    with pytest.raises(BadInput, match="read or write"):
        effect_of(method, path_class, declared=declared, asked=asked, may_relax=may_relax)


@given(st.text(), st.text(), st.none() | st.sampled_from(Effect), st.sampled_from(["", "write"]))
def test_nothing_but_policy_makes_a_write_a_read(method, path_class, declared, asked):
    unasked = effect_of(method, path_class, declared=declared)
    effect = effect_of(method, path_class, declared=declared, asked=asked)
    assert effect is (Effect.WRITE if asked else unasked)
