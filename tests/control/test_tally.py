"""The most in any window, found while sends pass, is what counting every window finds; and what follows from it."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from swarmgate.control.tally import MOST_WINDOWS, LimitVerdict, Sent, Windows, read_send, rulings, worst
from swarmgate.stores.sql.reading import Span

SPAN = Span(0, 10_000)


def revision(amount=5, revision=1, since_ms=0, **named):
    return {
        "budget": "up: 5",
        "revision": revision,
        "unit": "requests",
        "amount": amount,
        "window_ms": 1_000,
        "takers": {("up", "k1"), ("up", "a"), ("up", "b")},
        "author": "ann",
        "reason": "why",
        "paused": False,
        "since_ms": since_ms,
    } | named


def send(at_ms, key="k1", tokens=10, ended_ms=None, refused=False):
    return Sent(at_ms, at_ms + 1 if ended_ms is None else ended_ms, "up", key, tokens, tokens, 0, refused)


def ruled(revisions, sends, span=SPAN):
    return rulings(revisions, sends, span)


instants = st.lists(st.integers(0, 9_999), max_size=40).map(sorted)


@given(instants, st.integers(1, 6), st.sampled_from([1, 500, 1_000, 20_000]))
def test_the_most_in_any_window_is_exact(at, amount, window_ms):
    (one,) = ruled([revision(amount, window_ms=window_ms)], map(send, at))
    most = max((sum(start <= other < start + window_ms for other in at) for start in at), default=0)
    assert one.most == most
    assert one.sent == len(at)
    wanted = LimitVerdict.BROKE if most > amount else LimitVerdict.RIGHT if at else LimitVerdict.UNUSED
    assert one.verdict is wanted


@given(st.lists(st.tuples(st.integers(0, 9_000), st.integers(1, 900)), max_size=30).map(sorted), st.integers(1, 6))
def test_the_most_at_once_is_exact(calls, amount):
    sends = [send(at, ended_ms=at + took) for at, took in calls]
    (one,) = ruled([revision(amount, unit="concurrent", window_ms=0)], sends)
    most = max((sum(other <= at < other + took for other, took in calls) for at, _ in calls), default=0)
    assert one.most == most


@given(instants, st.lists(st.integers(0, 9_999), max_size=4, unique=True).map(sorted))
def test_every_send_stands_under_exactly_one_revision(at, changes):
    since = sorted({0, *changes})
    found = ruled([revision(revision=number, since_ms=ms) for number, ms in enumerate(since, 1)], map(send, at))
    assert sum(one.sent for one in found) == len(at)
    assert all(one.span.to_ms == following.span.from_ms for one, following in pairwise(found))


def test_a_right_a_wrong_and_a_broken_budget():
    sends = [send(100 * number, refused=False) for number in range(20)]
    refused = [one._replace(refused=index % 4 == 0) for index, one in enumerate(sends)]
    assert ruled([revision(20)], sends)[0].verdict is LimitVerdict.RIGHT
    assert ruled([revision(20)], refused)[0].verdict is LimitVerdict.WRONG
    assert ruled([revision(3)], refused)[0].verdict is LimitVerdict.BROKE
    few = [send(number) for number in range(999)] + [send(5_000, refused=True)]
    assert ruled([revision(2_000)], few)[0].verdict is LimitVerdict.RIGHT  # one in a thousand is others' traffic
    assert ruled([revision(2_000)], [send(1, refused=True)])[0].verdict is LimitVerdict.WRONG
    assert worst(ruled([revision(3), revision(2, budget="x")], refused)) is LimitVerdict.BROKE
    assert worst([]) is LimitVerdict.NONE


def test_what_was_learned_is_a_pace_and_a_window_may_hold_one_burst_beyond_it():
    pace = {"budget": "news:learned:rate", "amount": 2, "burst": 1, "quota": 2_858, "per_ms": 1_000_000}
    even = [send(350 * number) for number in range(20)]  # as slow as 2.858 in each second
    (one,) = ruled([revision(**pace)], even)
    assert (one.most, one.allowed, one.verdict) == (3, 3, LimitVerdict.RIGHT)
    (one,) = ruled([revision(**pace)], sorted([*even, send(1_500)]))
    assert (one.most, one.verdict) == (4, LimitVerdict.BROKE)


def test_a_limit_counts_those_that_take_from_it():
    sends = [send(1, "a"), send(2, "b"), send(3, "a")]
    (one,) = ruled([revision(takers={("up", "a"), ("other", "b")})], sends)
    assert (one.sent, one.most) == (2, 2)


def test_tokens_count_as_the_target_counted_them():
    (one,) = ruled([revision(25, unit="tokens")], [send(1), send(2), send(3)])
    assert (one.most, one.verdict) == (30, LimitVerdict.BROKE)


def test_what_a_cache_held_counts_only_where_the_target_says_so():
    row = {"sent_ms": 1, "ended_ms": 2, "target": "up", "key": "k", "kind": "ok"}
    row |= {"prompt_tokens": 4_000, "output_tokens": 40, "cached_tokens": 3_500}
    counted, free = read_send(row), read_send(row, {"up"})
    assert [counted.units(unit) for unit in ("tokens", "input_tokens", "output_tokens")] == [4_040, 4_000, 40]
    assert [free.units(unit) for unit in ("tokens", "input_tokens", "output_tokens")] == [540, 500, 40]
    assert read_send(row | {"cached_tokens": None}, {"up"}) == counted


def test_a_table_of_windows_is_bounded():
    windows = Windows(Span(0, 86_400_000), 1_000)
    assert len(windows.rows) <= MOST_WINDOWS
    windows.add(0, 0)
    windows.add(86_399_999, 2)
    windows.add(86_400_000 + windows.window_ms, 0)
    windows.add(-windows.window_ms, 0)
    assert sum(map(sum, windows.rows)) == 2
