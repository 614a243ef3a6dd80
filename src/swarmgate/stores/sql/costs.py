"""
Who used how much between two instants, and what it cost.

Hours stand added up in the ledger for longer than single attempts do. Where a span begins or ends inside an hour, the attempts of
that part are added up themselves, so that whoever asks for the last minute is not told the last hour. Where they are forgotten
already, the hour counts whole. What counts is when an attempt ended.
"""

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, case, func, select

from swarmgate.stores.sql.reading import Span
from swarmgate.stores.sql.tables import USAGE_SUMS, attempts, calls, usage

GROUPS: Final = ("team", "agent", "task", "task_type", "target", "model", "key")
HOUR_MS: Final = 3_600_000
_LONGEST_MS: Final = 2 * HOUR_MS  # of an attempt; a call may last one hour unless its caller says otherwise
_OF_CALLS: Final = frozenset({"team", "agent", "task", "task_type"})


def costs(link: Connection, by: str, span: Span) -> list[dict[str, Any]]:
    """
    Use and cost per value of a column of GROUPS (`name`), dearest first.

    A key is told as target/key: each target has names of its own.
    """
    found: dict[str, list[int]] = {}
    for statement in _parts(link, by, span):
        for name, *sums in link.execute(statement):
            known = found.setdefault(name, [0] * len(USAGE_SUMS))
            found[name] = [one + more for one, more in zip(known, sums, strict=True)]
    told = [{"name": name, **dict(zip(USAGE_SUMS, sums, strict=True))} for name, sums in found.items()]
    return sorted(told, key=lambda row: (-row["cost_micro"], -row["attempts"], row["name"]))


def _parts(link: Connection, by: str, span: Span) -> Iterator[Select[Any]]:
    """Whole hours, and what lies before and behind them."""
    first_ms = -(-span.from_ms // HOUR_MS) * HOUR_MS  # where the first whole hour begins, and the last one ends
    last_ms = max(first_ms, span.to_ms // HOUR_MS * HOUR_MS)
    edges = [Span(span.from_ms, min(first_ms, span.to_ms)), Span(last_ms, span.to_ms)]
    oldest_ms = link.execute(select(func.min(attempts.c.sent_ms))).scalar()
    for edge in edges:
        if edge.from_ms >= edge.to_ms:
            continue
        if oldest_ms is None or edge.from_ms < oldest_ms:
            begin_ms = edge.from_ms // HOUR_MS * HOUR_MS
            yield _hours(by, Span(begin_ms, begin_ms + HOUR_MS))
        else:
            yield _single(by, edge)
    if first_ms < last_ms:
        yield _hours(by, Span(first_ms, last_ms))


def _hours(by: str, span: Span) -> Select[Any]:
    column = _key(usage.c.target, usage.c.key) if by == "key" else usage.c[by]
    sums = [func.sum(usage.c[name]) for name in USAGE_SUMS]
    return select(column, *sums).where(usage.c.hour_ms >= span.from_ms, usage.c.hour_ms < span.to_ms).group_by(column)


def _single(by: str, span: Span) -> Select[Any]:
    """As control/gathering.py adds attempts up: one without an answer has no use, and one without a price no cost."""
    column = _key(attempts.c.target, attempts.c.key) if by == "key" else (calls if by in _OF_CALLS else attempts).c[by]
    left, cost, guessed = attempts.c.sent.is_(True), attempts.c.cost_micro, attempts.c.estimated.is_(True)
    tokens = func.coalesce(attempts.c.prompt_tokens, 0) + func.coalesce(attempts.c.output_tokens, 0)
    sums = [
        func.sum(case((left, 1), else_=0)),
        func.sum(case((attempts.c.kind == "ok", 1), else_=0)),
        *(func.sum(func.coalesce(attempts.c[name], 0)) for name in USAGE_SUMS[2:5]),
        func.sum(func.coalesce(cost, 0)),
        func.sum(case((left & cost.is_(None), 1), else_=0)),
        func.sum(case((guessed, tokens), else_=0)),
        func.sum(case((guessed, func.coalesce(cost, 0)), else_=0)),
    ]
    return (
        select(column, *sums)
        .join(calls, calls.c.id == attempts.c.call)
        .where(attempts.c.sent_ms >= span.from_ms - _LONGEST_MS, attempts.c.sent_ms < span.to_ms)
        .where(attempts.c.ended_ms >= span.from_ms, attempts.c.ended_ms < span.to_ms)
        .group_by(column)
    )


def _key(target: ColumnElement[str], key: ColumnElement[str]) -> ColumnElement[str]:
    return case((key == "", ""), else_=target + "/" + key)
