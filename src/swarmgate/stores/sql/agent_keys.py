"""
Agents' keys on file: hashes with what they allow; never a key.

A rotated key stays good for a while beside its successor, so that agents can change over. A revoked one stays on file, so
that the ledger's rows keep their meaning.
"""

import json
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from sqlalchemy import BigInteger, Column, Connection, Engine, MetaData, String, Table, insert, select

from swarmgate.core.errors import BadInput
from swarmgate.core.nearest import near
from swarmgate.core.scope import PREFIX, Scope, key_hash
from swarmgate.stores.sql import small
from swarmgate.stores.sql.damage import FILE_ERRORS, said

FILE: Final = "agent_keys.sqlite3"
SCHEMA: Final = 2
MOST_KEYS: Final = 10_000
LONGEST_NAME: Final = 60
_SECRET_BYTES: Final = 32
UPGRADES: Final = {
    1: (
        "ALTER TABLE keys ADD COLUMN limits VARCHAR NOT NULL DEFAULT '[]'",
        "ALTER TABLE keys ADD COLUMN capped_as VARCHAR NOT NULL DEFAULT ''",
    )
}
metadata = MetaData()

keys = Table(
    "keys",
    metadata,
    Column("id", String, primary_key=True),
    Column("hash", String, nullable=False, unique=True),
    Column("name", String, nullable=False),
    Column("team", String, nullable=False, server_default=""),
    Column("targets", String, nullable=False),
    Column("models", String, nullable=False),
    Column("made_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False, server_default="0"),
    Column("revoked_ms", BigInteger, nullable=False, server_default="0"),
    Column("limits", String, nullable=False, server_default="[]"),
    Column("capped_as", String, nullable=False, server_default=""),  # the first of its line, if it has limits
)
_LISTS: Final = ("targets", "models", "limits")
pepper_table = Table("pepper", metadata, Column("value", String, primary_key=True))


class AgentKeys:
    """`create`, `rotate`, `revoke`, `listed`; `in_force` is what a gate admits."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        with self._file() as link:
            found = link.execute(select(pepper_table.c.value)).scalar()
            if found is None:
                found = secrets.token_hex(_SECRET_BYTES)
                link.execute(insert(pepper_table).values(value=found))
        self.pepper = bytes.fromhex(found)

    @classmethod
    def opened(cls, folder: Path) -> Self:
        """The keys of a state folder, made on first use. Errors: `BadInput` for a file that cannot be used; OSError."""
        return cls(small.opened(folder / FILE, metadata, SCHEMA, "every agent's key", UPGRADES))

    def create(self, name: str, wanted: Scope, now_ms: int) -> str:
        """A new key with this scope (its `id` is made here); the key itself. Errors: `BadInput`."""
        if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
            raise BadInput("name", f"must be 1 to {LONGEST_NAME} printable characters")
        if wanted.expires_ms and wanted.expires_ms <= now_ms:
            raise BadInput("expires_in", "is past already")
        with self._file() as link:
            if len(link.execute(select(keys.c.id)).all()) >= MOST_KEYS:
                raise BadInput("name", f"cannot be added: there are {MOST_KEYS} keys already")
            return self._add(link, name, wanted, now_ms)

    def rotate(self, identity: str, overlap_ms: int, now_ms: int) -> str:
        """A successor with the same scope; the old key is good for `overlap_ms` more. Errors: `BadInput`."""
        with self._file() as link:
            old = self._found(link, identity)
            if old["revoked_ms"] or (old["expires_ms"] and old["expires_ms"] <= now_ms):
                raise BadInput("id", f"{identity} is no longer good; create a new key")
            ends_ms = min(old["expires_ms"] or now_ms + overlap_ms, now_ms + overlap_ms)
            link.execute(keys.update().where(keys.c.id == identity).values(expires_ms=max(1, ends_ms)))
            return self._add(link, old["name"], _scope(old), now_ms)

    def revoke(self, identity: str, now_ms: int) -> None:
        """From now on it is refused. Errors: `BadInput`."""
        with self._file() as link:
            if not self._found(link, identity)["revoked_ms"]:
                link.execute(keys.update().where(keys.c.id == identity).values(revoked_ms=now_ms))

    def listed(self) -> list[dict[str, Any]]:
        """Every key that was ever made, newest last, without its hash."""
        with self._file() as link:
            rows = link.execute(select(keys).order_by(keys.c.made_ms)).mappings().all()
        return [
            {name: json.loads(value) if name in _LISTS else value for name, value in row.items() if name != "hash"}
            for row in rows
        ]

    def in_force(self, now_ms: int) -> dict[str, Scope]:
        """Scopes by hash of the keys that are good now."""
        with self._file() as link:
            rows = link.execute(select(keys).where(keys.c.revoked_ms == 0)).mappings().all()
        return {row["hash"]: scope for row in rows if (scope := _scope(row)).lives(now_ms)}

    def close(self) -> None:
        """Let the file go."""
        self._engine.dispose()

    @contextmanager
    def _file(self) -> Iterator[Connection]:
        """One transaction. Errors: `BadInput` where the disk does not take it: nothing has changed."""
        try:
            with self._engine.begin() as link:
                yield link
        except FILE_ERRORS as error:
            raise BadInput(FILE, f"cannot be used now: {said(error)}; nothing has changed") from None

    def _add(self, link: Connection, name: str, scope: Scope, now_ms: int) -> str:
        identity = secrets.token_hex(5)
        key = f"{PREFIX}{identity}_{secrets.token_urlsafe(_SECRET_BYTES)}"
        told = {"id": identity, "hash": key_hash(key, self.pepper), "name": name, "team": scope.team}
        told |= {name: json.dumps(getattr(scope, name)) for name in _LISTS}
        told["capped_as"] = scope.capped_as or (identity if scope.limits else "")
        link.execute(insert(keys).values(**told, made_ms=now_ms, expires_ms=scope.expires_ms))
        return key

    @staticmethod
    def _found(link: Connection, identity: str) -> Any:
        found = link.execute(select(keys).where(keys.c.id == identity)).mappings().first()
        if found is None:
            like = _like(identity, link.execute(select(keys.c.id, keys.c.name)).all())
            raise BadInput("id", f"{identity[:LONGEST_NAME]!r} is no key{like}; `swarmgate keys list` has them")
        return found


def _like(identity: str, known: Iterable[Any]) -> str:
    """The ids of the keys that have this for their name, else the nearest id."""
    named = [one.id for one in known if one.name == identity]
    return f"; it is the name of {', '.join(named)}" if named else near(identity, (one.id for one in known))


def _scope(row: Any) -> Scope:
    targets, models, limits = (tuple(json.loads(row[name])) for name in _LISTS)
    return Scope(row["id"], row["team"], targets, models, row["expires_ms"], limits, row["capped_as"])
