"""
How long an answer that comes whole may take: three times the P99 that its model took for that size (design 4: Timeouts).

Its first byte is its last, so its size counts, the tokens of its output by doublings, and that of its prompt
(core/prompt_size.py), which is read before. Of each model, prompt and size the times are kept as a histogram (core/histogram.py).
A call may take what any size took that it is allowed, so that a few long answers among many short ones have their own time; a
longer prompt may take what a shorter one took. What was too seldom seen takes what the next smaller one takes and 20 ms for each
token more of output, 0.1 ms of prompt, but no more than a larger one took.

An attempt that was cut counts as one that took all that it was given: so what is given grows, where it was too little, up to
the caller's time. But a target that hangs is no slow model: while nothing of a model is whole, what is given grows once, and
further only at the 20th, 40th, 80th ... that is cut in a row.
"""

from itertools import pairwise
from typing import Final

from swarmgate.core.histogram import Histogram
from swarmgate.core.prompt_size import PROMPT_BOUNDS, PROMPT_SIZES

SIZES: Final = 9  # of outputs: to 256 tokens, 512, 1,024 ... 32,768, and beyond
FIRST_BITS: Final = 8
PLACES: Final = PROMPT_SIZES * SIZES
MS_PER_TOKEN: Final = 20  # until the model's own times are known
TOKENS_READ_PER_MS: Final = 10  # the same
LONGEST_PROMPT: Final = 2 * PROMPT_BOUNDS[-1]  # of the last size, for that guess
TIMES: Final = 3
LEAST_MS: Final = 30_000
PERCENT: Final = 99
FEW: Final = 20  # fewer answers of a size say nothing of it
SHORT_MS: Final = 8_192  # shorter times are not told apart: three times that is below `LEAST_MS`
LONGEST_MS: Final = 1 << 22  # nor longer ones: 70 minutes
MOST_MODELS: Final = 1_024  # at their targets; callers may name them, so further ones share theirs

_PROMPTS: Final = (*PROMPT_BOUNDS, LONGEST_PROMPT)
_READING_MS: Final = [  # what each size of prompts takes more than the one before
    (tokens - before) // TOKENS_READ_PER_MS for before, tokens in pairwise(_PROMPTS)
]


def size_of(tokens: int) -> int:
    """The size of an output, as an index."""
    return min(SIZES - 1, max(0, (max(1, tokens) - 1).bit_length() - FIRST_BITS))


class ModelTimes:
    """
    One model's at one target; a place is a size of prompts and one of outputs: `prompt * SIZES + size`.

    `took` has what was seen, `usual_ms` what each place usually takes, `patience_ms` how long one of each may take. `row` has, by
    place, how many were cut since an answer was whole, and up to what they were given they all count.
    """

    __slots__ = ("patience_ms", "row", "took", "usual_ms")

    def __init__(self) -> None:
        self.took: dict[int, Histogram] = {}
        self.row: dict[int, tuple[int, int]] = {}
        self.learn()

    def of(self, place: int) -> Histogram:
        """What was seen there, made on first sight."""
        found = self.took[place] = self.took.get(place) or Histogram(PERCENT, 0, few=FEW)
        return found

    def cut(self, place: int, ms: int) -> None:
        """An answer that might have stood there had not come after so long; what may be taken only grows by it."""
        took = self.of(place)
        if not self._counts(place, ms) or ms <= self.usual_ms[place]:
            return
        before = took.likely
        took.seen(min(LONGEST_MS, ms))
        if took.likely or before:
            took.look()
            took.likely = max(before, took.likely)
            self.learn()

    def _counts(self, place: int, ms: int) -> bool:
        """Whether one more that was cut counts."""
        number, most_ms = self.row.get(place, (0, ms))
        number += 1
        scores, rest = divmod(number, FEW)
        counts = ms <= most_ms or not (rest or scores & (scores - 1))
        self.row[place] = number, max(ms, most_ms) if counts else most_ms
        return counts

    def learn(self) -> None:
        """What each place usually takes: what was seen, else a guess between the smaller and the larger ones."""
        usual: list[int] = []
        least = [0] * SIZES  # the most that was seen of so large or smaller outputs, of prompts up to the one at hand
        met = [False] * SIZES  # whether outputs of that size were seen of a shorter prompt
        for prompt in range(PROMPT_SIZES):
            most, is_met = 0, False
            for size in range(SIZES):
                took = self.took.get(prompt * SIZES + size)
                seen = took.likely if took is not None else 0
                most = least[size] = max(most, least[size], seen)
                if seen:
                    met[size] = is_met = True
                    usual.append(most)
                else:
                    usual.append(max(most, _guess(usual, prompt, size, longer=is_met, shorter=met[size])))
        for place in range(PLACES - 1, -1, -1):
            if place % SIZES < SIZES - 1:
                usual[place] = min(usual[place], usual[place + 1])
            if place + SIZES < PLACES:
                usual[place] = min(usual[place], usual[place + SIZES])
        self.usual_ms = usual
        self.patience_ms = [max(LEAST_MS, TIMES * ms) for ms in usual]


def _guess(usual: list[int], prompt: int, size: int, *, longer: bool, shorter: bool) -> int:
    """
    What the next place probably takes, by those before it.

    `longer` says that smaller outputs were seen of its prompt, `shorter` that its output was seen of a shorter prompt: either is
    better than what was guessed itself; of both the smaller guess, since three times that holds what both take together.
    """
    if not prompt:
        return usual[-1] + (MS_PER_TOKEN << FIRST_BITS + size - 1) if size else MS_PER_TOKEN << FIRST_BITS
    read_ms = usual[-SIZES] + _READING_MS[prompt - 1]
    if not longer:
        return read_ms
    made_ms = usual[-1] + (MS_PER_TOKEN << FIRST_BITS + size - 1)
    return min(made_ms, read_ms) if shorter else made_ms


class AnswerTimes:
    """Those of all models at all targets; prompts are told by their sizes, outputs in tokens."""

    __slots__ = ("_models", "_others")

    def __init__(self) -> None:
        self._models: dict[tuple[str, str], ModelTimes] = {}
        self._others = ModelTimes()

    def patience_ms(self, target: str, model: str, prompt: int, allowed: int) -> int:
        """How long an answer of at most so many tokens may take."""
        size = min(
            SIZES - 1, max(0, (max(1, allowed) - 1).bit_length() - FIRST_BITS)
        )  # `size_of`, a call less per call
        return self._models.get((target, model), self._others).patience_ms[prompt * SIZES + size]

    def seen(self, target: str, model: str, prompt: int, tokens: int, ms: int) -> None:
        """An answer of so many tokens took so long."""
        found = self._models.get((target, model)) or self._meet(target, model)
        size = min(SIZES - 1, max(0, (max(1, tokens) - 1).bit_length() - FIRST_BITS))  # see above
        took = found.took.get(prompt * SIZES + size) or found.of(prompt * SIZES + size)
        before = took.likely
        if found.row:
            found.row.clear()
        took.seen(min(LONGEST_MS, max(SHORT_MS, ms)))
        if took.likely != before:
            found.learn()

    def cut(self, target: str, model: str, prompt: int, allowed: int, ms: int) -> None:
        """An answer that might have had so many tokens was given up after so long."""
        self._meet(target, model).cut(prompt * SIZES + size_of(allowed), ms)

    def _meet(self, target: str, model: str) -> ModelTimes:
        """Those of one model, made on first sight while there is room."""
        kind = (target, model)
        found = self._models.get(kind)
        if found is None:
            if len(self._models) >= MOST_MODELS:
                return self._others
            found = self._models[kind] = ModelTimes()
        return found
