"""
One batch of changes to the ledger, gathered first and written in few statements.

Each kind has its own list of rows; what is named twice is written once. Rows that are there already stay as they are.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Table, UpdateBase, bindparam
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.sqlite import insert

from swarmgate.stores.sql.tables import (
    USAGE_KEY,
    USAGE_SUMS,
    attempts,
    calls,
    deferrals,
    events,
    imported,
    key_events,
    revisions,
    usage,
    ways,
)

Values = dict[str, Any]


@dataclass(slots=True)
class Changes:
    """
    What one batch adds and completes.

    `calls` and `attempts` are new rows; `call_ends` and `attempt_ends` complete rows of earlier batches (`call`, `attempt`
    name them). `usage` adds to what an hour has, by USAGE_KEY. `fate` ends every attempt that is still open, if set.
    """

    calls: dict[str, Values] = field(default_factory=dict)
    attempts: dict[tuple[str, int], Values] = field(default_factory=dict)
    call_ends: list[Values] = field(default_factory=list)
    attempt_ends: list[Values] = field(default_factory=list)
    deferrals: list[Values] = field(default_factory=list)
    revisions: list[Values] = field(default_factory=list)
    ways: list[Values] = field(default_factory=list)
    key_events: list[Values] = field(default_factory=list)
    events: list[Values] = field(default_factory=list)
    usage: dict[tuple[object, ...], list[int]] = field(default_factory=dict)


def write(link: Connection, changes: Changes, position: Values) -> None:
    """Write a batch and how far it was read, in the transaction of `link`."""
    for table, rows in (
        (calls, list(changes.calls.values())),
        (attempts, list(changes.attempts.values())),
        (deferrals, changes.deferrals),
        (revisions, changes.revisions),
        (ways, changes.ways),
        (key_events, changes.key_events),
        (events, changes.events),
    ):
        _add(link, table, rows)
    _complete(link, calls, changes.call_ends, {"id": "b_id"})
    _complete(link, attempts, changes.attempt_ends, {"call": "b_call", "attempt": "b_attempt"})
    _count(link, changes.usage)
    own = insert(imported).values(id=1, **position)
    link.execute(own.on_conflict_do_update(index_elements=["id"], set_=position))


def _add(link: Connection, table: Table, rows: list[Values]) -> None:
    if rows:
        _run(link, _addition(table), rows)


def _complete(link: Connection, table: Table, rows: list[Values], names: dict[str, str]) -> None:
    if rows:
        columns = tuple(name for name in rows[0] if name not in names.values())
        _run(link, _completion(table, columns, tuple(names.items())), rows)


def _count(link: Connection, sums: dict[tuple[object, ...], list[int]]) -> None:
    rows = [dict(zip((*USAGE_KEY, *USAGE_SUMS), (*key, *counts), strict=True)) for key, counts in sums.items()]
    if rows:
        _run(link, _addition_to_usage(), rows)


@lru_cache
def _addition(table: Table) -> UpdateBase:
    return insert(table).on_conflict_do_nothing()


@lru_cache
def _completion(table: Table, columns: tuple[str, ...], names: tuple[tuple[str, str], ...]) -> UpdateBase:
    statement = table.update().values({name: bindparam(name) for name in columns})
    for column, told in names:
        statement = statement.where(table.c[column] == bindparam(told))
    return statement


@lru_cache
def _addition_to_usage() -> UpdateBase:
    added = insert(usage)
    return added.on_conflict_do_update(
        index_elements=list(USAGE_KEY), set_={name: usage.c[name] + added.excluded[name] for name in USAGE_SUMS}
    )


def _run(link: Connection, statement: UpdateBase, rows: list[Values]) -> None:
    """
    Run a statement for each of the rows, which have the same columns.

    SQLAlchemy makes its text once; that it looks at every value of every row (they are integers, text and None) took as
    long as SQLite took to write them.
    """
    text, names = _compiled(statement, tuple(rows[0]))
    link.exec_driver_sql(text, list(map(itemgetter(*names), rows)))


@lru_cache
def _compiled(statement: UpdateBase, columns: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The text for SQLite, and which column each of its places takes."""
    made = statement.compile(dialect=sqlite.dialect(), column_keys=list(columns))
    return str(made), tuple(made.positiontup or ())
