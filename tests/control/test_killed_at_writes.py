"""A process that is killed at any of its writes loses nothing that it acknowledged, and nothing twice (reliability LG-01)."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import killed_work
import pytest
from story import import_all, table

from swarmgate.stores.sql import ledger, tables, writes

HERE = Path(__file__).parent
PATHS = [str(HERE), str(HERE.parent)]
KEPT = (tables.calls, tables.attempts, tables.deferrals, tables.usage, tables.events)


def told(folder):
    importer = import_all(folder)
    found = {one.name: table(importer, one) for one in KEPT}
    importer.close()
    return found


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace kills at a call of the system; it is not here")
@pytest.mark.parametrize(("call", "most", "step"), [("pwrite64", 400, 57), ("fdatasync", 38, 7)])
def test_lg_01_killed_at_any_write(tmp_path, call, most, step):
    strace = [
        "strace",
        "-f",
        "-qq",
        "-o",
        os.devnull,
        "-e",
        f"trace={call}",
        "-e",
        f"inject={call}:signal=KILL:when={most}",
    ]
    command = [*strace, sys.executable, str(HERE / "killed_work.py"), str(tmp_path), "0", str(most), str(step)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*PATHS, os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, check=False, capture_output=True, timeout=100, env=environment)
    if b"ptrace" in done.stderr.lower():
        pytest.skip(f"nobody may be traced here: {done.stderr[:80].decode()}")
    assert done.returncode == 0, done.stderr
    whole = tmp_path / "whole"
    whole.mkdir()
    killed_work.tell(whole)
    wanted = told(whole)
    ends = set()
    for ahead in range(0, most, step):
        folder = tmp_path / str(ahead)
        said = [json.loads(line) for line in (folder / "acknowledged").read_bytes().splitlines()]
        ends.add(len(said))
        for name in (writes.FILE, ledger.FILE):
            if (folder / name).exists():
                link = sqlite3.connect(folder / name)
                assert link.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                link.close()
        if said:
            link = sqlite3.connect(folder / writes.FILE)
            kept = dict(link.execute("SELECT key, standing FROM writes"))
            link.close()
            for what, key in said:
                assert kept[key] in (
                    {"done"} if ("done" in {w for w, k in said if k == key}) else {"in_flight", "done"}
                ), what
        assert told(folder) == wanted  # the next process goes on, whatever the last one left
    assert len(ends) > 3  # they died in different places
