"""
How much output a call will have: the P90 seen for its model and task type (design 4: Level).

A histogram of geometric buckets, eight per doubling, that halves itself so that it follows a change within a few hundred
answers. The first call of a kind reserves min(max_tokens, 1,024); nothing is ever reserved beyond what the caller allows.
"""

FIRST_TOKENS = 1_024
STEPS = 8  # buckets per doubling: a bucket is at most an eighth wide
HALVE_AT = 512


class OutputEstimate:
    """The outputs of one model and task type, as counts per bucket."""

    __slots__ = ("_counts", "_total")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._total = 0

    def seen(self, tokens: int) -> None:
        """Learn from one whole answer."""
        bucket = _bucket(tokens)
        self._counts[bucket] = self._counts.get(bucket, 0) + 1
        self._total += 1
        if self._total >= HALVE_AT:
            self._counts = {at: count // 2 for at, count in self._counts.items() if count > 1}
            self._total = sum(self._counts.values())

    def reserve(self, allowed: int) -> int:
        """Tokens to reserve for a call that allows at most `allowed` (0 = it does not say)."""
        likely = FIRST_TOKENS
        if self._total:
            rank = -(-self._total * 9 // 10)
            for bucket in sorted(self._counts):
                rank -= self._counts[bucket]
                if rank <= 0:
                    likely = _upper(bucket)
                    break
        return min(likely, allowed) if allowed else likely


def _bucket(tokens: int) -> int:
    tokens = max(1, tokens)
    power = tokens.bit_length() - 1
    return power * STEPS + ((tokens - (1 << power)) * STEPS >> power)


def _upper(bucket: int) -> int:
    power, step = divmod(bucket, STEPS)
    return (1 << power) + ((step + 1) << power) // STEPS
