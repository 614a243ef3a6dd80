"""A sound file that cannot be used now is not called damaged: who moves it away loses what it holds."""

import sqlite3
from contextlib import closing

import pytest

from swarmgate.core.errors import BadInput
from swarmgate.core.scope import NOBODY
from swarmgate.stores.sql import agent_keys, ledger, small, writes


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(small, "_BUSY_S", 0)
    monkeypatch.setattr(ledger, "_BUSY_MS", 0)


@pytest.mark.parametrize(
    ("opened", "file"),
    [
        (ledger.Ledger.opened, ledger.FILE),
        (writes.Writes.opened, writes.FILE),
        (agent_keys.AgentKeys.opened, agent_keys.FILE),
    ],
)
def test_a_file_that_another_process_holds_need_not_be_damaged(tmp_path, opened, file):
    opened(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / file)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BadInput, match="leave it where it is") as caught:
            opened(tmp_path)
    assert "restore" not in caught.value.reason
    opened(tmp_path).close()


def test_a_key_that_cannot_be_kept_is_an_answer_and_no_bug(tmp_path):
    with (
        closing(agent_keys.AgentKeys.opened(tmp_path)) as keys,
        closing(sqlite3.connect(tmp_path / agent_keys.FILE)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BadInput, match="nothing has changed"):
            keys.create("n", NOBODY, 1)
        other.rollback()
        assert keys.create("n", NOBODY, 1)


@pytest.mark.parametrize(
    ("opened", "file", "schema"),
    [
        (writes.Writes.opened, writes.FILE, writes.SCHEMA),
        (agent_keys.AgentKeys.opened, agent_keys.FILE, agent_keys.SCHEMA),
    ],
)
def test_a_newer_schema_and_a_damaged_file_are_refused(tmp_path, opened, file, schema):
    with closing(sqlite3.connect(tmp_path / file)) as link:
        link.execute(f"PRAGMA user_version={schema + 1}")
    with pytest.raises(BadInput, match="newer"):
        opened(tmp_path)
    (tmp_path / file).write_bytes(b"no database at all" * 100)
    with pytest.raises(BadInput, match="cannot be used"):
        opened(tmp_path)
    (tmp_path / file).write_bytes(b"")
    with pytest.raises(BadInput, match="is empty; restore a backup"):
        opened(tmp_path)
