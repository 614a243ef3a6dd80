"""
The place that a deferred caller carries away, sealed so that it can be neither forged nor moved to a better class.

A ticket is its tenant's: another one that presents it has none.
Who was sent away stands in no line; its place is its score. A repeat that brings the ticket back until `until_ms`
(not_before + 5 s, design 5) goes before everybody who came later. The seal is a keyed BLAKE2b; the key is the gate's own.
"""

from hashlib import blake2b
from hmac import compare_digest
from typing import Final, NamedTuple

from swarmgate.core.answers import Denied
from swarmgate.core.line import CLASS_STEP

KEEPS_MS: Final = 5_000
SEAL_BYTES: Final = 12
LONGEST_TEXT: Final = 200


class Place(NamedTuple):
    """A place in line: the ticket's id, its score, and how long it is kept, on the clock of the gate that sealed it."""

    ticket: str
    score: int
    until_ms: int


def kept(ticket: str, denied: Denied, now_ms: int) -> Place:
    """The place of a caller that is sent away now."""
    return Place(ticket, denied.score, now_ms + (denied.not_before_ms - denied.now_ms) + KEEPS_MS)


def sealed(place: Place, key: bytes, tenant: str) -> str:
    """The text that the caller carries; printable ASCII without spaces if the ticket's id is."""
    said = f"{place.score:x}.{place.until_ms:x}.{place.ticket}"
    return f"{_seal(said, key, tenant)}.{said}"


def opened(text: str, key: bytes, tenant: str, rank: int, now_ms: int) -> Place | None:
    """The place in a ticket; None if it is forged, another tenant's, of another class, too old, or no ticket at all."""
    if len(text) > LONGEST_TEXT:
        return None
    seal, _, said = text.partition(".")
    parts = said.split(".", 2)
    if len(parts) < 3 or not compare_digest(seal.encode("utf-8", "replace"), _seal(said, key, tenant).encode()):
        return None
    place = Place(parts[2], int(parts[0], 16), int(parts[1], 16))
    return place if place.score // CLASS_STEP == rank and now_ms <= place.until_ms else None


def _seal(said: str, key: bytes, tenant: str) -> str:
    whose = f"{len(tenant)}:{tenant},{said}"  # one reading only
    return blake2b(whose.encode("utf-8", "replace"), key=key, digest_size=SEAL_BYTES).hexdigest()
