import contextlib
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmgate.core.once import KEPT_MS, Ruling, Standing
from swarmgate.stores.sql.writes import FILE, Stored, Writes

NOW_MS = 1_800_000_000_000
ANSWER = Stored("c1", 201, "application/json", b'{"id":1}')


@pytest.fixture
def writes(tmp_path):
    opened = Writes.opened(tmp_path)
    yield opened
    opened.close()


def test_a_write_is_on_file_before_it_goes_and_repeats_get_its_answer(writes, tmp_path):
    assert writes.begin("k", "p", "c1", "run", NOW_MS) == (Ruling.PROCEED, None)
    assert writes.begin("k", "p", "c2", "run", NOW_MS)[0] is Ruling.CONFLICT
    writes.end("k", "c1", Standing.DONE, NOW_MS, ANSWER)
    again = Writes.opened(tmp_path)
    assert again.begin("k", "p", "c3", "next run", NOW_MS) == (Ruling.REPLAY, ANSWER)
    assert again.begin("k", "other", "c4", "next run", NOW_MS)[0] is Ruling.MISMATCH
    again.close()


def test_a_free_key_may_be_used_again(writes):
    writes.begin("k", "p", "c1", "run", NOW_MS)
    writes.end("k", "c1", Standing.FREE, NOW_MS)
    assert writes.begin("k", "other", "c2", "run", NOW_MS) == (Ruling.PROCEED, None)


def test_an_answer_goes_with_its_day_although_nobody_writes_any_more(writes, tmp_path):
    writes.begin("k", "p", "c1", "run", NOW_MS)
    writes.end("k", "c1", Standing.DONE, NOW_MS, ANSWER)
    for at_ms, left in ((NOW_MS + KEPT_MS - 1, 1), (NOW_MS + KEPT_MS, 0)):
        writes.forget(at_ms)
        with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as file:
            assert file.execute("select count(*) from writes").fetchone() == (left,)


def test_what_a_dead_run_left_in_flight_is_unknown(writes):
    writes.begin("k", "p", "c1", "run", NOW_MS)
    assert writes.begin("k", "p", "c2", "next run", NOW_MS)[0] is Ruling.UNKNOWN
    assert writes.begin("k", "p", "c3", "run", NOW_MS)[0] is Ruling.UNKNOWN


def test_what_dead_runs_left_in_flight_is_forgotten_a_day_after_it_was_seen_and_what_runs_is_not(writes, tmp_path):
    def left():
        with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as file:
            return dict(file.execute("select key, standing from writes order by key"))

    for key, run in (("dead", "run"), ("runs", "next run")):
        writes.begin(key, "p", key, run, NOW_MS)
    writes.forget(NOW_MS + 3 * KEPT_MS)  # nobody has said yet which run lives
    assert left() == {"dead": "in_flight", "runs": "in_flight"}
    seen_ms = NOW_MS + 3 * KEPT_MS
    writes.forget(seen_ms, "next run")
    assert left() == {"dead": "unknown", "runs": "in_flight"}
    assert writes.begin("dead", "p", "again", "next run", seen_ms + KEPT_MS - 1)[0] is Ruling.UNKNOWN
    writes.forget(seen_ms + KEPT_MS, "next run")
    assert left() == {"runs": "in_flight"}


def test_an_end_of_another_call_changes_nothing(writes):
    writes.begin("k", "p", "c1", "run", NOW_MS)
    writes.end("k", "late", Standing.FREE, NOW_MS)
    assert writes.begin("k", "p", "c2", "run", NOW_MS)[0] is Ruling.CONFLICT


def test_a_day_later_it_is_forgotten_but_not_while_it_runs(writes):
    writes.begin("k", "p", "c1", "run", NOW_MS)
    writes.begin("runs", "p", "c2", "run", NOW_MS)
    writes.end("k", "c1", Standing.DONE, NOW_MS, ANSWER)
    later_ms = NOW_MS + KEPT_MS
    assert writes.begin("k", "p", "c3", "run", later_ms - 1)[0] is Ruling.REPLAY
    assert writes.begin("k", "p", "c4", "run", later_ms)[0] is Ruling.PROCEED
    assert writes.begin("runs", "p", "c5", "run", later_ms)[0] is Ruling.CONFLICT


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("pq"), st.sampled_from([None, *Standing])), max_size=20)
)
def test_never_two_in_flight_and_no_effect_twice(tmp_path_factory, steps):
    writes = Writes.opened(tmp_path_factory.mktemp("writes"))
    running: dict[str, str] = {}
    done: set[str] = set()
    for number, (key, payload, ends) in enumerate(steps):
        call = f"c{number}"
        ruling, _ = writes.begin(key, payload, call, "run", NOW_MS)
        if ruling is Ruling.PROCEED:
            assert key not in running
            assert key not in done
            running[key] = call
        if ends not in (None, Standing.IN_FLIGHT) and key in running:
            writes.end(key, running.pop(key), ends, NOW_MS, ANSWER if ends is Standing.DONE else None)
            done |= {key} if ends is not Standing.FREE else set()
    writes.close()


def test_lg_09_what_is_acknowledged_was_synced(writes):
    """SQLite keeps a transaction over a loss of power only if its log is synced at each commit."""
    with writes._engine.begin() as link:
        assert link.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2
        assert link.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
