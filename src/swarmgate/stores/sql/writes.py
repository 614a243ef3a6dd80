"""Keyed writes on file: their standing and, for a day, their answers; on disk before a write is let go (small.py)."""

from pathlib import Path
from typing import Final, NamedTuple, Self

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    select,
)
from sqlalchemy.dialects.sqlite import insert

from swarmgate.core.once import KEPT_MS, Record, Ruling, Standing, rule
from swarmgate.stores.sql import small
from swarmgate.stores.sql.damage import FILE_ERRORS, said

FILE: Final = "writes.sqlite3"
SCHEMA: Final = 1
metadata = MetaData()

writes = Table(
    "writes",
    metadata,
    Column("key", String, primary_key=True),
    Column("standing", String, nullable=False),
    Column("payload", String, nullable=False),
    Column("call", String, nullable=False),
    Column("run", String, nullable=False),
    Column("since_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False, index=True),
    Column("status", Integer, nullable=False, server_default="0"),
    Column("content_type", String, nullable=False, server_default=""),
    Column("body", LargeBinary, nullable=True),
)


class Stored(NamedTuple):
    """An answer as it was given: `body` None = it was longer than what is kept."""

    call: str
    status: int
    content_type: str
    body: bytes | None


class Writes:
    """`begin` and `end` one keyed write; every change is on disk when it returns. Errors: OSError."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @classmethod
    def opened(cls, folder: Path) -> Self:
        """The writes of a state folder, made on first use. Errors: `BadInput` for a file that cannot be used; OSError."""
        return cls(small.opened(folder / FILE, metadata, SCHEMA, "what was done already"))

    def begin(self, key: str, payload: str, call: str, run: str, now_ms: int) -> tuple[Ruling, Stored | None]:
        """
        Rule, and put the write on file as in flight if it may proceed; with the stored answer if there is one.

        A write that another run left in flight died with it: a byte may have gone, so it is unknown from here on.
        """
        try:
            with self._engine.begin() as link:
                self._forget(link, now_ms)
                found = link.execute(select(writes).where(writes.c.key == key)).mappings().first()
                record = None
                if found is not None:
                    standing = Standing(found["standing"])
                    if standing is Standing.IN_FLIGHT and found["run"] != run:
                        standing = Standing.UNKNOWN
                        link.execute(writes.update().where(writes.c.key == key).values(standing=standing.value))
                    record = Record(standing, found["payload"], found["expires_ms"])
                ruling = rule(record, payload, now_ms)
                if ruling is Ruling.PROCEED:
                    told: dict[str, object] = {
                        "standing": Standing.IN_FLIGHT.value,
                        "payload": payload,
                        "call": call,
                        "run": run,
                    }
                    told |= {"since_ms": now_ms, "expires_ms": now_ms + KEPT_MS, "status": 0, "body": None}
                    added = insert(writes).values(key=key, **told)
                    link.execute(added.on_conflict_do_update(index_elements=["key"], set_=told))
        except FILE_ERRORS as error:
            raise OSError(said(error)) from error
        if found is None or ruling is Ruling.PROCEED:
            return ruling, None
        return ruling, Stored(found["call"], found["status"], found["content_type"], found["body"])

    def end(self, key: str, call: str, standing: Standing, now_ms: int, answer: Stored | None = None) -> None:
        """What the write of this call came to; one that is free is forgotten."""
        try:
            with self._engine.begin() as link:
                own = (writes.c.key == key) & (writes.c.call == call)
                if standing is Standing.FREE:
                    link.execute(writes.delete().where(own))
                    return
                told: dict[str, object] = {"standing": standing.value, "expires_ms": now_ms + KEPT_MS}
                if answer is not None:
                    told |= {"status": answer.status, "content_type": answer.content_type, "body": answer.body}
                link.execute(writes.update().where(own).values(**told))
        except FILE_ERRORS as error:
            raise OSError(said(error)) from error

    def forget(self, now_ms: int, run: str = "") -> None:
        """
        Let answers and names go whose day is over, also where nobody begins a write any more. Errors: OSError.

        What another run than the living one left in flight is unknown from here on, for a day; "" = nobody knows which lives.
        """
        try:
            with self._engine.begin() as link:
                if run:
                    left = (writes.c.standing == Standing.IN_FLIGHT.value) & (writes.c.run != run)
                    unknown = {"standing": Standing.UNKNOWN.value, "expires_ms": now_ms + KEPT_MS}
                    link.execute(writes.update().where(left).values(**unknown))
                self._forget(link, now_ms)
        except FILE_ERRORS as error:
            raise OSError(said(error)) from error

    def close(self) -> None:
        """Let the file go."""
        self._engine.dispose()

    @staticmethod
    def _forget(link: Connection, now_ms: int) -> None:
        lapsed = (writes.c.expires_ms <= now_ms) & (writes.c.standing != Standing.IN_FLIGHT.value)
        link.execute(writes.delete().where(lapsed))
