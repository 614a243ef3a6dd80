"""
How much of a call will count: the P90 of the outputs seen for its model and task type (design 4: Level), and the P90 of the
share of their prompts that no cache held, where a provider counts only that.

A histogram (core/histogram.py) follows a change within a few hundred answers. The first call of a kind reserves min(max_tokens,
1,024); nothing is ever reserved beyond what the caller allows. The first prompts count whole.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from swarmgate.core.histogram import LOOK_EVERY, Histogram

FIRST_TOKENS: Final = 1_024
LIKELY_PERCENT, LONGEST_PERCENT = 90, 99
USUAL_OUTPUT_TOKENS: Final = 2_048  # of a call that does not limit its output, at least
TOKENS_A_WEIGHT, MOST_WEIGHT, USUAL_WEIGHT = 64, 2_048, 256  # of prompts: each weighs what it takes
BYTES_PER_TOKEN: Final = 4  # English prose and JSON; what was underestimated is charged when the usage is known
LONGEST_PIECE: Final = (
    10  # bytes of a text that is one token; of recorded streams with a token in each piece the mean is 5
)
MOST_KINDS: Final = 4_096  # of models and task types; callers name both, so further ones share one histogram


class Charge(StrEnum):
    """What a provider counts against a limit in tokens, and when."""

    PROMPT_THEN_OUTPUT = "prompt_then_output"  # the output as it is made
    UNCACHED_THEN_OUTPUT = "uncached_then_output"  # the same, but for what of the prompt is read from a cache
    PROMPT_AND_LARGEST_OUTPUT = "prompt_and_largest_output"  # at admission, whatever is made of it
    PROMPT = "prompt"  # the output is not counted


_USUAL: Final = Charge.PROMPT_THEN_OUTPUT  # an enumeration takes 0.1 us to look a member up


class OutputEstimate(Histogram):
    """
    The outputs of one model and task type; `likely` is their P90, `longest` their P99 if that is more than what is usual.

    `fresh_permille` is the P90 of the share of their prompts that counts, by tokens: many small prompts that a cache held say
    nothing of a large one.
    """

    __slots__ = ("_fresh", "_reads", "fresh_permille", "longest")

    def __init__(self) -> None:
        super().__init__(LIKELY_PERCENT, FIRST_TOKENS)
        self.longest = USUAL_OUTPUT_TOKENS
        self.fresh_permille = 1_000
        self._fresh: Histogram | None = None
        self._reads = 0

    def look(self) -> None:
        """Tell anew what is likely, and what is the longest."""
        super().look()
        self.longest = max(USUAL_OUTPUT_TOKENS, self.at(LONGEST_PERCENT))

    def read(self, counted: int, prompt: int) -> None:
        """Learn from one prompt of which `counted` tokens counted; after a few are seen it is relied on."""
        if self._fresh is None:
            self._fresh = Histogram(LIKELY_PERCENT, FIRST_TOKENS, weight=USUAL_WEIGHT)
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


def charged(charge: Charge, prompt: int, allowed: int, likely: OutputEstimate, choices: int = 1) -> tuple[int, int]:
    """
    What a call takes of limits on tokens: (at once, reserved until its output is known).

    What the provider fixes at admission is taken at once; `allowed` = the caller's max_tokens, 0 = it does not say, for each of
    so many `choices` that are made side by side. All of them read one prompt.
    """
    if charge is _USUAL:
        return prompt, choices * (allowed if 0 < allowed < likely.likely else likely.likely)
    if charge is Charge.PROMPT:
        return prompt, 0
    if charge is Charge.PROMPT_AND_LARGEST_OUTPUT:
        return prompt + choices * (allowed or likely.likely), 0
    prompt = -(-prompt * likely.fresh_permille // 1_000)
    return prompt, choices * likely.reserve(allowed)


def generated(pieces: int, text: int) -> int:
    """
    Tokens of a stream that nobody counted, of so many pieces and bytes of text.

    Most providers send a token in each piece (OpenAI and what is like it), some send more at once (Anthropic, Mistral, Gemini).
    """
    return text // BYTES_PER_TOKEN if text > LONGEST_PIECE * pieces else pieces


def common_charge(charges: Iterable[Charge]) -> Charge:
    """What to charge a call for that any of several providers may serve: one that counts all of a prompt is believed."""
    first, *others = charges
    return Charge.PROMPT_THEN_OUTPUT if first is Charge.UNCACHED_THEN_OUTPUT and {*others} - {first} else first
