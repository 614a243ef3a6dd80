"""
Whether a call may be repeated: read or write, from what is known before it is sent.

Generating is a read: it changes nothing at the provider, each send is only charged again. HTTP's safe methods are reads
(RFC 9110 9.2.1); everything else is a write, PUT and DELETE too, since idempotent there means the same state, not that
nobody noticed. When in doubt: write.
"""

from enum import StrEnum
from typing import Final

from swarmgate.core.errors import BadInput

EFFECT_HEADER: Final = "x-swarmgate-effect"
READ_PATH_CLASSES: Final = frozenset({"generate", "embeddings", "count_tokens"})
READ_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})  # methods are case-sensitive: `get` is an unknown one


class Effect(StrEnum):
    """May a call be sent again without asking what the first send did."""

    READ = "read"
    WRITE = "write"


def effect_of(
    method: str, path_class: str, *, declared: Effect | None = None, asked: str = "", may_relax: bool = False
) -> Effect:
    """
    The effect of a call (design 4: Effect).

    `declared` is what the operator wrote for the path class and outranks method and class; `asked` is the caller's
    `x-swarmgate-effect`: it may always turn read into write (stricter), and write into read only where policy says
    `may_relax`. Errors: `BadInput` for an unknown word, or for a relaxing without policy.
    """
    known = declared or (Effect.READ if method in READ_METHODS or path_class in READ_PATH_CLASSES else Effect.WRITE)
    if not asked:
        return known
    if asked not in {Effect.READ, Effect.WRITE}:
        raise BadInput(EFFECT_HEADER, f"{asked[:20]!r} is unknown; say read or write")
    if asked == Effect.READ and known is Effect.WRITE and not may_relax:
        raise BadInput(
            EFFECT_HEADER, "this call is a write; only the target's policy can let callers declare it a read"
        )
    return Effect(asked)
