"""
How large a prompt is, where only that matters: four sizes, told apart where reading one begins to take as long as a call may wait.

A model reads some thousand to some ten thousand tokens a second. So prompts of the first size are read within a second or two,
those of the last not within the 8 s that a stream has until its content.
"""

from bisect import bisect_left
from typing import Final

PROMPT_BOUNDS: Final = (8_192, 32_768, 131_072)  # the last of each size in tokens; what is larger is a size, too
PROMPT_SIZES: Final = len(PROMPT_BOUNDS) + 1


def prompt_size(tokens: int) -> int:
    """The size of a prompt, as an index; 0 of one that nobody read."""
    return bisect_left(PROMPT_BOUNDS, tokens)
