"""The ledger's file: whatever is wrong with it is said, and nothing is put in its place."""

import sqlite3

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from swarmgate.core.errors import BadInput
from swarmgate.stores.sql import ledger as ledgers
from swarmgate.stores.sql.ledger import FILE, Ledger, wal_bytes
from swarmgate.stores.sql.tables import calls, metadata


def made(folder):
    ledger = Ledger.opened(folder)
    with ledger.connection() as link:
        link.execute(calls.insert(), [{"id": f"c{number}", "agent": "a" * 50} for number in range(500)])
    ledger.close()
    return folder / FILE


def test_the_migrations_make_the_tables(tmp_path):
    ledger = Ledger.opened(tmp_path)
    with ledger.connection() as link:
        assert compare_metadata(MigrationContext.configure(link), metadata) == []
        assert link.execute(text("PRAGMA journal_mode")).scalar_one() == "wal"
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0


def test_it_goes_on_where_it_was(tmp_path):
    made(tmp_path)
    for opened in (Ledger.opened, Ledger.to_read):
        ledger = opened(tmp_path)
        with ledger.connection() as link:
            assert link.execute(text("SELECT count(*) FROM calls")).scalar_one() == 500
        ledger.close()


@pytest.mark.parametrize("opened", [Ledger.opened, Ledger.to_read])
def test_a_newer_schema_is_refused(tmp_path, opened):
    path = made(tmp_path)
    with sqlite3.connect(path) as link:
        link.execute("UPDATE alembic_version SET version_num = '9999'")
    link.close()
    before = path.read_bytes()
    with pytest.raises(BadInput, match="9999") as caught:
        opened(tmp_path)
    assert "newer" in caught.value.reason
    assert path.read_bytes() == before


def test_one_of_an_older_program_is_brought_to_this_schema_by_who_writes_it(tmp_path, monkeypatch):
    upgrade = command.upgrade
    monkeypatch.setattr(ledgers.command, "upgrade", lambda settings, _revision: upgrade(settings, "0001"))
    ledger = Ledger.opened(tmp_path)
    with ledger.connection() as link:
        link.execute(text("INSERT INTO attempts (call, attempt, fate, cost_micro) VALUES ('c1', 1, 'ended', 7)"))
        link.execute(text("INSERT INTO usage (team, cost_micro) VALUES ('blue', 7)"))
        link.execute(text("INSERT INTO calls (id) VALUES ('c1')"))
    ledger.close()
    monkeypatch.undo()
    with pytest.raises(BadInput, match="0001 of an older program; start `swarmgate up` once"):
        Ledger.to_read(tmp_path)
    Ledger.opened(tmp_path).close()
    ledger = Ledger.to_read(tmp_path)
    with ledger.connection() as link:
        assert link.execute(text("SELECT cost_micro, estimated FROM attempts")).one() == (7, 0)
        assert link.execute(text("SELECT id, client_request_id FROM calls")).one() == ("c1", "")
        assert link.execute(text("SELECT cost_micro, estimated_tokens, estimated_micro FROM usage")).one() == (7, 0, 0)
    ledger.close()


def test_a_file_that_was_emptied_is_refused_and_stays(tmp_path):
    path = made(tmp_path)
    for rest in tmp_path.iterdir():
        if rest != path:
            rest.unlink()
    path.write_bytes(b"")
    with pytest.raises(BadInput, match="is empty; restore a backup"):
        Ledger.opened(tmp_path)
    assert path.read_bytes() == b""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return made(tmp_path_factory.mktemp("whole"))  # its path: half a megabyte is no argument that anybody could print


@given(st.integers(0, 60), st.binary(min_size=64, max_size=4_096))
@settings(max_examples=12, deadline=None)
def test_a_damaged_file_is_refused_or_whole_and_never_replaced(tmp_path_factory, whole, at, rubbish):
    path = tmp_path_factory.mktemp("damaged") / FILE
    data = bytearray(whole.read_bytes())
    at = at * len(data) // 61
    data[at : at + len(rubbish)] = rubbish[: len(data) - at]
    path.write_bytes(data)
    refused, ledger = None, None
    try:
        ledger = Ledger.opened(path.parent)
    except BadInput as bad:
        refused = bad
    if ledger is None:
        assert refused.field == str(path)
        assert path.stat().st_size == len(data)
        return
    with ledger.connection() as link:  # what was hit says nothing: free space, or text
        assert link.execute(text("SELECT count(*) FROM calls")).scalar_one() == 500
    ledger.close()


@pytest.mark.parametrize("open_it", [Ledger.opened, Ledger.to_read])
def test_a_schema_that_is_no_text_is_told_like_any_damage(tmp_path, whole, open_it):
    data = whole.read_bytes()
    at = data.index(b"CREATE TABLE calls")
    (tmp_path / FILE).write_bytes(data[: at + 7] + b"\x80" * 32 + data[at + 39 :])
    with pytest.raises(BadInput, match="what it holds is no text"):
        open_it(tmp_path)


def test_a_file_of_something_else(tmp_path):
    (tmp_path / FILE).write_bytes(b"no database at all, but long enough to be read as one" * 99)
    for opened in (Ledger.opened, Ledger.to_read):
        with pytest.raises(BadInput, match="not a database"):
            opened(tmp_path)


def test_llm_gateways_60_readers_change_nothing_and_see_what_is_being_written(tmp_path):
    with pytest.raises(BadInput, match="--state"):
        Ledger.to_read(tmp_path)
    writer = Ledger.opened(tmp_path)
    reader = Ledger.to_read(tmp_path)
    with writer.connection() as link:
        link.execute(calls.insert(), [{"id": "c1"}])
    with reader.connection() as link:
        assert link.execute(text("SELECT count(*) FROM calls")).scalar_one() == 1
        with pytest.raises(Exception, match="readonly"):
            link.execute(calls.insert(), [{"id": "c2"}])
    reader.close()
    writer.close()


def test_a_transaction_is_whole(tmp_path):
    ledger = Ledger.opened(tmp_path)

    def fail():
        with ledger.connection() as link:
            link.execute(calls.insert(), [{"id": "c1"}])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with ledger.connection() as link:
        assert link.execute(text("SELECT count(*) FROM calls")).scalar_one() == 0


def test_lg_06_whoever_reads_for_long_keeps_nobody_from_writing_and_the_log_is_given_back(tmp_path, monkeypatch):
    monkeypatch.setattr("swarmgate.stores.sql.ledger._WAL_BYTES", 200_000)
    writer, reader = Ledger.opened(tmp_path), Ledger.to_read(tmp_path)

    def write(batch, most=50):
        with writer.connection() as link:
            link.execute(calls.insert(), [{"id": f"c{batch}-{n}", "agent": "a" * 500} for n in range(most)])

    counted = text("SELECT count(*) FROM calls")
    with reader.connection() as link:
        assert link.execute(counted).scalar_one() == 0  # and it goes on reading this
        for batch in range(60):
            write(batch)
        assert link.execute(counted).scalar_one() == 0
        grown = wal_bytes(tmp_path)
        assert grown > 1_500_000
    reader.close()
    write(60)  # the first commit with nobody in the way puts it into the file, the next one begins anew
    write(61)
    assert wal_bytes(tmp_path) <= 200_000
    with writer.connection() as link:
        assert link.execute(counted).scalar_one() == 62 * 50
    writer.close()
