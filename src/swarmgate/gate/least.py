"""
The fewest tokens that a prompt can have: what is certain enough to pass over the model that the caller asked for.

Estimates are wrong both ways, and a model must not be passed over that would take the call. But no tokenizer of the models
that are served joins words over a space: a prompt has at least as many tokens as words. Words are counted in what came, so
whatever may be no text for the model, or be left out of its context by its provider, makes the count nothing.
"""

from typing import Final

from swarmgate.core.record import Rung
from swarmgate.gate.peeked import Peeked

MOST_BYTES: Final = 1 << 20  # that are looked at of each member: some 2 ms
FEWEST_TOKENS: Final = 1_024  # a smaller prompt fits every window that is worth a look
_MEMBERS: Final = ("messages", "input", "prompt", "system", "instructions")  # not tools: they may be loaded when needed
# The provider cuts the prompt itself: OpenAI, Anthropic; OpenRouter; vLLM.
_CUT_ELSEWHERE: Final = ("truncation", "context_management", "transforms", "plugins", "truncate_prompt_tokens")
_NOT_READ_AGAIN: Final = (b'"thinking"', b'"reasoning', b"think>")  # of earlier turns it may be left out
_SEVERAL: Final = b"["  # prompts in one request: each has a window of its own
# What stands beside a space that is between the parts of a JSON text, or at an end of a string; it may stand inside of one.
_BETWEEN: Final = (b": ", b", ", b"{ ", b"[ ", b" }", b" ]", b"\n", b"\t", b"\r", b'" ', b' "')
# One with another white space behind it, escaped or not, begins no word: a tokenizer may take a whole run of them for one token.
_BESIDE: Final = (*_BETWEEN, b" \\", b" \xc2\xa0", b" \xe2\x80", b" \xe3\x80")


def least_tokens(peeked: Peeked, rung: Rung) -> int:
    """The fewest tokens of a prompt that is certainly larger than the window of a rung's model; 0 = it may fit."""
    if peeked.prompt_tokens < FEWEST_TOKENS or rung.window is None:
        return 0
    window = rung.window(peeked.model)
    if not 0 < window < 2 * peeked.prompt_tokens:  # a word with its space has two bytes at least
        return 0
    fields = peeked.fields
    if not fields.keys().isdisjoint(_CUT_ELSEWHERE):
        return 0
    words = sum([_words(bytes(memoryview(fields[name])[:MOST_BYTES]), name) for name in _MEMBERS if name in fields])
    return words if words > window else 0


def _words(text: bytes, name: str) -> int:
    """At most as many as there are words in the strings of a JSON text."""
    if any(sign in text for sign in _NOT_READ_AGAIN) or (name == "prompt" and text.startswith(_SEVERAL)):
        return 0
    # of several spaces in a row at most one is left
    return max(0, text.replace(b"  ", b"").count(b" ") - sum([text.count(sign) for sign in _BESIDE]))
