"""
What happened at one target between two instants: the budget in force beside the traffic, and who caused it.

It tells a swarm that kept its budget from one whose budget was wrong (essay B), and what politeness cost: the hours that work
waited for this target. Everything is read from the ledger; nothing is asked of a running gate.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

from swarmgate.control.bands import Band, Bands, Moment, Moments, Spell, Spells
from swarmgate.control.tally import LimitVerdict, Ruling, Sent, Windows, read_send, rulings, worst
from swarmgate.core.errors import BadInput
from swarmgate.core.nearest import near
from swarmgate.stores.sql import reading
from swarmgate.stores.sql.ledger import Ledger
from swarmgate.stores.sql.reading import Span

MOST_CAUSES: Final = 20
MOST_INCIDENTS: Final = 200
USUAL_WINDOW_MS: Final = 60_000
HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class PostMortem:
    """
    One target's story; `windows` are rows of sent, refused by the target, put off by us.

    Waited hours: in line before a send, before being put off, and as told when put off. `estimated_micro` of the cost are for tokens that the target did not tell.
    """

    target: str
    span: Span
    verdict: LimitVerdict
    sent: int
    refused: int
    put_off: int
    waited_hours: float
    asked_hours: float
    cost_micro: int
    estimated_micro: int
    unpriced: int
    crashed: int
    rulings: list[Ruling]
    windows: Windows
    causes: list[dict[str, Any]]
    steps: list[dict[str, Any]]
    ends: list[dict[str, Any]]
    deferrals: list[dict[str, Any]]
    incidents: list[dict[str, Any]]
    bands: list[Band]
    spells: list[Spell]
    moments: list[Moment]

    @property
    def put_off_percent(self) -> float:
        """Of all that wanted to leave: the share that was told to come back later."""
        wanted = self.sent + self.put_off
        return 100 * self.put_off / wanted if wanted else 0.0


class _Sums:
    """What is added up while sends pass."""

    def __init__(self, named: list[str], windows: Windows, spells: Spells, free_of_cache: Collection[str]) -> None:
        self._free_of_cache = free_of_cache
        self._named = frozenset(named)
        self._windows = windows
        self.sent = self.refused = self.waited_ms = self.unpriced = self.crashed = 0
        self.cost_micro = self.estimated_micro = 0
        self.bands = Bands()
        self.spells = spells
        self.moments = Moments(windows.begin_of)

    def pass_on(self, found: Iterator[Mapping[str, Any]]) -> Iterator[Sent]:
        """Each send; those to the targets in question are counted."""
        for row in found:
            send = read_send(row, self._free_of_cache)
            if row["target"] in self._named:
                self._count(row, send)
            yield send

    def _count(self, row: Mapping[str, Any], send: Sent) -> None:
        self._windows.add(send.sent_ms, 0)
        if send.refused:
            self._windows.add(send.sent_ms, 1)
        self.sent += 1
        self.refused += send.refused
        self.crashed += row["fate"] == "crash"
        if row["attempt"] == 1:
            self.waited_ms += row["queue_ms"]
        if row["cost_micro"] is None:
            self.unpriced += 1
        else:
            self.cost_micro += row["cost_micro"]
            self.estimated_micro += row["cost_micro"] if row["estimated"] else 0
        self.bands.add(row)
        self.spells.add(row)
        self.moments.add(row)


def post_mortem(ledger: Ledger, host: str, span: Span, free_of_cache: Collection[str] = ()) -> PostMortem:
    """
    The story of a target, or of every target at a host; `free_of_cache` are targets that do not count cached prompts.

    Errors: `BadInput` where nothing is known of it.
    """
    with ledger.connection() as link:
        named = _named(link, host, span)
        limits = reading.limits(link, named, span)
        window_ms = min((row["window_ms"] for row in limits if row["window_ms"]), default=USUAL_WINDOW_MS)
        windows = Windows(span, window_ms)
        sums = _Sums(named, windows, Spells(reading.ceilings(link, span.to_ms), span.from_ms), free_of_cache)
        everybody = {*named, *(target for row in limits for target, _ in row["takers"])}  # a limit may be shared
        found = rulings(limits, sums.pass_on(reading.sends(link, sorted(everybody), span)), span)
        for at_ms in reading.deferral_instants(link, named, span):
            windows.add(at_ms, 2)
        deferrals = reading.put_off(link, named, span)
        return PostMortem(
            host,
            span,
            worst(found),
            sums.sent,
            sums.refused,
            sum(row["deferrals"] for row in deferrals),
            (sums.waited_ms + sum(row["waited_ms"] for row in deferrals)) / HOUR_MS,
            sum(row["asked_ms"] for row in deferrals) / HOUR_MS,
            sums.cost_micro,
            sums.estimated_micro,
            sums.unpriced,
            sums.crashed,
            found,
            windows,
            reading.causes(link, named, span, MOST_CAUSES),
            reading.busiest_steps(link, named, span, MOST_CAUSES),
            reading.ends(link, named, span),
            deferrals,
            reading.incidents(link, named, span, MOST_INCIDENTS),
            sums.bands.found(),
            sums.spells.found(),
            sums.moments.found(),
        )


def _named(link: Connection, host: str, span: Span) -> list[str]:
    """The target of that name, or those whose host it is, those that may not be called included."""
    known = reading.targets(link)
    found = _of_host(known, host) or _of_host(reading.unsent(link, span), host)
    if not found:
        likely = dict.fromkeys((*known, *map(host_of, known)))
        raise BadInput(
            "target", f"{host[:80]!r} is unknown here{near(host, likely)}; known: {', '.join(known[:12]) or 'none yet'}"
        )
    return found


def _of_host(names: list[str], host: str) -> list[str]:
    return [name for name in names if name == host or host_of(name) == host]


def host_of(target: str) -> str:
    """The host in a target's name: `https://api.x.org:8443/path` names `api.x.org`; a name without a scheme is its own."""
    _, scheme, rest = target.partition("://")
    authority = rest.partition("/")[0] if scheme else target
    if authority.startswith("["):
        return authority.partition("]")[0][1:]
    return authority.partition(":")[0] if scheme else authority
