"""
How long a failed send waits before the next: exponential, with jitter, and never before the upstream said.

The jitter is a hash of the request id and the attempt, not a random number: the same call waits the same in every
run and every process (P13), and 2,000 calls that fail in one millisecond still spread (OV-05). Integers throughout:
u is 32 bits of BLAKE2b, a fraction of 2^32.
"""

from hashlib import blake2b
from typing import Final

from swarmgate.core.errors import BadInput

BASE_MS: Final = 1_000
OWN_CAP_MS: Final = 20_000  # times at most 1.5 = 30 s
LONGEST_MS: Final = 30_000
FIRST_PAUSE_MS, LONGEST_PAUSE_MS = 1_000, 60_000
_ONE: Final = 1 << 32
_ENOUGH_DOUBLINGS: Final = 15  # 1 ms * 2^15 is beyond the cap


def jitter(request_id: str, attempt: int) -> int:
    """The fraction u, in [0, 2^32): the same for the same call and attempt."""
    named = f"{attempt}:{request_id}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(named, digest_size=4).digest())


def longer_pause_ms(last_ms: int) -> int:
    """How long a target rests that refused and gave no hint: 1, 2, 4 ... 60 s; `last_ms` 0 = it accepted something since."""
    return min(LONGEST_PAUSE_MS, 2 * last_ms or FIRST_PAUSE_MS)


def delay_ms(request_id: str, attempt: int, hint_ms: int | None = None, base_ms: int = BASE_MS) -> int:
    """
    max(hint * (1 + 0.2u), min(20 s, base * 2^attempt) * (0.5 + u)) in ms, at most 30 s (design 4: Hints).

    `attempt` 0 is the first repeat. Never earlier than `hint_ms`: one beyond 30 s is returned as it is, and the caller
    parks the call instead of holding it. Errors: `BadInput` for a negative attempt or a base below 1 ms.
    """
    if attempt < 0:
        raise BadInput("attempt", f"{attempt} is negative; the first repeat is 0")
    if base_ms < 1:
        raise BadInput("base_ms", f"{base_ms} is no wait; give at least 1 ms")
    hint_ms = hint_ms if hint_ms and hint_ms > 0 else 0
    if hint_ms > LONGEST_MS:
        return hint_ms
    u = jitter(request_id, attempt)
    own_ms = min(OWN_CAP_MS, base_ms << min(attempt, _ENOUGH_DOUBLINGS)) * (_ONE // 2 + u) // _ONE
    asked_ms = hint_ms + hint_ms * u // (5 * _ONE)
    return min(LONGEST_MS, max(asked_ms, own_ms))
