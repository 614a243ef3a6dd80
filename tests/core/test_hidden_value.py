from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.hidden_value import MICRO, HiddenValue, RevisionReason

values = st.integers(1, 10**15)


def rises(value, count):
    return [(value.rise(), value.value) for _ in range(count)]


def test_returns_quickly_to_just_below_the_failing_value_then_probes():
    value = HiddenValue(100 * MICRO, 0, 1_000 * MICRO)
    assert value.cut(100 * MICRO, 100, again=False) is RevisionReason.REFUSED
    assert value.value == 90 * MICRO
    assert rises(value, 3) == [
        (RevisionReason.CLEAN_WINDOW, 95 * MICRO),
        (RevisionReason.PROBE, 96 * MICRO),
        (RevisionReason.PROBE, 97 * MICRO),
    ]


def test_a_repeated_refusal_cuts_deeper():
    value = HiddenValue(100 * MICRO, 0, 1_000 * MICRO)
    assert value.cut(100 * MICRO, 100, again=True) is RevisionReason.REFUSED_AGAIN
    assert value.value == 70 * MICRO
    assert [risen // MICRO for _, risen in rises(value, 4)] == [80, 92, 95, 96]


def test_small_values_are_not_stuck_and_a_refuted_failing_value_is_forgotten():
    value = HiddenValue(3 * MICRO, 3 * MICRO, 60 * MICRO)
    assert rises(value, 5)[-1] == (RevisionReason.PROBE, 3_150_000)
    assert value.failing == 3 * MICRO
    assert rises(value, 2) == [(RevisionReason.PROBE, 3_180_000), (RevisionReason.CLEAN_WINDOW, 3_657_000)]
    assert value.failing == 0


def test_what_was_refused_is_no_longer_safe():
    value = HiddenValue(100 * MICRO, 0, 1_000 * MICRO)
    value.safe = 50
    value.cut(100 * MICRO, 40, again=False)
    assert value.safe == 39


@given(values, values, values, st.lists(st.sampled_from(["rise", "cut", "again", "limit"]), max_size=60), values)
def test_stays_between_one_unit_and_the_ceiling_and_moves_the_way_it_says(start, failing, ceiling, moves, other):
    value = HiddenValue(start, failing, ceiling * MICRO)
    for move in moves:
        before = value.value
        if move == "rise":
            assert (value.rise() is not None) == (value.value > before)
            assert value.value <= max(before * 115 // 100, before + value.failing // 100)
        elif move == "limit":
            assert value.limit(other) == (value.value < before)
        else:
            value.cut(other, 1, again=move == "again")
            assert value.value <= before
        assert MICRO <= value.value <= value.ceiling
