"""What the control process says of its own files: once when trouble begins, once when it is over, and of lines that are none."""

import asyncio
import json
import sqlite3
from contextlib import closing
from os import utime

from processes import provider, query, up

from eventually import eventually
from swarmgate.control.process import MOST_WAL_BYTES, Control, Files, Options
from swarmgate.core.once import Standing
from swarmgate.stores.letters.letter import Letter
from swarmgate.stores.letters.shelf import FOLDER, Shelf
from swarmgate.stores.sql.agent_keys import AgentKeys
from swarmgate.stores.sql.ledger import FILE
from swarmgate.stores.sql.writes import FILE as WRITES
from swarmgate.stores.sql.writes import Writes


class Importer:
    """Fails as told, `True` = has nothing to do; ends `control` when there is nothing more to be told."""

    damaged = 0
    has_more = False
    price = None

    def __init__(self, steps):
        self.listeners = []
        self._steps = iter(steps)
        self.control = None

    def step(self):
        outcome = next(self._steps, None)
        if outcome is None:
            self.control._over.set()
        if isinstance(outcome, OSError):
            raise outcome
        self.damaged += 2 if outcome == "damaged" else 0
        return True

    def forget(self, _now_ms):
        return True


def test_a_full_disk_is_told_once_and_its_end_once(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("swarmgate.control.process.IDLE_S", 0.001)
    full = OSError("database or disk is full")
    importer = Importer([True, full, full, full, True, "damaged", True, full, True])

    async def play():
        with closing(Writes.opened(tmp_path)) as writes, closing(AgentKeys.opened(tmp_path)) as keys:
            importer.control = control = Control(Options(tmp_path, "127.0.0.1", 0), Files(importer, writes, keys))
            await control._import()

    asyncio.run(play())
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == [
        "ledger_not_written",
        "ledger_written_again",
        "journal_lines_damaged",
        "ledger_not_written",
        "ledger_written_again",
    ]
    assert "disk is full" in lines[0]["reason"]
    assert lines[2]["lines"] == 2


def test_lg_06_a_log_that_somebody_keeps_from_shrinking_is_told_once(tmp_path, capfd):
    log = tmp_path / f"{FILE}-wal"

    async def play():
        with closing(Writes.opened(tmp_path)) as writes, closing(AgentKeys.opened(tmp_path)) as keys:
            control = Control(Options(tmp_path, "127.0.0.1", 0), Files(Importer([]), writes, keys))
            for size in (None, 1, MOST_WAL_BYTES, MOST_WAL_BYTES + 1, MOST_WAL_BYTES + 2, 0, MOST_WAL_BYTES + 1):
                if size is not None:
                    with log.open("ab") as file:
                        file.truncate(size)
                control._look_at_wal()

    asyncio.run(play())
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [(line["event"], line["bytes"]) for line in lines] == [("ledger_log_grows", MOST_WAL_BYTES + 1)] * 2


def test_a_damaged_line_of_the_journal_is_told_and_its_neighbours_are_read(tmp_path):
    async def play():
        async with provider() as (_, port):
            async with up(tmp_path / "state", port, "--no-control") as gate:
                assert (gate.operator_port, gate.child) == (0, 0)
                for number in range(4):
                    assert (await gate.call(f"c{number}")).status == 200
                assert await gate.end() == 0
            (journal,) = (gate.folder / "journal").glob("*.log")
            lines = journal.read_bytes().split(b"\n")
            broken = next(at for at, line in enumerate(lines) if b'"c2"' in line)
            lines[broken] = lines[broken].replace(b'"c2"', b'"cX"')
            journal.write_bytes(b"\n".join(lines))
            async with up(tmp_path / "state", port) as gate:
                await gate.ready()
                await eventually(lambda: any('"journal_lines_damaged"' in text for text in gate.said), 20)
                assert await gate.end() == 0
            steps = {step for (step,) in query(gate.folder, "SELECT step FROM calls")}
            assert steps == {"c0", "c1", "c3"}

    asyncio.run(play())


def test_an_alert_says_that_the_ledger_cannot_be_written(tmp_path, monkeypatch):
    """Whoever only looks at alerts must hear of it: keyed writes and capped money stand still meanwhile."""
    now = {"now_ms": 1_800_000_000_000, "turned_away": {}, "pools": {}, "open": {}, "debt_units": 0}
    now |= dict.fromkeys(("budgets", "agents", "oldest_ms", "watched", "retries_left", "keys_out"), ())

    async def play():
        with closing(Writes.opened(tmp_path)) as writes, closing(AgentKeys.opened(tmp_path)) as keys:
            control = Control(Options(tmp_path, "127.0.0.1", 0), Files(Importer([]), writes, keys))

            async def order(_name, _said):
                return now

            monkeypatch.setattr(control, "order", order)
            control._stands("cannot be written: database or disk is full")
            look = asyncio.get_running_loop().create_task(control._look(), name="look")
            await eventually(lambda: control.alerts()["firing"])
            look.cancel()
            return control.alerts()["firing"]

    (alert,) = asyncio.run(play())
    assert (alert["alert"], "ledger: cannot be written" in alert["text"]) == ("store_degraded", True)


def test_what_may_be_kept_no_longer_goes_although_nothing_comes_after_it(tmp_path):
    shelf = Shelf(tmp_path)
    shelf.put(Letter("old", 0, "target_error", "up", "m", 4, {}, "POST", "/v1/x", [], b"{}"), 0)
    utime(tmp_path / FOLDER / "old.json", (1, 1))

    async def play():
        with closing(Writes.opened(tmp_path)) as writes, closing(AgentKeys.opened(tmp_path)) as keys:
            writes.begin("k", "p", "c", "run", 0)
            writes.end("k", "c", Standing.DONE, 0)
            control = Control(Options(tmp_path, "127.0.0.1", 0), Files(Importer([]), writes, keys))
            tidy = asyncio.get_running_loop().create_task(control._tidy(), name="tidy")
            with closing(sqlite3.connect(tmp_path / WRITES)) as file:
                await eventually(lambda: file.execute("select count(*) from writes").fetchone() == (0,))
            tidy.cancel()

    asyncio.run(play())
    assert not shelf.letters()
