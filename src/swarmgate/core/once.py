"""
Writes that happen once: what a repeat of a keyed write is told, and what the end of one leaves behind.

Stripe's rules, and the IETF draft's (draft-ietf-httpapi-idempotency-key-header): a repeat while the first runs is a
conflict, a repeat afterwards gets the stored answer, the same key with other content is refused. A definite failure without
effect frees the key. Where nobody knows what the target did, nothing is repeated by itself (design 2: P7).
"""

from enum import StrEnum
from typing import Final, NamedTuple

from swarmgate.core.commands import End
from swarmgate.core.reasons import Reason

KEPT_MS: Final = 24 * 3_600_000
MOST_ANSWER_BYTES: Final = 64 * 1024


class Standing(StrEnum):
    """What is known of a keyed write."""

    FREE = "free"
    IN_FLIGHT = "in_flight"
    DONE = "done"
    UNKNOWN = "unknown"  # it may have happened, and nobody knows its answer


class Record(NamedTuple):
    """One keyed write on file: a hash of what it asks for, and until when it is remembered."""

    standing: Standing
    payload: str
    expires_ms: int


class Ruling(StrEnum):
    """What happens to a keyed write that comes in."""

    PROCEED = "proceed"
    CONFLICT = "conflict"  # 409: the first is still running
    REPLAY = "replay"
    MISMATCH = "mismatch"  # 422
    UNKNOWN = "unknown"


_RULINGS: Final = {
    Standing.FREE: Ruling.PROCEED,
    Standing.IN_FLIGHT: Ruling.CONFLICT,
    Standing.DONE: Ruling.REPLAY,
    Standing.UNKNOWN: Ruling.UNKNOWN,
}


def rule(record: Record | None, payload: str, now_ms: int) -> Ruling:
    """What becomes of a write with this payload; one in flight does not lapse, however long it takes."""
    if record is None or record.standing is Standing.FREE:
        return Ruling.PROCEED
    if record.expires_ms <= now_ms and record.standing is not Standing.IN_FLIGHT:
        return Ruling.PROCEED
    if record.payload != payload:
        return Ruling.MISMATCH
    return _RULINGS[record.standing]


def standing_after(end: End, reason: Reason | None, status: int, *, left: bool, lost: bool) -> Standing:
    """
    What the end of a keyed write leaves behind.

    `status` is the target's own answer, 0 without one; `left` = an attempt was sent; `lost` = the answer to one did not
    come. A 4xx, a limit or a lack of capacity is the target's word that it did nothing; another 5xx is an answer like
    any other, and is what repeats get (Stripe).
    """
    if not left:
        return Standing.FREE
    if lost or end in _NOBODY_KNOWS or reason in _OURS:
        return Standing.UNKNOWN
    if end is End.ANSWERED:
        return Standing.DONE
    refused = 400 <= status < 500 or reason is Reason.TARGET_CAPACITY
    return Standing.DONE if status and not refused else Standing.FREE


_NOBODY_KNOWS: Final = frozenset({End.UNKNOWN_EFFECT, End.CANCELLED})
_OURS: Final = frozenset({Reason.GATE_BUG, Reason.GATE_STOPPING})
