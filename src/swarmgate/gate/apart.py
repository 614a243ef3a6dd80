"""
What a request names at its provider beside its words, kept apart by tenant (reliability TI-06).

Providers share a prompt's cache, and count abuse, by a name that the caller chose. Two tenants behind one account must not
meet there: the one could tell by the time and the price of an answer what the other asks, or have its users blamed. So a name
goes out as a keyed hash of tenant and name: the same for the same tenant, so that its cache still works, and nobody else's.
"""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Raw

from swarmgate.gate.peeked import Peeked

NAMED: Final = frozenset({"prompt_cache_key", "user", "safety_identifier", "metadata"})
_METADATA, _USER_ID = "metadata", "user_id"  # https://docs.anthropic.com/en/api/messages: the one name in there
_encode: Final = msgspec.json.Encoder().encode
_text: Final = msgspec.json.Decoder(str).decode
_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode

Alias = Callable[[str], str]


def apart(peeked: Peeked, alias: Alias) -> Peeked:
    """The request with its names as `alias` has them; what is no text is left for the target to refuse."""
    fields = dict(peeked.fields)
    for name in fields.keys() & NAMED:
        fields[name] = _inside(fields[name], alias) if name == _METADATA else _aliased(fields[name], alias)
    return msgspec.structs.replace(peeked, fields=fields, body=_encode(fields))


def _aliased(value: Raw, alias: Alias) -> Raw:
    try:
        return Raw(_encode(alias(_text(value))))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return value


def _inside(value: Raw, alias: Alias) -> Raw:
    try:
        members = _members(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return value
    if _USER_ID not in members:
        return value
    return Raw(_encode(members | {_USER_ID: _aliased(members[_USER_ID], alias)}))
