"""
How much of a call will count: the P90 of the outputs seen for its model and task type (design 4: Level), and the P90 of the
share of their prompts that no cache held, where a provider counts only that.

A histogram of geometric buckets, eight per doubling, that halves itself so that it follows a change within a few hundred
answers. The first call of a kind reserves min(max_tokens, 1,024); nothing is ever reserved beyond what the caller allows. The
first prompts count whole.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

FIRST_TOKENS: Final = 1_024
STEPS: Final = 8  # buckets per doubling: a bucket is at most an eighth wide
HALVE_AT: Final = 512
LOOK_EVERY: Final = 16  # answers between two looks at the histogram, once it has as many
TOKENS_A_WEIGHT, MOST_WEIGHT, USUAL_WEIGHT = 64, 2_048, 256  # of prompts: each weighs what it takes
MOST_KINDS: Final = 4_096  # of models and task types; callers name both, so further ones share one histogram


class Charge(StrEnum):
    """What a provider counts against a limit in tokens, and when."""

    PROMPT_THEN_OUTPUT = "prompt_then_output"  # the output as it is made
    UNCACHED_THEN_OUTPUT = "uncached_then_output"  # the same, but for what of the prompt is read from a cache
    PROMPT_AND_LARGEST_OUTPUT = "prompt_and_largest_output"  # at admission, whatever is made of it
    PROMPT = "prompt"  # the output is not counted


_USUAL: Final = Charge.PROMPT_THEN_OUTPUT  # an enumeration takes 0.1 us to look a member up


class OutputEstimate:
    """
    The outputs of one model and task type, as counts per bucket; `likely` is their P90.

    `fresh_permille` is the P90 of the share of their prompts that counts, by tokens: many small prompts that a cache held say
    nothing of a large one. `weight` is that of a usual thing seen.
    """

    __slots__ = ("_counts", "_fresh", "_look_at", "_reads", "_total", "_weight", "fresh_permille", "likely")

    def __init__(self, weight: int = 1) -> None:
        self._counts: dict[int, int] = {}
        self._weight = weight
        self._total = 0
        self._look_at = 1
        self.likely = FIRST_TOKENS
        self.fresh_permille = 1_000
        self._fresh: OutputEstimate | None = None
        self._reads = 0

    def seen(self, tokens: int, weight: int = 1) -> None:
        """Learn from one whole answer."""
        tokens = max(1, tokens)
        power = tokens.bit_length() - 1
        bucket, counts = power * STEPS + ((tokens - (1 << power)) * STEPS >> power), self._counts
        counts[bucket] = counts.get(bucket, 0) + weight
        self._total += weight
        if self._total >= self._look_at:
            self._look()

    def read(self, counted: int, prompt: int) -> None:
        """Learn from one prompt of which `counted` tokens counted; after a few are seen it is relied on."""
        if self._fresh is None:
            self._fresh = OutputEstimate(USUAL_WEIGHT)
        fresh = self._fresh
        fresh.seen(
            -(-max(0, counted) * 1_000 // max(1, prompt)), min(MOST_WEIGHT, 1 + max(0, prompt) // TOKENS_A_WEIGHT)
        )
        self._reads += 1
        if self._reads >= LOOK_EVERY:
            self.fresh_permille = min(1_000, fresh.likely)

    def reserve(self, allowed: int) -> int:
        """Tokens to reserve for a call that allows at most `allowed` (0 = it does not say)."""
        return allowed if 0 < allowed < self.likely else self.likely

    def _look(self) -> None:
        halve_at, look_every = HALVE_AT * self._weight, LOOK_EVERY * self._weight
        if self._total >= halve_at:
            self._counts = {at: count // 2 for at, count in self._counts.items() if count > 1}
            self._total = sum(self._counts.values())
        self._look_at = min(halve_at, self._total + (1 if self._total < look_every else look_every))
        rank = -(-self._total * 9 // 10)
        for bucket in sorted(self._counts):
            rank -= self._counts[bucket]
            if rank <= 0:
                self.likely = _upper(bucket)
                return


class Outputs:
    """The estimates of all models and task types."""

    __slots__ = ("_kinds", "_others")

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], OutputEstimate] = {}
        self._others = OutputEstimate()

    def of(self, model: str, task_type: str) -> OutputEstimate:
        """The estimate of this kind, made on first sight while there is room."""
        kind = (model, task_type)
        found = self._kinds.get(kind)
        if found is None:
            if len(self._kinds) >= MOST_KINDS:
                return self._others
            found = self._kinds[kind] = OutputEstimate()
        return found


def charged(charge: Charge, prompt: int, allowed: int, likely: OutputEstimate) -> tuple[int, int]:
    """
    What a call takes of limits on tokens: (at once, reserved until its output is known).

    What the provider fixes at admission is taken at once; `allowed` = the caller's max_tokens, 0 = it does not say.
    """
    if charge is _USUAL:
        return prompt, allowed if 0 < allowed < likely.likely else likely.likely
    if charge is Charge.PROMPT:
        return prompt, 0
    if charge is Charge.PROMPT_AND_LARGEST_OUTPUT:
        return prompt + (allowed or likely.likely), 0
    prompt = -(-prompt * likely.fresh_permille // 1_000)
    return prompt, likely.reserve(allowed)


def common_charge(charges: Iterable[Charge]) -> Charge:
    """What to charge a call for that any of several providers may serve: one that counts all of a prompt is believed."""
    first, *others = charges
    return Charge.PROMPT_THEN_OUTPUT if first is Charge.UNCACHED_THEN_OUTPUT and {*others} - {first} else first


def _upper(bucket: int) -> int:
    power, step = divmod(bucket, STEPS)
    return (1 << power) + ((step + 1) << power) // STEPS
