"""
The ledger's file: opened, checked, brought to this schema, written in whole batches.

A file that is damaged, or of a later schema, is refused with a sentence; it is never replaced by an empty one, for that would
forget what was spent (reliability LG-08, OP-08). A batch and the position that it was read up to are one transaction, so a
batch that is imported again changes nothing (LG-13).
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.pool import StaticPool

from swarmgate.core.errors import BadInput
from swarmgate.stores.sql.damage import FILE_ERRORS, said, why_not
from swarmgate.stores.sql.place import made_whole, watched

FILE: Final = "ledger.sqlite3"
_CHECKED_BYTES: Final = 512 * 1024 * 1024  # a check reads the whole file; a larger one is checked as far as it is used
_BUSY_MS: Final = 5_000
_WAL_BYTES: Final = 64 * 1024 * 1024  # what a reader made it grow beyond is given back (reliability LG-06)


class Ledger:
    """An open ledger; `connection` begins a transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @classmethod
    def opened(cls, folder: Path) -> Self:
        """
        The ledger of a state folder, made on first use.

        Errors: `BadInput` for a file that is damaged or newer than this program; OSError.
        """
        path = folder / FILE
        if not path.exists():
            try:
                made_whole(path, cls._make)
            except FILE_ERRORS as error:
                raise OSError(f"{path} cannot be made: {said(error)}") from None
        ledger = cls(watched(_engine(f"file:{path}?mode=rw", writes=True), path))
        try:
            ledger._check(path)
            ledger._migrate(path)
        except FILE_ERRORS as error:
            ledger.close()
            reason = why_not(error, "is no ledger, or a damaged one", _WHAT_TO_DO)
            raise BadInput(str(path), reason) from None
        except BadInput:
            ledger.close()
            raise
        return ledger

    @classmethod
    def to_read(cls, folder: Path) -> Self:
        """The ledger of a state folder, read only, also while it is written. Errors: `BadInput` if there is none."""
        path = folder / FILE
        if not path.exists():
            raise BadInput(str(path), "is not there; --state names the folder that `swarmgate up` uses")
        ledger = cls(_engine(f"file:{path}?mode=ro", writes=False))
        try:
            with ledger.connection() as link:
                version = MigrationContext.configure(link).get_current_revision()
        except FILE_ERRORS as error:
            ledger.close()
            raise BadInput(str(path), f"cannot be read: {said(error)}") from None
        if version != _head():
            ledger.close()
            is_older = version is None or version in _known()
            todo = "start `swarmgate up` once with this one" if is_older else "use that"
            whose = "an older program" if is_older else "a newer program"
            raise BadInput(str(path), f"has the schema {version} of {whose}; {todo}")
        return ledger

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """One transaction: committed at its end, undone by an error."""
        with self._engine.begin() as link:
            yield link

    def close(self) -> None:
        """Let the file go."""
        self._engine.dispose()

    @classmethod
    def _make(cls, path: Path) -> None:
        ledger = cls(_engine(f"file:{path}?mode=rw", writes=True))
        try:
            ledger._migrate(path)
        finally:
            ledger.close()

    def _check(self, path: Path) -> None:
        size = path.stat().st_size
        if not size:
            raise BadInput(str(path), f"is empty; {_WHAT_TO_DO}")
        if size > _CHECKED_BYTES:
            return
        with self.connection() as link:
            found = link.execute(text("PRAGMA quick_check(1)")).scalar_one()
        if found != "ok":
            raise BadInput(str(path), f"is damaged ({' '.join(found.split())}); {_WHAT_TO_DO}")

    def _migrate(self, path: Path) -> None:
        with self.connection() as link:
            version = MigrationContext.configure(link).get_current_revision()
            if version is not None and version not in _known():
                raise BadInput(
                    str(path), f"has the schema {version} of a newer program; start that, or restore a backup"
                )
            settings = _settings()
            settings.attributes["connection"] = link
            command.upgrade(settings, "head")


def wal_bytes(folder: Path) -> int:
    """How long the log beside the ledger is: what was written and could not be put into it yet."""
    try:
        return (folder / f"{FILE}-wal").stat().st_size
    except FileNotFoundError:
        return 0


_WHAT_TO_DO = "restore a backup, or move it away: what the journal still holds is then imported again"


def _settings() -> Config:
    settings = Config()
    settings.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return settings


def _head() -> str | None:
    return ScriptDirectory.from_config(_settings()).get_current_head()


def _known() -> set[str]:
    return {step.revision for step in ScriptDirectory.from_config(_settings()).walk_revisions()}


def _engine(uri: str, *, writes: bool) -> Engine:
    def connect() -> sqlite3.Connection:
        link = sqlite3.connect(uri, uri=True, check_same_thread=False, timeout=_BUSY_MS / 1_000)
        link.isolation_level = None  # transactions begin where SQLAlchemy says so, schema changes inside them
        return link

    engine = create_engine("sqlite://", creator=connect, poolclass=StaticPool)

    @event.listens_for(engine, "connect")
    def prepare(link: Any, _record: object) -> None:
        if writes:
            link.execute("PRAGMA journal_mode=WAL")
            link.execute("PRAGMA synchronous=NORMAL")
            link.execute(f"PRAGMA journal_size_limit={_WAL_BYTES}")
        else:
            link.execute("PRAGMA query_only=ON")

    @event.listens_for(engine, "begin")
    def begin(link: Connection) -> None:
        link.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine
