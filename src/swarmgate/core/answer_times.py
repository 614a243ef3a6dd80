"""
How long an answer that comes whole may take: three times the P99 that its model took for that size (design 4: Timeouts).

Its first byte is its last, so its size counts: the tokens of its output, by doublings. Of each model and size the times are kept
as a histogram (core/histogram.py). A call may take what any size took that it is allowed, so that a few long answers among many
short ones have their own time. A size of which too few were seen takes what the next smaller one takes and 20 ms for each
token more, but no more than a larger one took.

An attempt that was cut counts as one that took all that it was given: so what is given grows, where it was too little, up to
the caller's time. But a target that hangs is no slow model: while nothing of a model is whole, what is given grows once, and
further only at the 20th, 40th, 80th ... that is cut in a row.
"""

from typing import Final

from swarmgate.core.histogram import Histogram

SIZES: Final = 9  # of outputs: to 256 tokens, 512, 1,024 ... 32,768, and beyond
FIRST_BITS: Final = 8
MS_PER_TOKEN: Final = 20  # until the model's own times are known
TIMES: Final = 3
LEAST_MS: Final = 30_000
PERCENT: Final = 99
FEW: Final = 20  # fewer answers of a size say nothing of it
SHORT_MS: Final = 8_192  # shorter times are not told apart: three times that is below `LEAST_MS`
LONGEST_MS: Final = 1 << 22  # nor longer ones: 70 minutes
MOST_MODELS: Final = 1_024  # at their targets; callers may name them, so further ones share theirs


def size_of(tokens: int) -> int:
    """The size of an output, as an index."""
    return min(SIZES - 1, max(0, (max(1, tokens) - 1).bit_length() - FIRST_BITS))


class ModelTimes:
    """
    One model's at one target: `took` by size, what each size usually takes, and how long one of each may take.

    `row` has, by size, how many were cut since an answer was whole, and up to what they were given they all count.
    """

    __slots__ = ("patience_ms", "row", "took", "usual_ms")

    def __init__(self) -> None:
        self.took = [Histogram(PERCENT, 0, few=FEW) for _ in range(SIZES)]
        self.row: dict[int, tuple[int, int]] = {}
        self.learn()

    def cut(self, allowed: int, ms: int) -> None:
        """An answer that might have had so many tokens had not come after so long; what may be taken only grows by it."""
        size = size_of(allowed)
        took = self.took[size]
        if not self._counts(size, ms) or ms <= self.usual_ms[size]:
            return
        before = took.likely
        took.seen(min(LONGEST_MS, ms))
        if took.likely or before:
            took.look()
            took.likely = max(before, took.likely)
            self.learn()

    def _counts(self, size: int, ms: int) -> bool:
        """Whether one more that was cut counts."""
        number, most_ms = self.row.get(size, (0, ms))
        number += 1
        scores, rest = divmod(number, FEW)
        counts = ms <= most_ms or not (rest or scores & (scores - 1))
        self.row[size] = number, max(ms, most_ms) if counts else most_ms
        return counts

    def learn(self) -> None:
        """What each size usually takes: what was seen, else a guess between the sizes below and above."""
        usual, base_ms, base_tokens = [], 0, 0
        for size, took in enumerate(self.took):
            tokens = 1 << FIRST_BITS + size
            if took.likely:
                base_ms, base_tokens = max(base_ms, took.likely), tokens
            usual.append(base_ms + (tokens - base_tokens) * MS_PER_TOKEN)
        for size in range(SIZES - 2, -1, -1):
            usual[size] = min(usual[size], usual[size + 1])
        self.usual_ms = usual
        self.patience_ms = [max(LEAST_MS, TIMES * ms) for ms in usual]


class AnswerTimes:
    """Those of all models at all targets."""

    __slots__ = ("_models", "_others")

    def __init__(self) -> None:
        self._models: dict[tuple[str, str], ModelTimes] = {}
        self._others = ModelTimes()

    def patience_ms(self, target: str, model: str, allowed: int) -> int:
        """How long an answer of at most so many tokens may take."""
        size = min(
            SIZES - 1, max(0, (max(1, allowed) - 1).bit_length() - FIRST_BITS)
        )  # `size_of`, a call less per call
        return self._models.get((target, model), self._others).patience_ms[size]

    def seen(self, target: str, model: str, tokens: int, ms: int) -> None:
        """An answer of so many tokens took so long."""
        found = self._models.get((target, model)) or self._meet(target, model)
        took = found.took[min(SIZES - 1, max(0, (max(1, tokens) - 1).bit_length() - FIRST_BITS))]  # see above
        before = took.likely
        if found.row:
            found.row.clear()
        took.seen(min(LONGEST_MS, max(SHORT_MS, ms)))
        if took.likely != before:
            found.learn()

    def cut(self, target: str, model: str, allowed: int, ms: int) -> None:
        """An answer that might have had so many tokens was given up after so long."""
        self._meet(target, model).cut(allowed, ms)

    def _meet(self, target: str, model: str) -> ModelTimes:
        """Those of one model, made on first sight while there is room."""
        kind = (target, model)
        found = self._models.get(kind)
        if found is None:
            if len(self._models) >= MOST_MODELS:
                return self._others
            found = self._models[kind] = ModelTimes()
        return found
