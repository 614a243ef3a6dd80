"""
A file of SQLite and its name: it gets the name when it is whole, and nothing is promised once the name leads elsewhere.

A process that dies while it makes a file must not leave half of one, which the next start would refuse as damaged. And SQLite
goes on writing into a file that somebody removed: what is kept there is gone with the process (reliability OP-09).
"""

import os
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Engine, event

GONE = "its file was removed or replaced while in use; restart the gate"


def made_whole(path: Path, make: Callable[[Path], None]) -> None:
    """Have `make` fill a file of another name, for its owner only, and give it its own at the end. Errors: OSError."""
    fresh = path.with_name(f"{path.name}.new")
    for leftover in ("", "-wal", "-shm", "-journal"):
        fresh.with_name(f"{fresh.name}{leftover}").unlink(missing_ok=True)
    fresh.touch(mode=0o600)
    make(fresh)
    for leftover in ("-wal", "-shm"):  # of a file that somebody removed: they would be taken for this one's
        path.with_name(f"{path.name}{leftover}").unlink(missing_ok=True)
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def watched(engine: Engine, path: Path) -> Engine:
    """The same engine; its transactions raise OSError once another file, or none, has the name of this one."""
    known = _identity(path)

    @event.listens_for(engine, "begin")
    def still_there(_link: object) -> None:
        if _identity(path) != known:
            raise OSError(f"{path}: {GONE}")

    return engine


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
