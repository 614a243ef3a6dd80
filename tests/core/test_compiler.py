"""Published limits compile to budgets that keep them (design 2: P2); yields as promised."""

import json
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from swarmgate.core import kernel
from swarmgate.core.answers import Granted
from swarmgate.core.book import Book, Take, first_score
from swarmgate.core.compiler import WAY, Published, Unit, compile_limit
from swarmgate.core.floors import floors
from swarmgate.core.limits import EXACT, BadLimit, BudgetKind
from swarmgate.core.routing import budget, route

PRESETS = json.loads((Path(__file__).parents[1] / "data/presets.json").read_text())["limits"]

published = st.builds(
    Published,
    amount=st.integers(1, 10**9),
    window_ms=st.integers(1, 3_600_000 - 1),
    unit=st.sampled_from([Unit.REQUESTS, Unit.TOKENS, Unit.INPUT_TOKENS, Unit.OUTPUT_TOKENS]),
    headroom_percent=st.integers(1, 100),
    answer_ms=st.integers(0, 60_000),
    largest=st.tuples(*[st.integers(1, 50_000)] * 3),
)


@given(published)
def test_every_bucket_keeps_the_window_at_the_target_and_the_headroom(one):
    assume(max(one.largest) <= one.amount)
    try:
        made = compile_limit(one)
    except BadLimit:
        assume(one.unit is Unit.REQUESTS and max(one.largest) == 1)
        raise
    limits = made.limits
    if limits.kind is BudgetKind.LEVEL:
        arrives = (
            2 * limits.burst * limits.window_ms + limits.quota * (one.window_ms + made.fresh_ms)
        ) // limits.window_ms
        assert arrives + made.undelivered <= one.amount
        mean = limits.quota * one.window_ms * 100
        assert mean <= one.headroom_percent * one.amount * limits.window_ms
        assert limits.burst >= max(one.largest)
    else:
        assert limits.burst == one.amount
        assert limits.hold_ms * one.headroom_percent >= one.window_ms * 100


@given(published)
@example(Published(5_000, 60_000, headroom_percent=100))
@example(Published(100_000, 3_600_000, headroom_percent=100))
def test_no_rate_waits_for_what_is_on_its_way_for_a_tenth_of_a_second(one):
    try:
        made = compile_limit(one)
    except BadLimit:
        return
    if made.way() is not None and made.limits.kind is BudgetKind.LEVEL:
        assert made.undelivered * made.limits.window_ms >= made.limits.quota * min(100, one.window_ms // 10)
    elif made.way() is not None:
        assert made.undelivered * one.window_ms >= made.limits.burst * 100


@given(st.integers(60, 10**7), st.integers(60_000, 3_599_999))
def test_long_windows_yield_three_quarters(amount, window_ms):
    assert compile_limit(Published(amount, window_ms)).yield_permille >= 750


@given(st.integers(1, 10**7), st.integers(0, 300))
def test_a_second_yields_more_than_half(amount, answer_ms):
    assert compile_limit(Published(amount, 1_000, answer_ms=answer_ms)).yield_permille >= 550


@given(st.integers(200_000, 10**8), st.integers(1, 32_000))
def test_token_minutes_yield_most_and_let_the_largest_call_in(amount, largest):
    made = compile_limit(Published(amount, 60_000, Unit.TOKENS, largest=(largest,) * 3))
    assert made.limits.burst >= largest
    if amount >= 16 * largest:
        assert made.yield_permille >= 750


@given(st.integers(1_000, 10**8), st.integers(1, 300))
def test_only_output_is_never_on_its_way(amount, largest):
    ways = {
        unit: compile_limit(Published(amount, 60_000, unit, largest=(largest,) * 3)).way()
        for unit in (Unit.TOKENS, Unit.INPUT_TOKENS, Unit.OUTPUT_TOKENS)
    }
    assert ways[Unit.OUTPUT_TOKENS] is None
    assert ways[Unit.INPUT_TOKENS] == ways[Unit.TOKENS] is not None


def refused(bad, field):
    with pytest.raises(BadLimit) as caught:
        compile_limit(bad)
    assert caught.value.field == field
    assert caught.value.reason


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (Published(0, 1_000), "amount"),
        (Published(-1, 1_000), "amount"),
        (Published(2**53, 1_000), "amount"),
        (Published(10, 0), "window_ms"),
        (Published(10, 1_000, headroom_percent=0), "headroom_percent"),
        (Published(10, 1_000, headroom_percent=101), "headroom_percent"),
        (Published(10, 1_000, Unit.TOKENS, largest=(11, 1, 1)), "amount"),
        (Published(10, 1_000, largest=(1, 0, 1)), "largest[1]"),
        (Published(10, 1_000, largest=(-5, 1, 1)), "largest[0]"),
        (Published(10, 1_000, reserve=-5), "reserve"),
        (Published(3, 1_000, Unit.TOKENS, largest=(2, 2, 2)), "amount"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_field(bad, field):
    refused(bad, field)


@pytest.mark.interpreted  # as compiled code, `Published` itself takes no other types
@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"amount": True}, "amount"),
        ({"amount": 1.5}, "amount"),
        ({"window_ms": "1s"}, "window_ms"),
        ({"largest": (1, 1, 1.5)}, "largest[2]"),
        ({"window_ms": 86_400_000, "reset_ms": "x"}, "reset_ms"),
    ],
)
def test_so_is_what_is_no_whole_number(said, field):
    refused(Published(**{"amount": 10, "window_ms": 1_000, **said}), field)


@given(st.integers(0, 10**6), st.tuples(*[st.integers(1, 10**5)] * 3), st.one_of(st.none(), st.integers(0, 10**6)))
def test_floors_never_lock_a_class_out(burst, largest, reserve):
    made = floors(burst, largest, reserve)
    assert made[0] == 0
    assert 0 <= made[1] <= burst
    if made[2]:
        assert all(floor + cost <= burst for floor, cost in zip(made, largest, strict=True))


def test_a_day_is_counted_in_slices_and_a_known_reset_in_one():
    day = compile_limit(Published(1_000, 86_400_000))
    assert (day.limits.kind, day.limits.slices, day.limits.burst) == (BudgetKind.COUNTER, 24, 800)
    known = compile_limit(Published(1_000, 86_400_000, reset_ms=7 * 3_600_000))
    assert (known.limits.slices, known.limits.anchor_ms) == (1, 7 * 3_600_000)
    assert known.yield_permille == 800
    assert day.limits.window_ms < EXACT


counted = st.builds(
    Published,
    st.integers(1, 10**6),
    st.sampled_from((3_600_000, 86_400_000, 3_600_001, 2_592_000_000)),
    st.sampled_from((Unit.REQUESTS, Unit.TOKENS, Unit.INPUT_TOKENS, Unit.BYTES, Unit.POINTS)),
    headroom_percent=st.sampled_from((1, 37, 80, 100)),
    largest=st.tuples(*[st.sampled_from((1, 7, 1_000))] * 3),
    reset_ms=st.sampled_from((None, 0, 1_234)),
)


@given(counted)
def test_a_counter_leaves_room_for_what_was_on_its_way_when_a_window_began(published):
    try:
        made = compile_limit(published)
    except BadLimit:
        return  # the headroom leaves no call
    way = made.way()
    assert way is not None
    assert min(way.burst, made.limits.burst) >= max(published.largest)
    has_room = published.amount >= 2 * max(published.largest)
    assert way.burst + made.limits.burst <= published.amount + (0 if has_room else max(published.largest))
    assert made.limits.burst * 100 <= published.amount * published.headroom_percent


@pytest.mark.parametrize("reset_ms", [None, 0])
def test_no_window_at_the_target_holds_more_than_a_counter_s_limit_however_late_requests_arrive(reset_ms):
    day_ms, first_ms = 86_400_000, 30 * 86_400_000
    limit = budget("day", Published(1_000, day_ms, reset_ms=reset_ms))
    demands = route("key", [limit]).demands(0, 0)
    book = Book(0)
    book.now_ms = first_ms - 1
    for name, limits in limit.limits():
        kernel.define(book, name, limits)

    def sent(now_ms):
        asked = [
            Take(f"{now_ms} {n}", f"{now_ms} {n}", 0, first_score(0), (demands,), 9 * day_ms) for n in range(1_001)
        ]
        return [one.lease for one in asked if isinstance(kernel.take(book, one._replace(waits=False), now_ms), Granted)]

    arrived, on_its_way = 0, sent(first_ms - 1)
    assert on_its_way
    for now_ms in range(first_ms, first_ms + day_ms, day_ms // 10):  # one window at the target
        arrived += len(on_its_way)
        for lease in on_its_way:
            kernel.settle(book, lease, (("day" + WAY, 1, 0),), now_ms, last=False)
        on_its_way = sent(now_ms)
    assert 800 <= arrived <= 1_000


@pytest.mark.parametrize("limit", PRESETS, ids=lambda one: f"{one['id']}-{one['amount']}-{one['per_s']}")
def test_every_published_preset_compiles(limit):
    unit = Unit(limit["unit"])
    window_ms = 0 if unit is Unit.CONCURRENT else int(limit["per_s"] * 1_000)
    made = compile_limit(Published(limit["amount"], window_ms, unit))
    if window_ms >= 60_000 and limit["amount"] >= 60:
        assert made.yield_permille >= 750
    if window_ms == 1_000 and unit is Unit.REQUESTS:
        assert made.yield_permille >= 550
