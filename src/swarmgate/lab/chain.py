"""
Text in which each token follows from the one before it and from its place: whoever hears it knows what is missing.

Stand-ins say it where a prompt asks for a chain, agents compare what came (reliability SE-07). A token has four characters, as
everywhere in the lab.
"""

from collections import Counter
from typing import NamedTuple
from zlib import crc32

CHARS_PER_TOKEN = 4


class Heard(NamedTuple):
    """Tokens of a chain that came, and of those that should have: lost, more than once or never said, at another place."""

    tokens: int = 0
    lost: int = 0
    doubled: int = 0
    moved: int = 0


NOTHING = Heard()


def chained(name: str, tokens: int) -> str:
    """So many tokens that begin with `name`."""
    said, link = [], name
    for at in range(tokens):
        link = f"{crc32(b'%d %b' % (at, link.encode())) & 0xFFFF:04x}"
        said.append(link)
    return "".join(said)


def heard(name: str, tokens: int, text: str) -> Heard:
    """What came of a chain."""
    should, came = _tokens(chained(name, tokens)), _tokens(text)
    if came == should:
        return Heard(len(came))
    lost, doubled = Counter(should) - Counter(came), Counter(came) - Counter(should)
    moved = 0 if lost or doubled else sum(one != other for one, other in zip(should, came, strict=True))
    return Heard(len(came), lost.total(), doubled.total(), moved)


def _tokens(text: str) -> list[str]:
    return [text[at : at + CHARS_PER_TOKEN] for at in range(0, len(text), CHARS_PER_TOKEN)]
