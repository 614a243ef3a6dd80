"""
One load run against one endpoint: what came back, how late, and how much of what was wanted.

Latencies count from the instant at which a call was wanted; a call that is open at the end counts as long as it took so far, so
that an endpoint that stops answering cannot look fast (no coordinated omission).
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from swarmgate.lab.agents.endpoint import Destination, ToEndpoint
from swarmgate.lab.agents.records import CallRow, Fate
from swarmgate.lab.agents.swarm import Swarm
from swarmgate.lab.workload import Player


class LoadFigures(NamedTuple):
    """
    A run in figures: counts of calls, `statuses` by code (0 = no whole answer), latencies in ms of everything wanted.

    `reasons` has the commonest error code, or fault of a connection, of each status that is no success.

    `first_p99_ms` is the first byte's, of answered calls. Tokens are those of answered calls, a minute.
    """

    seconds: float
    wanted: int
    answered: int
    open_at_end: int
    statuses: dict[int, int]
    reasons: dict[int, str]
    wanted_per_s: float
    answered_per_s: float
    p50_ms: int
    p95_ms: int
    p99_ms: int
    first_p50_ms: int
    first_p99_ms: int
    tokens_per_minute: int


class Now(NamedTuple):
    """How it stands while it runs."""

    seconds: float
    wanted: int
    answered: int
    other: int
    open: int


def run_load(
    place: Destination, way: ToEndpoint, players: Iterable[Player], seconds: float, see: Callable[[Now], None]
) -> LoadFigures:
    """Play it; `see` hears of it twice a second."""
    return asyncio.run(_run(place, way, players, seconds, see))


async def _run(
    place: Destination, way: ToEndpoint, players: Iterable[Player], seconds: float, see: Callable[[Now], None]
) -> LoadFigures:
    loop, rows = asyncio.get_running_loop(), list[CallRow]()
    swarm = Swarm(loop, way, players, rows.append, place.locate)
    began_s = loop.time()

    def look() -> None:
        answered = swarm.counts[Fate.ANSWERED.value]
        see(Now(loop.time() - began_s, swarm.counts["wanted"], answered, len(rows) - answered, len(swarm.jobs)))

    await swarm.run_seen(seconds, look)
    return figures(rows, seconds)


def figures(rows: list[CallRow], seconds: float) -> LoadFigures:
    """What a run came to."""
    answered = [row for row in rows if row.fate == Fate.ANSWERED]
    taken = sorted(row.end_ms - row.wanted_ms for row in rows)
    first = sorted(row.first_ms - row.wanted_ms for row in answered)
    tokens = sum(row.prompt_tokens + row.output_tokens for row in answered)
    return LoadFigures(
        seconds=seconds,
        wanted=len(rows),
        answered=len(answered),
        open_at_end=sum(row.fate == Fate.OPEN for row in rows),
        statuses=dict(sorted(Counter(row.status for row in rows if row.fate != Fate.OPEN).items())),
        reasons=_reasons(rows),
        wanted_per_s=round(len(rows) / seconds, 1),
        answered_per_s=round(len(answered) / seconds, 1),
        p50_ms=at_percent(taken, 50),
        p95_ms=at_percent(taken, 95),
        p99_ms=at_percent(taken, 99),
        first_p50_ms=at_percent(first, 50),
        first_p99_ms=at_percent(first, 99),
        tokens_per_minute=round(tokens * 60 / seconds),
    )


def _reasons(rows: Iterable[CallRow]) -> dict[int, str]:
    counted = Counter((row.status, row.why) for row in rows if row.why and row.fate != Fate.OPEN)
    return {status: why for (status, why), _ in reversed(counted.most_common())}


def at_percent(ordered: list[int], percent: int) -> int:
    """The value below which so many percent lie (nearest rank); 0 of nothing."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] if ordered else 0
