"""
How long the ledger remembers: single calls for a month, what was used per hour for more than a year.

At 100 calls a second a month is about 260 million calls, 0.4 KB each; the hours of a year are up to 350 million rows (docs/evidence.md).
Old rows leave a few thousand at a time, so that nobody waits for it; their room is used again.
"""

from typing import Final

from sqlalchemy import Connection, delete, select

from swarmgate.stores.sql.tables import CEILING, attempts, calls, deferrals, events, key_events, usage

DAY_MS: Final = 86_400_000
CALLS_MS: Final = 30 * DAY_MS
USAGE_MS: Final = 400 * DAY_MS
AT_ONCE: Final = 2_000


def forget(link: Connection, now_ms: int) -> int:
    """Let some of what is too old go; how many rows left, 0 once there is nothing left to do."""
    before_ms = now_ms - CALLS_MS
    old = [name for (name,) in link.execute(select(calls.c.id).where(calls.c.arrived_ms < before_ms).limit(AT_ONCE))]
    gone = 0
    if old:
        gone += link.execute(delete(attempts).where(attempts.c.call.in_(old))).rowcount
        gone += link.execute(delete(calls).where(calls.c.id.in_(old))).rowcount
    for table in (deferrals, events, key_events):
        is_late = table.c.at_ms < before_ms
        if table is events:
            is_late &= events.c.kind != CEILING
        late = select(table.c.seq).where(is_late).limit(AT_ONCE)
        gone += link.execute(delete(table).where(is_late, table.c.seq.in_(late))).rowcount
    hours = select(usage.c.hour_ms).where(usage.c.hour_ms < now_ms - USAGE_MS).distinct().limit(1)
    gone += link.execute(delete(usage).where(usage.c.hour_ms.in_(hours))).rowcount
    return gone
