"""
How long a call may wait for its turn, how long a stream may take to begin, and when a call's time is over.

A caller is held rather than sent away, for as long as it can bear: its own word, its timeout, half of what its SDK will
read for, and never longer than five minutes (design 5: Waiting; design 4: Timeouts). Gate and simulator ask here. How long an
answer that comes whole may take is learned: core/answer_times.py.
"""

from typing import Final

LONGEST_WAIT_MS: Final = 300_000
USUAL_WAIT_MS: Final = 20_000  # if nothing is known of the caller
USUAL_TIMEOUT_MS: Final = 3_600_000
SILENT_MS: Final = 25_000  # after that a stream hears that its call still stands
FIRST_CONTENT_MS: Final = 8_000  # essay A: the trigger of degradation


def wait_ms(said_ms: int | None, timeout_ms: int | None, read_timeout_ms: int | None) -> int:
    """
    How long a call may wait for its turn; None = nothing is known of it.

    `said_ms` is the caller's word on waiting, `timeout_ms` its word on the whole call, `read_timeout_ms` what its SDK reads
    for: half of that is left for the answer.
    """
    bounds = [LONGEST_WAIT_MS]
    if said_ms is not None:
        bounds.append(said_ms)
    if timeout_ms is not None:
        bounds.append(timeout_ms)
    if read_timeout_ms is not None:
        bounds.append(read_timeout_ms // 2)
    return min(bounds) if len(bounds) > 1 else USUAL_WAIT_MS


def listens_ms(read_timeout_ms: int | None, *, streams: bool) -> int:
    """
    Until when a send may be repeated for a caller whose SDK reads for so long; 0 = nothing is known of it.

    It hears nothing meanwhile, so later it would have left, and asked anew: its repeats and ours would multiply.
    """
    if read_timeout_ms is None or (streams and read_timeout_ms > SILENT_MS):
        return 0
    return max(1, read_timeout_ms // 2)
