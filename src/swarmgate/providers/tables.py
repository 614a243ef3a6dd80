"""All dialects, and which of them a host, an operator or an answer's headers mean."""

from collections.abc import Iterable

from swarmgate.core.errors import BadInput
from swarmgate.providers import (
    anthropic,
    azure,
    deepseek,
    gemini,
    generic,
    groq,
    mistral,
    moonshot,
    openai,
    openrouter,
    qwen,
)
from swarmgate.providers.dialect import Dialect

_MODULES = (openai, azure, anthropic, gemini, mistral, groq, deepseek, moonshot, qwen, openrouter, generic)
DIALECTS: dict[str, Dialect] = {module.DIALECT.name: module.DIALECT for module in _MODULES}
GENERIC = generic.DIALECT


def dialect_named(name: str) -> Dialect:
    """The dialect of that name. Errors: `BadInput` on `provider`, with the names there are."""
    if name not in DIALECTS:
        raise BadInput("provider", f"{name[:40]!r} has no table; there are {', '.join(DIALECTS)}")
    return DIALECTS[name]


def dialect_of(host: str) -> Dialect:
    """The dialect spoken at a host (`api.groq.com`, with or without a port); `generic` where nobody is known."""
    name = host.lower().partition(":")[0].rstrip(".")
    for dialect in DIALECTS.values():
        for known in dialect.hosts:
            if name == known or (known[0] in ".-" and name.endswith(known)):
                return dialect
    return GENERIC


def recognised(header_names: Iterable[str]) -> Dialect:
    """The dialect that an answer's headers give away; `generic` if none does."""
    names = {name.lower() for name in header_names}
    for dialect in DIALECTS.values():
        if not names.isdisjoint(dialect.telltales):
            return dialect
    return GENERIC
