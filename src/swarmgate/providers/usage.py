"""How many tokens an answer says it took, by the dialect's columns."""

from collections.abc import Mapping
from typing import NamedTuple

from swarmgate.providers.dialect import UsageFields


class Tokens(NamedTuple):
    """Counted tokens; None = not told. `cached` is part of `prompt`."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None


def read_tokens(columns: UsageFields, usage: Mapping[str, object]) -> Tokens:
    """
    The counts in an answer's `usage` object; anything that is no whole number reads as not told.

    Some (Gemini asked as OpenAI, xAI) count thoughts in the total only: they are output, and paid for.
    """
    prompt, completion, cached = (
        _first(usage, paths) for paths in (columns.prompt, columns.completion, columns.cached)
    )
    if prompt is not None:
        prompt += sum(_first(usage, (path,)) or 0 for path in columns.apart)
    total = _first(usage, ("total_tokens",))
    if prompt is not None and completion is not None and total is not None:
        completion = max(completion, total - prompt)
    return Tokens(prompt, completion, cached)


def _first(usage: Mapping[str, object], paths: tuple[str, ...]) -> int | None:
    for path in paths:
        value: object = usage
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None
