"""Files get their name when they are whole, and a file without its name keeps nothing (reliability LG-01, OP-09)."""

import sqlite3

import pytest

from swarmgate.core.errors import BadInput
from swarmgate.core.once import Ruling
from swarmgate.stores.sql import ledger, place, writes
from swarmgate.stores.sql.ledger import Ledger
from swarmgate.stores.sql.tables import calls
from swarmgate.stores.sql.writes import Writes

KINDS = [(Ledger, ledger.FILE), (Writes, writes.FILE)]


@pytest.mark.parametrize(("kind", "name"), KINDS)
def test_lg_01_a_process_that_dies_while_it_makes_a_file_leaves_none(tmp_path, kind, name):
    def dies(fresh):
        with sqlite3.connect(fresh) as link:
            link.execute("CREATE TABLE half (x)")
        link.close()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        place.made_whole(tmp_path / name, dies)
    assert not (tmp_path / name).exists()
    kind.opened(tmp_path).close()
    assert (tmp_path / name).stat().st_mode & 0o077 == 0
    kind.opened(tmp_path).close()


@pytest.mark.parametrize(("kind", "name"), KINDS)
def test_what_lies_beside_a_file_that_is_gone_is_not_taken_for_the_new_ones(tmp_path, kind, name):
    opened = kind.opened(tmp_path)
    log = (tmp_path / f"{name}-wal").read_bytes()
    opened.close()
    (tmp_path / name).unlink()
    (tmp_path / f"{name}-wal").write_bytes(log)
    kind.opened(tmp_path).close()


def test_op_09_a_removed_file_acknowledges_nothing(tmp_path):
    opened = Writes.opened(tmp_path)
    assert opened.begin("k", "p", "c1", "run", 1)[0] is Ruling.PROCEED
    (tmp_path / writes.FILE).unlink()
    with pytest.raises(OSError, match="removed"):
        opened.begin("k2", "p", "c2", "run", 2)
    opened.close()


def test_op_09_neither_does_one_that_was_replaced(tmp_path):
    opened = Ledger.opened(tmp_path)
    copy = tmp_path / "copy"
    copy.write_bytes((tmp_path / ledger.FILE).read_bytes())
    copy.replace(tmp_path / ledger.FILE)
    with pytest.raises(OSError, match="replaced"), opened.connection() as link:
        link.execute(calls.insert(), [{"id": "c1"}])
    opened.close()


def test_a_file_that_cannot_be_made_is_told(tmp_path):
    with pytest.raises((OSError, BadInput)):
        Writes.opened(tmp_path / "nowhere")
