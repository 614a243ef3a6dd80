"""
Small files beside the ledger: opened, checked and made on first use; their schema's number stands in the file itself.

What is written there is on disk when it is answered (SQLite, synchronous=FULL): the ledger may lag behind the journal, these may
not lag behind anything.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sqlalchemy import Engine, MetaData, create_engine, event, text
from sqlalchemy.pool import StaticPool

from swarmgate.core.errors import BadInput
from swarmgate.stores.sql.damage import FILE_ERRORS, said, why_not
from swarmgate.stores.sql.place import made_whole, watched

_BUSY_S = 5
Upgrades = Mapping[int, tuple[str, ...]]  # by schema: the statements that make the next one of it


def opened(
    path: Path, metadata: MetaData, schema: int, holds: str, upgrades: Upgrades = MappingProxyType({})
) -> Engine:
    """
    The engine of a small file, for its owner only; `holds` says in an error what a backup is needed for.

    A file of an older schema is brought to this one.

    Errors: `BadInput` for a file that is damaged or newer than this program; OSError.
    """
    if not path.exists():
        try:
            made_whole(path, lambda fresh: _made(fresh, metadata, schema))
        except FILE_ERRORS as error:
            raise OSError(f"{path} cannot be made: {said(error)}") from None
    if not path.stat().st_size:
        raise BadInput(str(path), f"is empty; restore a backup: it has {holds}")
    engine = _engine(path)
    try:
        with engine.begin() as link:
            version = link.execute(text("PRAGMA user_version")).scalar_one()
            if version > schema:
                raise BadInput(str(path), f"has the schema {version} of a newer program; start that")
            for step in range(version, schema) if version else ():
                for statement in upgrades[step]:
                    link.execute(text(statement))
            metadata.create_all(link)
            link.execute(text(f"PRAGMA user_version={schema}"))
    except FILE_ERRORS as error:
        engine.dispose()
        reason = why_not(error, "cannot be used", f"restore a backup: it has {holds}")
        raise BadInput(str(path), reason) from None
    return watched(engine, path)


def _made(path: Path, metadata: MetaData, schema: int) -> None:
    engine = _engine(path)
    try:
        with engine.begin() as link:
            metadata.create_all(link)
            link.execute(text(f"PRAGMA user_version={schema}"))
    finally:
        engine.dispose()


def _engine(path: Path) -> Engine:
    engine = create_engine(
        f"sqlite:///{path}", connect_args={"check_same_thread": False, "timeout": _BUSY_S}, poolclass=StaticPool
    )

    @event.listens_for(engine, "connect")
    def prepare(link: Any, _record: object) -> None:
        link.execute("PRAGMA journal_mode=WAL")
        link.execute("PRAGMA synchronous=FULL")

    return engine
