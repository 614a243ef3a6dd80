"""
What a call costs, in micro-units (millionths of a US dollar): a provider's price, and tokens times price.

A price that is not known is None and makes the cost None: never 0. Everything is an integer and is rounded up once, at the
end, so that many small calls are not free.
"""

from typing import Final, NamedTuple

MILLION: Final = 1_000_000
# of one call: ten times the longest context there is; a target that tells more lies (LG-12)
MOST_TOKENS: Final = 100_000_000
# what a target told is no number of tokens, or one that the call cannot have used; -1 = it told none
NO_COUNT: Final = -2
FEW_TOKENS: Final = 32_768  # a count up to this is worth no second look
LONGEST_CONTEXT: Final = 10_000_000  # of any model: Llama 4 Scout, 2025
# that a model thinks: some providers do not count it to what a caller allows (Qwen: up to 81,920)
LONGEST_THOUGHT: Final = 131_072
ROUNDS: Final = 10  # a target that runs tools itself counts the context once for each round

# What a million tokens cost, by the size of the prompt: (from so many prompt tokens on, micro-units). Crossing a step
# prices all tokens anew, as providers do. Empty = the provider names no such price.
Rate = tuple[tuple[int, int], ...]


class Used(NamedTuple):
    """Tokens of one call; `prompt` holds those that were read from a cache (`cached`) or written to one."""

    prompt: int
    output: int
    cached: int = 0
    cache_written: int = 0


class Price(NamedTuple):
    """A model's price at a provider; `request_micro` is charged per call."""

    prompt: Rate
    output: Rate
    cached: Rate = ()
    cache_written: Rate = ()
    request_micro: int = 0


def could_use(prompt: int, output: int, window: int) -> bool:
    """Whether one call can have used so many tokens of a model with that context window, 0 = not known (reliability LG-12)."""
    most = window * ROUNDS or LONGEST_CONTEXT
    return prompt <= most and output <= most


def could_stream(pieces: int, allowed: int, window: int, choices: int = 1) -> bool:
    """
    Whether so many pieces of content, of a token or more each, can be the stream that a call asked for (reliability UP-06).

    `allowed`: output tokens of each choice as the caller limits them, `window`: of the model; 0 = not said, not known.
    """
    return pieces <= choices * (LONGEST_THOUGHT + 2 * (allowed or window or LONGEST_CONTEXT))


def cost_micro(price: Price | None, used: Used) -> int | None:
    """What the call costs; None if the price of something that it used is not known."""
    if price is None:
        return None
    fresh = max(0, used.prompt - used.cached - used.cache_written)
    parts = (
        (fresh, price.prompt),
        (used.cached, price.cached or price.prompt),
        (used.cache_written, price.cache_written or price.prompt),
        (used.output, price.output),
    )
    total = 0
    for tokens, rate in parts:
        if tokens > 0:
            if not rate:
                return None
            total += tokens * at(rate, used.prompt)
    return price.request_micro - -total // MILLION


def flat_cost(flat_micro: int, *, is_answered: bool) -> int | None:
    """
    What a call costs that does not go by its tokens (-1 = it does); None = that is not known.

    One that failed may be billed or not; what nobody bills costs nothing however it ended.
    """
    return flat_micro if not flat_micro or (flat_micro > 0 and is_answered) else None


def at(rate: Rate, prompt: int) -> int:
    """The micro-units for a million tokens of a call with a prompt of that size."""
    micro = rate[0][1]
    for start, step_micro in rate:
        if prompt <= start and start:
            break
        micro = step_micro
    return micro
