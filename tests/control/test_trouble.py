"""What the control process says of its own files: once when trouble begins, once when it is over, and of lines that are none."""

import asyncio
import json
from contextlib import closing

from processes import provider, query, up

from eventually import eventually
from swarmgate.control.process import MOST_WAL_BYTES, Control, Files, Options
from swarmgate.stores.sql.agent_keys import AgentKeys
from swarmgate.stores.sql.ledger import FILE
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
