"""A control process's work, to be killed at any of its writes: run under strace by test_killed_at_writes.py."""

import json
import os
import sys
from pathlib import Path

from story import Story

from swarmgate.control.importer import Importer
from swarmgate.core.once import Standing
from swarmgate.stores.journal import reader
from swarmgate.stores.sql.ledger import Ledger
from swarmgate.stores.sql.writes import Stored, Writes

WRITES = 6
CHUNK_BYTES = 1_500  # of the journal, so that it is several batches


def tell(folder):
    """A journal with calls that were answered, put off, cut off."""
    story = Story(folder)
    story.boot()
    for number in range(12):
        story.answered(f"c{number}", agent=f"a{number % 3}")
        story.deferred(f"d{number}")
    story.leaves("cut")
    story.boot("run2")
    story.write()


def work(folder, told):
    """Keyed writes and imports in turn; what is done is acknowledged in the file `told`."""

    def acknowledge(*what):
        os.write(told, json.dumps(what).encode() + b"\n")

    writes, importer = Writes.opened(folder), Importer(folder, Ledger.opened(folder))
    for number in range(WRITES):
        key = f"k{number}"
        writes.begin(key, "p", f"w{number}", "run", 1_000)
        acknowledge("begun", key)
        importer.step()
        writes.end(key, f"w{number}", Standing.DONE, 1_001, Stored(f"w{number}", 200, "", b"made"))
        acknowledge("done", key)
    while not importer.step():
        pass


def main(top, first, count, step):
    """One child for each way to die: it makes so many writes elsewhere first, so the fatal one comes sooner."""
    reader._CHUNK_BYTES = CHUNK_BYTES  # of a batch
    scratch = os.open(top / "scratch", os.O_RDWR | os.O_CREAT)
    for ahead in range(first, count, step):
        folder = top / str(ahead)
        folder.mkdir()
        tell(folder)
        if os.fork() == 0:
            for _ in range(ahead):
                os.pwrite(scratch, b"x", 0)
                os.fdatasync(scratch)
            work(folder, os.open(folder / "acknowledged", os.O_WRONLY | os.O_CREAT))
            os._exit(0)
        os.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
