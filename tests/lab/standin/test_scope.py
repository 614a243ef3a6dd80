import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.lab.scenario import ConcurrencyLimit, SlidingLogLimit, TokenBucketLimit
from swarmgate.lab.standin.scope import Scope
from swarmgate.lab.standin.witness_log import Seen, WitnessLog, read_rows, witnesses


def requests(limit, window_ms=1_000):
    return SlidingLogLimit(kind="sliding_log", limit=limit, window_ms=window_ms)


def tokens(limit, window_ms=1_000):
    return TokenBucketLimit(kind="token_bucket", limit=limit, window_ms=window_ms, unit="tokens")


def scope(*limits):
    return Scope("here", "scope-1", limits, WitnessLog(None))


def test_the_first_limit_that_refuses_is_told_and_earlier_ones_have_counted():
    one = scope(requests(2), tokens(100))
    assert one.arrive(0, 60) is None
    refusal = one.arrive(0, 60)
    assert (refusal.unit, refusal.limit, refusal.requested, refusal.used) == ("tokens", 100, 60, 60)
    assert refusal.wait_ms == 200
    assert one.arrive(0, 1).unit == "requests"


def test_what_never_fits_has_no_wait():
    assert scope(tokens(100)).arrive(0, 101).wait_ms is None


def test_a_refused_request_holds_no_place():
    one = scope(ConcurrencyLimit(kind="concurrency", limit=1), tokens(10))
    assert one.arrive(0, 11).unit == "tokens"
    assert one.arrive(0, 5) is None
    assert one.arrive(0, 1).unit == "concurrent"
    one.depart(5, "a", 3)
    assert one.arrive(5, 1) is None


def test_limits_shrink_and_come_back():
    one = scope(requests(10))
    one.shrink(20)
    assert [one.arrive(0, 1) is None for _ in range(3)] == [True, True, False]
    one.shrink(100)
    assert [one.arrive(0, 1) is None for _ in range(11)].count(True) == 10


def test_headers_tell_what_is_left():
    one = scope(requests(10), ConcurrencyLimit(kind="concurrency", limit=5), tokens(100))
    one.arrive(0, 30)
    assert [(rest.unit, rest.remaining) for rest in one.rests(10)] == [("requests", 9), ("tokens", 70)]
    assert [rest.remaining for rest in one.rests(1_000)] == [10, 100]


arrivals = st.lists(st.tuples(st.integers(0, 400), st.integers(1, 60)), max_size=40)


@given(arrivals, st.integers(1, 20), st.integers(20, 200))
def test_what_passed_keeps_every_limit_as_the_witness_counts_it(gaps, most, size):
    with tempfile.TemporaryDirectory() as folder:
        rows = told(Path(folder) / "rows.jsonl", gaps, most, size)
    assert len(rows) == len(gaps)
    passed = [row for row in rows if row.status == 200]
    for witness in witnesses(iter(passed)).values():
        assert witness.over_limit(most, 1_000) == 0
        assert witness.over_limit(size, 700, "tokens") == 0


def told(path, gaps, most, size):
    log = WitnessLog(path)
    one = Scope(
        "here",
        "scope-1",
        (requests(most), SlidingLogLimit(kind="sliding_log", limit=size, window_ms=700, unit="tokens")),
        log,
    )
    now = 0
    for number, (gap, cost) in enumerate(gaps):
        now += gap
        refusal = one.arrive(now, cost)
        log.write(Seen(now, one.place, one.name, "key-1", 1, f"c/{number}", cost, 429 if refusal else 200))
    log.close()
    return list(read_rows(path))


def test_a_file_that_is_no_witness_is_told_by_line(tmp_path):
    path = tmp_path / "rows.jsonl"
    for wrong in ("nonsense", '["heard", 1]', '["seen", 1]'):
        path.write_text(wrong + "\n")
        with pytest.raises(ValueError, match="line 1"):
            list(read_rows(path))
