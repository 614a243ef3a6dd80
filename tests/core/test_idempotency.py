import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.errors import BadInput
from swarmgate.core.idempotency import from_header, from_operation

parts = st.text(st.sampled_from("ab1:,0 \u00e9"), min_size=1, max_size=6)
sequences = st.integers(0, 10**15 - 1).map(str)
operations = st.tuples(parts | st.just(""), parts, parts, st.sampled_from(["0", "1", "11"]))


@given(operations, operations)
def test_different_operations_never_share_a_key(one, other):
    assert (from_operation(*one) == from_operation(*other)) == (one == other)
    assert (from_operation(*one).sent == from_operation(*other).sent) == (one == other)


@given(st.text(st.sampled_from("ab1:,"), min_size=4, max_size=8), st.data())
def test_moving_text_from_part_to_part_makes_another_key(text, data):
    cuts = st.lists(st.integers(1, len(text) - 1), min_size=2, max_size=2, unique=True).map(sorted)
    one, other = (
        (text[:first], text[first:second], text[second:]) for first, second in (data.draw(cuts), data.draw(cuts))
    )
    assert (from_operation(*one, "1") == from_operation(*other, "1")) == (one == other)


@given(operations, st.text(st.sampled_from('ab1:," '), min_size=1, max_size=20))
def test_a_header_never_meets_an_operation(operation, value):
    if value.strip('"'):
        assert from_header(operation[0], value).stored != from_operation(*operation).stored


@given(parts, parts, sequences)
def test_tenants_never_meet(agent, task, sequence):
    assert from_operation("a", agent, task, sequence) != from_operation("b", agent, task, sequence)
    assert from_header("a", "key").stored != from_header("b", "key").stored


def test_one_operation_in_two_spellings():
    assert from_operation("t", "a17", "g3", "007") == from_operation("t", "a17", "g3", "7")
    assert from_header("t", '"8e03978e-40d5"').stored == from_header("t", "8e03978e-40d5").stored
    assert from_header("t", '"8e03978e-40d5"').sent == '"8e03978e-40d5"'


def test_what_leaves_says_nothing_about_the_agent():
    sent = from_operation("tenant", "agent-17", "task-3", "1").sent
    assert len(sent) == 32
    assert set(sent) <= set("0123456789abcdef")


@pytest.mark.parametrize(
    ("operation", "field"),
    [
        (("t", "", "task", "1"), "x-swarmgate-agent"),
        (("t", "agent", "", "1"), "x-swarmgate-task"),
        (("t", "agent", "task", ""), "x-swarmgate-op"),
        (("t", "agent", "task", "-1"), "x-swarmgate-op"),
        (("t", "agent", "task", "1.0"), "x-swarmgate-op"),
        (("t", "agent", "task", "\u0661"), "x-swarmgate-op"),
        (("t", "agent", "task", "9" * 16), "x-swarmgate-op"),
        (("t", "a" * 256, "task", "1"), "x-swarmgate-agent"),
    ],
)
def test_all_three_parts_are_needed(operation, field):
    with pytest.raises(BadInput) as refusal:
        from_operation(*operation)
    assert refusal.value.field == field


@pytest.mark.parametrize("value", ["", '""', "a\nb", "\u00e9", "x" * 256])
def test_unusable_headers_are_refused(value):
    with pytest.raises(BadInput) as refusal:
        from_header("t", value)
    assert refusal.value.field == "idempotency-key"


@given(st.text(), st.text(), st.text(), st.text())
def test_any_text_is_a_key_or_the_typed_error(tenant, agent, task, sequence):
    for make in (lambda: from_operation(tenant, agent, task, sequence), lambda: from_header(tenant, agent)):
        try:
            key = make()
        except BadInput:
            continue
        assert key.stored
        assert key.sent
