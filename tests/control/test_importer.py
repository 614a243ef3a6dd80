"""From journal to ledger: joined, priced, counted, and the same however often and in whatever pieces it is read."""

import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from story import Story, import_all, table

from swarmgate.control.importer import Importer
from swarmgate.core.price import MOST_TOKENS, NO_COUNT
from swarmgate.stores.journal import rows
from swarmgate.stores.sql import tables
from swarmgate.stores.sql.ledger import FILE


def catch_up(importer):
    while not importer.step():
        pass


def everything(importer):
    return {one.name: table(importer, one) for one in tables.metadata.sorted_tables if one.name != "imported"}


def long_story(folder, write=True):
    story = Story(folder)
    story.boot()
    story.revision()
    story.answered("c1")
    first = story.leaves("c2")
    story.ends(first, kind="rate", end="", status=429, reason="target_rate", out_ms=60_000)
    story.ends(story.leaves("c2", attempt=2, key="k2"))
    story.deferred("d1")
    story.add(rows.Unconnected, "c3", "up", "m", "connect_failed", "target_unreachable")
    story.add(rows.LostToken, "c3", "up", "too_old")
    story.add(rows.ClockStep, 5, 7_000)
    story.leaves("c4", client_request_id="own-4")
    story.stop()
    story.ms += 1_000
    story.boot("run2")
    story.leaves("c5", effect="write")
    story.ms += 1_000
    story.boot("run3")
    return story.write() if write else story


def test_a_call_is_joined_from_its_rows(tmp_path):
    importer = import_all(long_story(tmp_path).folder)
    calls = {row["id"]: row for row in table(importer, tables.calls)}
    attempts = {(row["call"], row["attempt"]): row for row in table(importer, tables.attempts)}
    assert (calls["c2"]["end"], calls["c2"]["attempts"], calls["c2"]["step"]) == ("answered", 2, "s1")
    assert (calls["d1"]["end"], calls["d1"]["attempts"]) == ("deferred", 0)
    assert [(name, row["client_request_id"]) for name, row in calls.items() if row["client_request_id"]] == [
        ("c4", "own-4")
    ]
    first, second = attempts["c2", 1], attempts["c2", 2]
    assert (first["kind"], first["status"], first["key"], first["fate"]) == ("rate", 429, "k1", "ended")
    assert (second["kind"], second["key"], second["queue_ms"], second["took_ms"]) == ("ok", "k2", 50, 400)
    (deferral,) = table(importer, tables.deferrals)
    assert (deferral["budget"], deferral["waited_ms"]) == ("up: 4 per 60s", 20)
    (key,) = table(importer, tables.key_events)
    assert (key["what"], key["key"], key["until_ms"] - key["at_ms"]) == ("ejected", "k1", 60_000)
    assert {row["kind"] for row in table(importer, tables.events)} == {
        "boot",
        "stop",
        "crash",
        "unconnected",
        "lost",
        "clock",
    }


def test_only_what_was_open_when_a_gate_died_is_marked_so(tmp_path):
    importer = import_all(long_story(tmp_path).folder)
    fates = {row["call"]: row["fate"] for row in table(importer, tables.attempts)}
    assert fates == {"c1": "ended", "c2": "ended", "c4": "crash", "c5": "crash"}
    ends = {row["id"]: row["end"] for row in table(importer, tables.calls)}
    assert ends["c5"] == "crash"
    lost = [row for row in table(importer, tables.usage) if row["attempts"] > row["answered"]]
    assert sum(row["unpriced"] for row in lost) >= 2  # they were sent, and nobody knows what they cost


@given(st.lists(st.integers(0, 6_000), max_size=5), st.booleans())
@settings(max_examples=15, deadline=None)
def test_pieces_and_restarts_change_nothing(tmp_path_factory, cuts, restarts):
    whole, folder = tmp_path_factory.mktemp("whole"), tmp_path_factory.mktemp("pieces")
    story = long_story(whole)
    wanted, data = everything(import_all(whole)), story.segment.read_bytes()
    segment = Story(folder).segment
    done, importer = 0, Importer.opened(folder)
    for cut in [*sorted(cuts), len(data)]:
        with segment.open("ab") as file:
            file.write(data[done:cut])
        done = max(done, cut)
        if restarts:
            importer.close()
            importer = Importer.opened(folder)
        catch_up(importer)
    assert everything(importer) == wanted


def test_prices_and_usage_by_hour(tmp_path):
    story = Story(tmp_path)
    story.boot()
    story.answered("c1", agent="a1")
    story.answered("c2", agent="a1")
    story.answered("c3", agent="a2", model="unknown")
    story.ends(story.leaves("c4"), prompt_tokens=-5, output_tokens=1 << 60)
    story.ends(story.leaves("c5", model="unknown"), prompt_tokens=NO_COUNT, output_tokens=NO_COUNT)
    importer = import_all(
        story.write().folder, lambda _t, model, sent, got, _c, _at: sent + got if model == "m" else None
    )
    costs = {row["call"]: row["cost_micro"] for row in table(importer, tables.attempts)}
    assert costs == {"c1": 12, "c2": 12, "c3": None, "c4": None, "c5": None}
    usage = {row["agent"] + row["model"]: row for row in table(importer, tables.usage)}
    assert (usage["a1m"]["attempts"], usage["a1m"]["cost_micro"], usage["a1m"]["unpriced"]) == (3, 24, 1)
    assert usage["a1m"]["prompt_tokens"] == 18
    assert usage["a1m"]["output_tokens"] == 6 + MOST_TOKENS
    assert (usage["a2unknown"]["cost_micro"], usage["a2unknown"]["unpriced"]) == (0, 1)
    doubtful = [row for row in table(importer, tables.events) if row["kind"] == tables.DOUBTFUL]
    assert [(row["call"], row["target"], row["reason"]) for row in doubtful] == [
        ("c4", "up", "usage"),
        ("c5", "up", "usage"),
    ]
    assert str(1 << 60) in doubtful[0]["detail"]


def test_notes_that_were_not_recorded_are_no_crash(tmp_path):
    story = Story(tmp_path)
    story.boot()
    story.leaves("before")
    story.add(rows.Gap, 5, story.ms, "No space left on device")
    story.leaves("after")
    story.boot("run2")
    importer = import_all(story.write().folder)
    assert {row["call"]: row["fate"] for row in table(importer, tables.attempts)} == {
        "after": "crash",
        "before": "unrecorded",
    }


def test_a_gate_that_is_gone_without_a_word(tmp_path):
    story = Story(tmp_path)
    story.boot()
    story.leaves("c1")
    importer = import_all(story.write().folder)
    importer.gate_died(story.ms + 9)
    (attempt,) = table(importer, tables.attempts)
    assert (attempt["fate"], attempt["ended_ms"]) == ("crash", story.ms + 9)
    story.boot("run2")
    story.write()
    assert not importer.step()
    assert [row["kind"] for row in table(importer, tables.events)] == ["boot", "boot", "crash"]


def test_lg_14_a_ledger_restored_from_a_backup_hears_the_rest_again(tmp_path):
    story = Story(tmp_path)
    story.boot()
    story.answered("before")
    story.leaves("open")
    import_all(story.write().folder).close()
    shutil.copy(tmp_path / FILE, tmp_path / "backup")
    story.boot("run2")
    story.answered("after")
    importer = import_all(story.write().folder)
    wanted = everything(importer)
    importer.close()
    for file in tmp_path.glob(f"{FILE}*"):
        file.unlink()
    (tmp_path / "backup").replace(tmp_path / FILE)
    assert everything(import_all(tmp_path)) == wanted


def test_damage_in_the_journal_is_an_event(tmp_path):
    story = Story(tmp_path)
    story.boot()
    story.write()
    with story.segment.open("ab") as file:
        file.write(b"00000000 rubbish\n")
    story.answered("c1")
    story.write()
    importer = import_all(tmp_path)
    assert importer.damaged == 1
    assert [row["kind"] for row in table(importer, tables.events)] == ["boot", "damaged"]
    assert len(table(importer, tables.attempts)) == 1


def test_listeners_hear_rows_once_they_are_kept(tmp_path):
    story = long_story(tmp_path)
    importer, heard = Importer.opened(tmp_path), []
    importer.listeners.append(heard.extend)
    catch_up(importer)
    assert [row.seq for row in heard] == [row.seq for row in story.rows]
    intents = {(row.call, row.attempt): row for row in story.rows if isinstance(row, rows.Intent)}
    for row in heard:
        assert not isinstance(row, rows.Done)
        if isinstance(row, rows.Note):  # with what its intent said
            intent = intents[row.call, row.attempt]
            assert (row.target, row.key, row.took_ms) == (intent.target, intent.key, row.at_ms - intent.at_ms)


def test_a_ledger_that_cannot_be_written_loses_nothing(tmp_path):
    story, importer = long_story(tmp_path, write=False), Importer.opened(tmp_path)
    for number in range(300):  # more than there is room for in the pages of an empty ledger
        story.answered(f"more{number}")
    story.write()
    with importer.ledger.connection() as link:
        pages = link.exec_driver_sql("PRAGMA page_count").scalar_one()
        link.exec_driver_sql(f"PRAGMA max_page_count={pages}")
    with pytest.raises(OSError, match="full"):
        catch_up(importer)
    assert not table(importer, tables.attempts)
    assert importer.rows == 0
    with importer.ledger.connection() as link:
        link.exec_driver_sql("PRAGMA max_page_count=1000000")
    catch_up(importer)
    assert len(table(importer, tables.attempts)) == 305
    assert importer.rows == len(story.rows)
