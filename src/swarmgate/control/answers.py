"""
The questions to the ledger as programs get them answered: one function each, the same for the commands and the operator port.

Everything is read from the state folder, read only, also while the gate runs.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection

from swarmgate.control.bands import Bands
from swarmgate.control.post_mortem import PostMortem, post_mortem
from swarmgate.control.pricing import free_of_cache
from swarmgate.control.tally import Ruling
from swarmgate.core.duration import parse_duration_ms
from swarmgate.core.errors import BadInput
from swarmgate.engine.clock import unix_ms
from swarmgate.stores.journal import rows
from swarmgate.stores.sql import costs as of_groups
from swarmgate.stores.sql import reading
from swarmgate.stores.sql.ledger import Ledger
from swarmgate.stores.sql.reading import Span

CONTEXT: Final = "context"
WAYS: Final = (*of_groups.GROUPS, CONTEXT)  # in which costs are told
MOST_REVISIONS: Final = 1_000
Rows = list[dict[str, Any]]


@contextmanager
def ledger(folder: Path) -> Iterator[Ledger]:
    """The ledger of a state folder. Errors: `BadInput` if there is none, or it cannot be read."""
    opened = Ledger.to_read(folder)
    try:
        yield opened
    finally:
        opened.close()


def instant(text: str, field: str) -> int:
    """`now`, `2h` (so long ago), or ISO 8601 (UTC unless it says otherwise), in ms. Errors: `BadInput` if it is neither."""
    now_ms = unix_ms()
    if text == "now":
        return now_ms
    try:
        if text[:4].isdigit() and "-" in text:
            at = datetime.fromisoformat(text)
            return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1_000)
        return now_ms - parse_duration_ms(text, field)
    except ValueError:
        sentence = f"{text[:40]!r} is no time; write 2026-11-30T08:00, 2h for so long ago, or now"
        raise BadInput(field, sentence) from None


def span_of(from_: str, to: str) -> Span:
    """The time between two instants. Errors: `BadInput`."""
    span = Span(instant(from_, "from"), instant(to, "to"))
    if span.to_ms <= span.from_ms:
        raise BadInput("from", "is not before --to")
    return span


def life(folder: Path, request_id: str) -> dict[str, Any] | None:
    """A call with its attempts, each with the limits that it stood under, deferrals and events. Errors: `BadInput`."""
    with ledger(folder) as opened, opened.connection() as link:
        found = reading.call(link, request_id)
        for attempt in found["attempts"] if found is not None else ():
            attempt["limits"] = reading.limits_at(link, attempt["target"], attempt["key"], attempt["policy"])
        for deferral in found["deferrals"] if found is not None else ():
            deferral["blocked"] = [_blocked(link, one) for one in json.loads(deferral["blocked"])]
    return found


def _blocked(link: Connection, told: list[Any]) -> dict[str, Any]:
    """A budget that blocked (rows.Blocked) with its limit as it was stated; None where none is, as of a host that rests."""
    blocked = rows.Blocked(*told)
    limit = reading.stated(link, blocked.budget, blocked.revision)
    return {
        "budget": blocked.budget,
        "kind": blocked.kind,
        "revision": blocked.revision,
        "remaining": blocked.remaining,
        **(limit or {"amount": None, "unit": "", "window_ms": 0, "paused": False}),
    }


def costs(folder: Path, by: str, span: Span) -> Rows:
    """Use and cost by one of `WAYS`, dearest first; by context: latency and cost per band. Errors: `BadInput`."""
    if by not in WAYS:
        raise BadInput("by", f"{by[:40]!r} is none of {', '.join(WAYS)}")
    with ledger(folder) as opened, opened.connection() as link:
        if by != CONTEXT:
            return [{by: row.pop("name"), **row} for row in of_groups.costs(link, by, span)]
        bands = Bands()
        for row in reading.sends(link, reading.targets(link), span):
            bands.add(row)
        return [band._asdict() for band in bands.found()]


def story(folder: Path, target: str, span: Span) -> PostMortem:
    """What happened at a target. Errors: `BadInput` where nothing is known of it."""
    with ledger(folder) as opened:
        return post_mortem(opened, target, span, free_of_cache(folder))


def revisions(folder: Path, target: str) -> Rows:
    """The newest revisions of limits, of one target if it is named. Errors: `BadInput`."""
    with ledger(folder) as opened, opened.connection() as link:
        return reading.newest_revisions(link, target, MOST_REVISIONS)


def report(told: PostMortem) -> dict[str, Any]:
    """A story as JSON carries it."""
    windows = told.windows
    rows = [dict(zip(("sent", "refused", "put_off"), row, strict=True)) for row in windows.rows]
    return asdict(told) | {
        "verdict": told.verdict.value,
        "span": told.span._asdict(),
        "rulings": [_ruling(one) for one in told.rulings],
        "bands": [band._asdict() for band in told.bands],
        "spells": [spell._asdict() for spell in told.spells],
        "moments": [moment._asdict() for moment in told.moments],
        "windows": {"from_ms": windows.from_ms, "window_ms": windows.window_ms, "rows": rows},
    }


def _ruling(one: Ruling) -> dict[str, Any]:
    takers = sorted(f"{target}/{key}" if key else target for target, key in one.takers)
    return one._asdict() | {"verdict": one.verdict.value, "span": one.span._asdict(), "takers": takers}
