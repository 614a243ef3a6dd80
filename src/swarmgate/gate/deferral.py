"""
Not now: what blocks a call, when to come back, and the place that is kept until then (design 5: Deferral; 2: P6).

A deferral is a 429 that SDKs raise as their rate limit error. Instants are told as milliseconds from now: our clock is
nobody else's. Limits are told as their owner published them; what they compile to is the gate's business.
"""

from math import gcd
from typing import Final, NamedTuple

from swarmgate.config.quota import Quota
from swarmgate.core.answers import Blocker, BlockKind, Denied
from swarmgate.core.backoff import jitter
from swarmgate.core.compiler import Published, Unit
from swarmgate.core.duration import shown_duration
from swarmgate.core.lesson import RATE
from swarmgate.core.limits import EXACT
from swarmgate.core.reasons import SENTENCES, Reason
from swarmgate.core.record import Call
from swarmgate.core.rungs import may_serve
from swarmgate.core.ticket import kept, sealed
from swarmgate.gate.answers import Reply, proxy_status, trail
from swarmgate.gate.served import UNKNOWN, ServedFields, base_of, exhausted, own_id
from swarmgate.gate.shapes import Said, Shape
from swarmgate.http1.head import Header

STATUS: Final = 429
SDK_WAITS_MS: Final = 20_000  # longer, and an SDK that sleeps as told looks dead to whoever waits for it
SDK_REPEATS: Final = 2
FEWEST_SPREAD_MS: Final = 250
MOST_SPREAD_MS: Final = 30_000  # a day's budget is not waited for by hours more
UNKNOWN_MS: Final = 2_000  # until a repeat where nobody knows when: paced, and well inside the life of a ticket
MOST_NAMES: Final = 3  # in a message; the body has them all


class Asked(NamedTuple):
    """How a deferral is to be told: now, in which form, and how often the caller's SDK has tried already."""

    now_ms: int
    shape: Shape
    sdk_repeats: int = 0


class _Waits(NamedTuple):
    """How long from now: at least, and with this call's own share of the spread."""

    least_ms: int
    staggered_ms: int


class Deferrals:
    """Makes deferrals; `key` seals the tickets of this gate."""

    def __init__(self, served: ServedFields, key: bytes) -> None:
        self.key = key
        self._served = served

    def reply(self, call: Call, denied: Denied, reason: Reason, asked: Asked) -> Reply:
        """The whole answer."""
        wait_ms, again_ms = _waits(call, denied)
        may_repeat = wait_ms <= SDK_WAITS_MS and asked.sdk_repeats < SDK_REPEATS
        headers: list[Header] = [
            (b"content-type", asked.shape.media_type),
            (b"x-request-id", call.id.encode()),
            (b"retry-after", b"%d" % -(-again_ms // 1_000)),
            (b"x-should-retry", b"true" if may_repeat else b"false"),
            (b"proxy-status", proxy_status(reason)),
            *self._rate_fields(denied, wait_ms),
            *(own_id(call) if call.client_request_id else ()),
        ]
        return Reply(STATUS, headers, asked.shape.body(self.said(call, denied, reason, asked.now_ms)))

    def said(self, call: Call, denied: Denied, reason: Reason, now_ms: int) -> Said:
        """What a deferral says, in whatever form."""
        wait_ms, again_ms = _waits(call, denied)
        rung = call.rungs[call.rung]
        detail: dict[str, object] = {
            "id": call.id,
            "target": rung.target,
            "blocking": [self._blocking(blocker) for blocker in denied.blockers],
            "not_before_ms": wait_ms,
            "certain_by_ms": None if denied.certain_ms >= EXACT else max(0, denied.certain_ms - denied.now_ms),
            "retry_after_ms": again_ms,
            "reason": reason.value,
            "priority": f"P{call.rank}",
            "queue": {"position": denied.position, "depth": denied.depth},
            "waited_ms": now_ms - call.arrived_ms,
            "ticket": sealed(kept(call.ticket, denied, now_ms), self.key, call.tenant),
            "alternatives": [
                f"{one.target}/{one.model or '*'}"
                for index, one in enumerate(call.rungs)
                if index > call.rung and may_serve(index, call)
            ],
        }
        message = f"{SENTENCES[reason]}{_blocked_by(denied)} Come back in {shown_duration(again_ms, up=True)}."
        return Said(STATUS, reason.value, message, None, {"deferral": detail, **trail(call)}, call.id)

    def _blocking(self, blocker: Blocker) -> dict[str, object]:
        base = base_of(blocker.budget)
        published = self._served.published.get(base)
        limit, window_ms = blocker.limit, blocker.window_ms
        if published is not None and base == blocker.budget:
            limit, window_ms = published.amount, published.window_ms
        elif limit and blocker.budget.endswith(RATE):  # kept in finer units than anybody counts by (core/lesson.py)
            shared = gcd(limit, window_ms)
            limit, window_ms = limit // shared, window_ms // shared
        return {
            "budget": blocker.budget,
            "policy": _policy(published),
            "revision": blocker.revision,
            "limit": limit or None,
            "window_ms": window_ms if limit else None,
            "remaining": blocker.remaining,
            "kind": "time" if blocker.kind is BlockKind.TIME else "event",
        }

    def _rate_fields(self, denied: Denied, wait_ms: int) -> list[Header]:
        told = [blocker for blocker in denied.blockers if blocker.budget in self._served.published]
        if not told:
            return []
        items = [exhausted(one.budget, _until(one, denied, wait_ms)) for one in told]
        return [
            (b"ratelimit-policy", b", ".join(self._served.policies(one.budget for one in told))),
            (b"ratelimit", b", ".join(items)),
        ]


def _until(blocker: Blocker, denied: Denied, wait_ms: int) -> int:
    """How long nothing is free there; UNKNOWN where a call must end first."""
    if blocker.kind is BlockKind.TIME:
        return max(0, blocker.at_ms - denied.now_ms)
    return wait_ms if blocker.kind is BlockKind.LINE else UNKNOWN


def _waits(call: Call, denied: Denied) -> _Waits:
    least_ms = UNKNOWN_MS if denied.certain_ms >= EXACT else 0
    wait_ms = max(least_ms, denied.not_before_ms - denied.now_ms)
    spread_ms = min(MOST_SPREAD_MS, max(FEWEST_SPREAD_MS, wait_ms // 5))
    return _Waits(wait_ms, wait_ms + (jitter(call.id, 0) * spread_ms >> 32))


def _blocked_by(denied: Denied) -> str:
    """What blocks, for people who see nothing but the message that an SDK raises."""
    names = [blocker.budget for blocker in denied.blockers]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f" Blocked by {', '.join(names[:MOST_NAMES])}{more}." if names else ""


def _policy(published: Published | None) -> str | None:
    """The limit in words, as it is written in a configuration."""
    if published is None:
        return None
    if published.unit is Unit.MICRO:  # in dollars
        return str(Quota(published.amount, published.unit, published.window_ms))
    window = f" per {published.window_ms / 1_000:g}s" if published.window_ms else ""
    return f"{published.amount} {published.unit}{window}"
