"""
One batch of changes to the ledger, gathered first and written in few statements.

Each kind has its own list of rows; what is named twice is written once. Rows that are there already stay as they are.
"""

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Table, bindparam
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
        link.execute(insert(table).on_conflict_do_nothing(), rows)


def _complete(link: Connection, table: Table, rows: list[Values], names: dict[str, str]) -> None:
    if not rows:
        return
    columns = [name for name in rows[0] if name not in names.values()]
    statement = table.update().values({name: bindparam(name) for name in columns})
    for column, told in names.items():
        statement = statement.where(table.c[column] == bindparam(told))
    link.execute(statement, rows)


def _count(link: Connection, sums: dict[tuple[object, ...], list[int]]) -> None:
    if not sums:
        return
    added = insert(usage)
    statement = added.on_conflict_do_update(
        index_elements=list(USAGE_KEY), set_={name: usage.c[name] + added.excluded[name] for name in USAGE_SUMS}
    )
    rows = [dict(zip((*USAGE_KEY, *USAGE_SUMS), (*key, *counts), strict=True)) for key, counts in sums.items()]
    link.execute(statement, rows)
