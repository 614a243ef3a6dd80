import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.core.target import Target, parse_target
from swarmgate.core.target_errors import BadPattern, BadTarget
from swarmgate.core.target_table import OTHER, TargetTable, forget_target, place_target

CONFIGURED = Target("https", "api.example.com", 443)
MOVES = st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 5)), max_size=60)


def _host(group, number):
    return Target("https", f"h{number}.g{group}.com", 443)


@given(MOVES)
def test_the_table_keeps_its_bounds_and_nobody_loses_a_place(moves):
    table = TargetTable(cap=7, group_cap=3, configured=[CONFIGURED])
    for places, group, number in moves:
        target = _host(group, number)
        before = dict(table.known)
        if not places:
            forget_target(table, target)
            assert target not in table.known
            continue
        placed = place_target(table, target, f"g{group}.com")
        assert before.items() <= table.known.items()
        assert (placed == target) is (target in table.known)
        assert placed in {target, OTHER, Target("other", f"*.g{group}.com", 0)}
    assert len(table.known) <= 7
    assert all(0 < size <= 3 for size in table.group_sizes.values())
    assert sum(table.group_sizes.values()) == len(table.known)
    assert place_target(table, CONFIGURED, "example.com") == CONFIGURED


def test_a_flood_of_subdomains_uses_up_its_own_group_only():
    table = TargetTable(cap=1_000, group_cap=20)
    placed = {place_target(table, _host(0, number), "g0.com").key for number in range(50_000)}
    assert len(placed) == 21
    assert "other://*.g0.com" in placed
    assert table.overflowed == 49_980
    assert place_target(table, _host(1, 1), "g1.com") == _host(1, 1)


def test_a_full_table_shares_one_target_until_an_idle_one_is_forgotten():
    table = TargetTable(cap=2, group_cap=1)
    for group in (0, 1):
        place_target(table, _host(group, 0), f"g{group}.com")
    assert place_target(table, _host(2, 0), "g2.com") is OTHER
    assert place_target(table, _host(0, 0), "g0.com") == _host(0, 0)
    forget_target(table, _host(0, 0))
    assert place_target(table, _host(2, 0), "g2.com") == _host(2, 0)


def test_configured_targets_cannot_be_forgotten_or_displaced():
    table = TargetTable(cap=1, group_cap=1, configured=[CONFIGURED])
    place_target(table, _host(0, 0), "g0.com")
    forget_target(table, CONFIGURED)
    assert place_target(table, CONFIGURED, "example.com") == CONFIGURED


def test_no_caller_can_name_a_shared_target():
    assert OTHER.key == "other://*"
    with pytest.raises(BadTarget):
        parse_target(OTHER.key)


@pytest.mark.parametrize(("cap", "group_cap"), [(0, 0), (5, 0), (5, 6)])
def test_caps_are_checked(cap, group_cap):
    with pytest.raises(BadPattern):
        TargetTable(cap, group_cap)
