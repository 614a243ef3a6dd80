"""Which limits are in force: revisions go on over restarts, and an unreadable file is kept."""

from dataclasses import replace

import pytest
from disk import Desk
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmgate.core.compiler import Published
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.stores.journal.in_force import FILE, InForce, Limit, Why
from swarmgate.stores.journal.reader import newest_policy

FOREIGN = (  # as a later version might write it
    b'{"policy":7,"budgets":{"x":{"limits":{"most":5},"policy":1,"target":"","unit":"requests","amount":5,"window_ms":0,'
    b'"at_ms":1,"author":"a","reason":"r"}}}'
)
WHY = Why("ann", "they asked for it")
ONE = Limit(Limits(BudgetKind.LEVEL, burst=3, quota=8, window_ms=60_000), Published(10, 60_000), "up")
OTHER = ONE._replace(limits=replace(ONE.limits, quota=4), published=Published(5, 60_000))


def adopt(folder, told, now_ms=5, why=WHY):
    force = InForce(folder, now_ms)
    adopted = force.adopt(told, why, now_ms)
    force.save()
    return force, adopted


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from([ONE, OTHER])), max_size=8))
@settings(max_examples=40, deadline=None)
def test_a_revision_counts_changes_and_the_policy_all_of_them(tmp_path_factory, starts):
    folder = tmp_path_factory.mktemp("force")
    known, policies = {}, [0]
    for told in starts:
        force, adopted = adopt(folder, told)
        changes = [name for name, limit in told.items() if name not in known or known[name][0] != limit]
        for name, limit in told.items():
            before = known.get(name, (limit, 1))
            known[name] = (limit, before[1] + (before[0] != limit))
            assert adopted[name].revision == known[name][1]
            assert replace(adopted[name], revision=1) == limit.limits
        assert force.policy == policies[-1] + bool(changes)
        policies.append(force.policy)


def test_rows_say_whose_word_it_was_and_since_when(tmp_path):
    adopt(tmp_path, {"up: 10": ONE}, now_ms=5, why=Why("configuration", "start"))
    force, _ = adopt(tmp_path, {"up: 10": OTHER}, now_ms=90)
    (row,) = force.rows({"up: 10": OTHER, "unknown": ONE}, 7, 100)
    assert (row.seq, row.at_ms, row.since_ms, row.policy, row.revision) == (7, 100, 90, 2, 2)
    assert (row.target, row.unit, row.amount, row.window_ms) == ("up", "requests", 5, 60_000)
    assert (row.kind, row.burst, row.quota, row.per_ms, row.paused) == ("level", 3, 4, 60_000, False)
    assert (row.author, row.reason) == WHY
    again, _ = adopt(tmp_path, {"up: 10": OTHER}, now_ms=200)
    assert again.rows({"up: 10": OTHER}, 7, 200)[0].since_ms == 90


def test_pausing_is_a_revision(tmp_path):
    adopt(tmp_path, {"x": ONE})
    _, adopted = adopt(tmp_path, {"x": ONE._replace(limits=replace(ONE.limits, paused=True))})
    assert (adopted["x"].revision, adopted["x"].paused) == (2, True)


@pytest.mark.parametrize("rubbish", [b"", b"{", b"[]", b'{"policy": "x"}', b"\xff\xff", FOREIGN])
def test_a_file_that_cannot_be_read_is_kept_and_numbers_go_on_beyond_it(tmp_path, rubbish):
    (tmp_path / FILE).write_bytes(rubbish)
    force, adopted = adopt(tmp_path, {"x": ONE}, now_ms=1_800_000_000_000)
    assert "cannot be read" in force.sentence
    kept = [path for path in tmp_path.iterdir() if "broken" in path.name]
    assert [path.read_bytes() for path in kept] == [rubbish]
    assert force.policy > 1_000_000
    assert adopted["x"].revision == 1
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_nothing_is_written_before_it_is_saved(tmp_path):
    force = InForce(tmp_path, 1)
    force.adopt({"x": ONE}, WHY, 1)
    assert not list(tmp_path.iterdir())


@given(st.lists(st.integers(0, 2_500), min_size=1, max_size=4))
@settings(max_examples=10, deadline=None)
def test_numbers_of_changes_that_are_not_kept_come_once_over_any_number_of_crashes(tmp_path_factory, lives):
    folder, given_out = tmp_path_factory.mktemp("numbers"), []
    for changes in lives:
        force = InForce(folder, 1)
        given_out += [force.next_policy() for _ in range(changes)]
    assert given_out == sorted(set(given_out))
    assert (InForce(folder, 1).policy or 0) >= max(given_out, default=0)


def test_az_13_what_was_replaced_is_told_in_words_but_not_at_the_first_start(tmp_path):
    first, _ = adopt(tmp_path, {"a": ONE, "b": ONE})
    assert first.replaced == {}
    again, _ = adopt(tmp_path, {"a": OTHER, "b": ONE, "c": ONE})
    assert again.replaced == {"a": ("10 per 60000 ms", "5 per 60000 ms"), "c": ("", "10 per 60000 ms")}
    again.adopt({"a": OTHER}, WHY, 9)
    assert again.replaced == {}


@pytest.mark.parametrize("is_gone", [True, False])
def test_lg_14_no_number_is_given_twice_where_the_file_is_older_than_the_journal(tmp_path, is_gone):
    force, _ = adopt(tmp_path, {"up: 10": ONE})
    desk = Desk(tmp_path / "journal")
    backup = (tmp_path / FILE).read_bytes()
    force, _ = adopt(tmp_path, {"up: 10": OTHER})
    for row in force.rows({"up: 10": OTHER}, *desk.journal.next()):
        desk.journal.add(row)
    desk.journal.policy = force.policy
    desk.leaves(desk.call("c1"))
    assert newest_policy(tmp_path / "journal") == force.policy == 2
    (tmp_path / FILE).unlink()
    if not is_gone:
        (tmp_path / FILE).write_bytes(backup)
    again = InForce(tmp_path, 9)
    again.not_before(newest_policy(tmp_path / "journal"))
    again.adopt({"up: 10": ONE}, Why("configuration", "start"), 9)
    assert "counted anew" in again.sentence
    assert [(row.policy, row.amount) for row in again.rows({"up: 10": ONE}, 1, 9)] == [(3, ONE.published.amount)]


def test_a_journal_that_a_crash_left_open_is_read_to_its_last_row(tmp_path):
    assert newest_policy(tmp_path) == 0
    desk = Desk(tmp_path)
    assert newest_policy(tmp_path) == 0
    desk.journal.policy = 7
    desk.leaves(desk.call("c1"))
    Desk(tmp_path, start_ms=desk.loop.ms + 5)  # the next one has said nothing of it yet
    assert newest_policy(tmp_path) == 7
