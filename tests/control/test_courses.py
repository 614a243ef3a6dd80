"""Limits beside traffic: those of keys add up, those that are taken together do not, and each instant has its own."""

from hypothesis import given
from hypothesis import strategies as st
from test_tally import SPAN, revision, ruled

from swarmgate.control.courses import courses


def limit(budget, takers, *amounts, **named):
    """A budget that was told these amounts one after another."""
    common = {"budget": budget, "takers": {("up", key) for key in takers}} | named
    return [revision(amount, at + 1, at * 1_000, **common) for at, amount in enumerate(amounts)]


def test_what_is_taken_together_stands_apart():
    found = courses(
        ruled([*limit("a", "1", 5), *limit("all", "12", 8), *limit("b", "2", 7), *limit("none", "", 3)], [])
    )
    assert [(one.budgets, one.at(0)) for one in found] == [(("a", "b"), 12), (("all",), 8), (("none",), 3)]
    assert found[0].name == "limits of a, and 1 more, together"
    assert found[1].name == "limit of all"


def test_other_units_and_windows_stand_apart():
    told = [*limit("a", "1", 5), *limit("b", "2", 7, window_ms=2_000), *limit("c", "3", 9, unit="tokens")]
    assert [one.budgets for one in courses(ruled(told, []))] == [("a",), ("b",), ("c",)]


@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=4), min_size=1, max_size=5), st.integers(0, 9_999))
def test_the_sum_is_that_of_each_instant(amounts, at_ms):
    told = [row for key, each in enumerate(amounts) for row in limit(f"key-{key}", str(key), *each)]
    (one,) = courses(ruled(told, []))
    assert one.at(at_ms) == sum(each[min(at_ms // 1_000, len(each) - 1)] for each in amounts)
    assert one.at(SPAN.to_ms) is None
