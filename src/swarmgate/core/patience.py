"""
How long a call may wait for its turn, how long its answer may take to begin, and when its time is over.

A caller is held rather than sent away, for as long as it can bear: its own word, its timeout, half of what its SDK will
read for, and never longer than five minutes (design 5: Waiting; design 4: Timeouts). Gate and simulator ask here.
"""

from typing import Final

LONGEST_WAIT_MS: Final = 300_000
USUAL_WAIT_MS: Final = 20_000  # if nothing is known of the caller
USUAL_TIMEOUT_MS: Final = 3_600_000
FIRST_CONTENT_MS: Final = 8_000  # essay A: the trigger of degradation
WHOLE_ANSWER_MS: Final = 30_000  # an answer that does not stream: its first byte is its last, so its size counts ...
MS_PER_TOKEN: Final = 60  # ... at three times the usual 20 ms, until the model's own times are known
USUAL_OUTPUT_TOKENS: Final = 2_048  # of a call that does not limit its output


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


def content_ms(output_tokens: int, *, streams: bool) -> int:
    """How long an attempt may take to its first content: a stream's first event, any other answer's last byte."""
    if streams:
        return FIRST_CONTENT_MS
    sized_ms = output_tokens * MS_PER_TOKEN
    return sized_ms if sized_ms > WHOLE_ANSWER_MS else WHOLE_ANSWER_MS
