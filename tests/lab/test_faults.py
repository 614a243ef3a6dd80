from random import Random
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.lab.errors import LabError
from swarmgate.lab.faults import HOUR_MS, RULES, Fault, FaultKind, found_out, places_of, random_plan, without

KINDS = get_args(FaultKind)


def test_every_kind_has_its_rule():
    assert set(RULES) == set(KINDS)


@given(st.integers(0, 2**64), st.integers(10, 10**8), st.lists(st.sampled_from(KINDS), min_size=1), st.integers(1, 4))
def test_plans_are_reproducible_ordered_and_over_by_the_horizon(seed, horizon_ms, kinds, gates):
    plan = random_plan(Random(seed), horizon_ms, kinds, targets=("a", "b"), gates=gates)
    assert plan == random_plan(Random(seed), horizon_ms, kinds, targets=("a", "b"), gates=gates)
    assert 1 <= len(plan) <= 6 * gates  # a swizzle is one draw
    assert list(plan) == sorted(plan, key=lambda fault: fault.at_ms)
    assert all(fault.kind in kinds and fault.ends_ms <= horizon_ms for fault in plan)
    places = places_of(("a", "b"), gates)
    assert all(fault.where in places[RULES[fault.kind].place] for fault in plan)


def test_plans_of_many_seeds_hold_every_kind_short_and_long_and_clock_steps_both_ways():
    faults = [fault for seed in range(300) for fault in random_plan(Random(seed), 1_000_000, targets=("a",))]
    assert {fault.kind for fault in faults} == set(KINDS)
    lasting = [fault.for_ms for fault in faults if fault.for_ms]
    assert min(lasting) < 10
    assert max(lasting) > 100_000
    steps = [fault.amount for fault in faults if fault.kind == "clock_step"]
    assert min(steps) < -HOUR_MS // 10
    assert max(steps) > HOUR_MS // 10


@pytest.mark.parametrize(
    ("others", "lies"),
    [
        ((), 0),
        ((Fault("power_loss", 20, 5, "gate-1"),), 1),
        ((Fault("power_loss", 1, 5, "gate-1"),), 0),
        ((Fault("power_loss", 20, 5, "gate-2"),), 0),
        ((Fault("gate_stop", 20, 5, "gate-1", 3),), 1),
        ((Fault("gate_stop", 20, 5, "gate-1"), Fault("gate_crash", 30, 5, "gate-1")), 0),
    ],
)
def test_a_disk_that_lied_is_found_out_by_a_loss_of_power_only(others, lies):
    assert found_out((Fault("disk_lie", 10, 5, "gate-1"), *others)) == lies


def test_a_plan_without_targets_strikes_none_and_one_without_any_place_is_refused():
    kinds = {fault.kind for seed in range(100) for fault in random_plan(Random(seed), 1000)}
    assert {RULES[kind].place for kind in kinds} == {"gate", "store", "agents"}
    with pytest.raises(LabError) as caught:
        random_plan(Random(1), 1000, ("loss",))
    assert caught.value.field == "kinds"


@given(st.integers(0, 2**32), st.integers(-2, 8))
def test_shrinking_leaves_out_exactly_one(seed, index):
    plan = random_plan(Random(seed), 1000)
    if 0 <= index < len(plan):
        assert sorted([*without(plan, index), plan[index]], key=repr) == sorted(plan, key=repr)
    else:
        with pytest.raises(LabError):
            without(plan, index)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"kind": "stall", "at_ms": -1, "for_ms": 1, "where": "a"}, "at_ms"),
        ({"kind": "stall", "at_ms": 0, "where": "a"}, "for_ms"),
        ({"kind": "store_flush", "at_ms": 0, "for_ms": 5}, "for_ms"),
        ({"kind": "stall", "at_ms": 0, "for_ms": 1, "where": "a", "amount": 1}, "amount"),
        ({"kind": "loss", "at_ms": 0, "for_ms": 1, "where": "a", "amount": 1001}, "amount"),
        ({"kind": "clock_step", "at_ms": 0}, "amount"),
        ({"kind": "clock_step", "at_ms": 0, "amount": HOUR_MS + 1}, "amount"),
        ({"kind": "store_down", "at_ms": 0, "for_ms": 1, "where": "a"}, "where"),
        ({"kind": "client_leaves", "at_ms": 0, "for_ms": 1, "amount": 5}, "where"),
        ({"kind": "loss", "at_ms": 0, "for_ms": 1, "where": "agents", "amount": 5}, "where"),
        ({"kind": "store_cut", "at_ms": 0, "for_ms": 1}, "where"),
        ({"kind": "revision", "at_ms": 0, "where": "a", "amount": 200}, "amount"),
        ({"kind": "gate_crash", "at_ms": 0, "for_ms": 1}, "where"),
    ],
)
def test_a_fault_that_cannot_be_is_refused_by_name(fields, field):
    with pytest.raises(LabError) as caught:
        Fault(**fields)
    assert caught.value.field == field
