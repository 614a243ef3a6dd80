"""
What is asked of the ledger: one function per question, rows as they stand there.

Names that people say are values of a statement, never part of its text (reliability AZ-08).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Column, ColumnElement, Connection, Executable, and_, case, func, or_, select

from swarmgate.stores.sql.tables import (
    CEILING,
    DOUBTFUL,
    attempts,
    calls,
    deferrals,
    events,
    imported,
    key_events,
    revisions,
    ways,
)

LIMIT_KINDS: Final = ("rate", "daily", "concurrency")  # of core/outcome.py: the target says that it is too much
_PIECE: Final = 2_000


class Span(NamedTuple):
    """A time from its first ms to before its last."""

    from_ms: int
    to_ms: int


def call(link: Connection, request_id: str) -> dict[str, Any] | None:
    """A call with its attempts, deferrals and events; None if there is none of that id."""
    found = link.execute(select(calls).where(calls.c.id == request_id)).mappings().first()
    if found is None:
        return None
    return {
        "call": dict(found),
        "attempts": _all(link, select(attempts).where(attempts.c.call == request_id).order_by(attempts.c.attempt)),
        "deferrals": _all(link, select(deferrals).where(deferrals.c.call == request_id).order_by(deferrals.c.seq)),
        "events": _all(link, select(events).where(events.c.call == request_id).order_by(events.c.seq)),
    }


def limits_at(link: Connection, target: str, key: str, policy: int) -> list[dict[str, Any]]:
    """The limits that an attempt under a policy stood under, at its target with its key."""
    taken = select(ways.c.budget).where(ways.c.target == target, ways.c.key == key)
    newest = (
        select(revisions.c.budget, func.max(revisions.c.policy).label("policy"))
        .where(revisions.c.budget.in_(taken), revisions.c.policy <= policy)
        .group_by(revisions.c.budget)
        .subquery()
    )
    same = and_(revisions.c.budget == newest.c.budget, revisions.c.policy == newest.c.policy)
    return _all(link, select(revisions).join(newest, same).order_by(revisions.c.budget))


def stated(link: Connection, budget: str, revision: int) -> dict[str, Any] | None:
    """The limit of a revision as its owner states it: amount, unit, window_ms, paused; None if no such revision is known."""
    told = select(revisions.c.amount, revisions.c.unit, revisions.c.window_ms, revisions.c.paused)
    found = link.execute(told.where(revisions.c.budget == budget, revisions.c.revision == revision)).mappings().first()
    return None if found is None else dict(found)


def targets(link: Connection) -> list[str]:
    """Every target that was sent to or has a limit."""
    names = select(attempts.c.target).union(select(revisions.c.target), select(deferrals.c.target))
    return sorted(name for (name,) in link.execute(names) if name)


def unsent(link: Connection, span: Span) -> list[str]:
    """Targets of calls that ended without a send: some were refused every one."""
    told = select(calls.c.target).where(calls.c.attempts == 0, *_arrived_in(span)).distinct()
    return sorted(name for (name,) in link.execute(told) if name)


def ends(link: Connection, named: Sequence[str], span: Span) -> list[dict[str, Any]]:
    """How calls to these targets ended, by end and reason: how many, and of how many agents."""
    count = func.count()
    statement = (
        select(
            calls.c.end,
            calls.c.reason,
            count.label("calls"),
            func.count(calls.c.agent.distinct()).label("agents"),
        )
        .where(calls.c.target.in_(named), calls.c.end != "", *_arrived_in(span))
        .group_by(calls.c.end, calls.c.reason)
        .order_by(count.desc())
    )
    return _all(link, statement)


def _arrived_in(span: Span) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return calls.c.arrived_ms >= span.from_ms, calls.c.arrived_ms < span.to_ms


def limits(link: Connection, named: Sequence[str], span: Span) -> list[dict[str, Any]]:
    """
    Revisions of the limits that these targets take from, in force within the span or begun in it, in order.

    Each with its `takers`: every target and key that takes from it, those of other names included.
    """
    taken = select(ways.c.budget).where(ways.c.target.in_(named))
    told = select(revisions).where(
        or_(revisions.c.budget.in_(taken), revisions.c.target.in_(named)),
        revisions.c.since_ms < span.to_ms,
        revisions.c.amount > 0,
    )
    found = _all(link, told.order_by(revisions.c.budget, revisions.c.policy))
    takers: dict[str, set[tuple[str, str]]] = {row["budget"]: set() for row in found}
    for budget, target, key in link.execute(
        select(ways.c.budget, ways.c.target, ways.c.key).where(ways.c.budget.in_(takers))
    ):
        takers[budget].add((target, key))
    return [row | {"takers": takers[row["budget"]]} for row in found]


def newest_revisions(link: Connection, target: str, most: int) -> list[dict[str, Any]]:
    """Revisions of limits, newest first; of one target if it is named."""
    told = select(revisions).order_by(revisions.c.policy.desc(), revisions.c.budget).limit(most)
    return _all(link, told.where(revisions.c.target == target) if target else told)


def sends(link: Connection, named: Sequence[str], span: Span) -> Iterator[dict[str, Any]]:
    """What left for these targets, in order of its leaving, a piece at a time."""
    statement = (
        select(
            attempts.c.sent_ms,
            attempts.c.ended_ms,
            attempts.c.target,
            attempts.c.attempt,
            attempts.c.key,
            attempts.c.kind,
            attempts.c.fate,
            attempts.c.queue_ms,
            attempts.c.took_ms,
            attempts.c.prompt_tokens,
            attempts.c.output_tokens,
            attempts.c.cached_tokens,
            attempts.c.cost_micro,
            attempts.c.estimated,
            calls.c.task_type,
        )
        .join(calls, calls.c.id == attempts.c.call)
        .where(_left_for(named, span))
        .order_by(attempts.c.sent_ms, attempts.c.seq)
    )
    for row in link.execution_options(yield_per=_PIECE).execute(statement).mappings():
        yield dict(row)


def causes(link: Connection, named: Sequence[str], span: Span, most: int) -> list[dict[str, Any]]:
    """Which agents sent most to these targets, and for which goals: in how many steps, and how often it was too much."""
    return _causes(link, (calls.c.agent, calls.c.goal, calls.c.task_type), (named, span), most)


def busiest_steps(link: Connection, named: Sequence[str], span: Span, most: int) -> list[dict[str, Any]]:
    """The same step by step."""
    return _causes(link, (calls.c.agent, calls.c.goal, calls.c.step, calls.c.task_type), (named, span), most)


def _causes(
    link: Connection, columns: tuple[Column[str], ...], where: tuple[Sequence[str], Span], most: int
) -> list[dict[str, Any]]:
    refused = func.sum(case((attempts.c.kind.in_(LIMIT_KINDS), 1), else_=0))
    count = func.count()
    statement = (
        select(
            *columns,
            func.count(calls.c.step.distinct()).label("steps"),
            count.label("sent"),
            refused.label("refused"),
            func.sum(attempts.c.cost_micro).label("cost_micro"),
        )
        .join(calls, calls.c.id == attempts.c.call)
        .where(_left_for(*where))
        .group_by(*columns)
        .order_by(count.desc(), *columns)
        .limit(most)
    )
    return _all(link, statement)


def put_off(link: Connection, named: Sequence[str], span: Span) -> list[dict[str, Any]]:
    """Deferrals by reason and first blocking budget, with the hours that they took and asked for."""
    count = func.count()
    statement = (
        select(
            deferrals.c.reason,
            deferrals.c.budget,
            count.label("deferrals"),
            func.sum(deferrals.c.waited_ms).label("waited_ms"),
            func.sum(deferrals.c.not_before_ms - deferrals.c.at_ms).label("asked_ms"),
        )
        .where(deferrals.c.target.in_(named), deferrals.c.at_ms >= span.from_ms, deferrals.c.at_ms < span.to_ms)
        .group_by(deferrals.c.reason, deferrals.c.budget)
        .order_by(count.desc())
    )
    return _all(link, statement)


def deferral_instants(link: Connection, named: Sequence[str], span: Span) -> Iterator[int]:
    """When callers were told to come back later, in order."""
    told = select(deferrals.c.at_ms).where(
        deferrals.c.target.in_(named), deferrals.c.at_ms >= span.from_ms, deferrals.c.at_ms < span.to_ms
    )
    yield from link.execution_options(yield_per=_PIECE).execute(told.order_by(deferrals.c.at_ms)).scalars()


def ceilings(link: Connection, before_ms: int) -> list[tuple[int, str, int]]:
    """Every ceiling that a task type was given before an instant, in order: instant, task type, tokens (0 = none)."""
    told = select(events.c.at_ms, events.c.reason, events.c.detail).where(
        events.c.kind == CEILING, events.c.at_ms < before_ms
    )
    found = link.execute(told.order_by(events.c.seq))
    return [(at_ms, task_type, int(json.loads(detail)["tokens"])) for at_ms, task_type, detail in found]


def incidents(link: Connection, named: Sequence[str], span: Span, most: int) -> list[dict[str, Any]]:
    """What happened to the gate and to the keys of these targets."""
    gate = select(events.c.at_ms, events.c.kind, events.c.reason, events.c.detail).where(
        events.c.at_ms >= span.from_ms,
        events.c.at_ms < span.to_ms,
        or_(events.c.call == "", events.c.kind == DOUBTFUL),
        or_(events.c.target == "", events.c.target.in_(named)),
    )
    keys = select(
        key_events.c.at_ms, key_events.c.what.label("kind"), key_events.c.reason, key_events.c.key.label("detail")
    ).where(
        or_(key_events.c.target == "", key_events.c.target.in_(named)),
        key_events.c.at_ms >= span.from_ms,
        key_events.c.at_ms < span.to_ms,
    )
    return sorted(_all(link, gate.limit(most)) + _all(link, keys.limit(most)), key=lambda one: int(one["at_ms"]))


def reach(link: Connection) -> Mapping[str, Any]:
    """How far the ledger reaches: rows imported, first and last instant of a call."""
    first = link.execute(select(func.min(calls.c.arrived_ms), func.max(calls.c.arrived_ms))).one()
    rows = link.execute(select(imported.c.rows)).scalar() or 0
    return {"rows": rows, "from_ms": first[0], "to_ms": first[1]}


def _left_for(named: Sequence[str], span: Span) -> ColumnElement[bool]:
    return and_(
        attempts.c.target.in_(named),
        attempts.c.sent_ms >= span.from_ms,
        attempts.c.sent_ms < span.to_ms,
        attempts.c.sent.is_(True),
    )


def _all(link: Connection, statement: Executable) -> list[dict[str, Any]]:
    return [dict(row) for row in link.execute(statement).mappings()]
