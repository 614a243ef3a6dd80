"""
One dead letter: who asked for what, why it was given up, and the request itself if it may be kept.

What names an account or a session is not part of it: a letter is sent again with the sender's own credentials (design 2: P11).
"""

import re
from typing import Final
from urllib.parse import unquote

import msgspec

MOST_BODY_BYTES: Final = 1024 * 1024
REPLAY_OF: Final = "x-swarmgate-replay-of"  # of a request that is a letter sent again: its id
OURS: Final = frozenset(
    {
        "x-swarmgate-ticket",
        "x-swarmgate-hop",
        REPLAY_OF,
        "content-length",
        "transfer-encoding",
        "connection",
        "host",
        "expect",
    }
)
_HARMLESS: Final = frozenset({"idempotency-key"})
_SECRET: Final = re.compile(
    r"auth|token|secret|passw|pwd|credential|cookie|session|signature|jwt|api-?key|(^|[-_.])(key|sig|code|state)$",
    re.IGNORECASE,
)
_USERINFO: Final = re.compile(r"(/to/(?:\+[0-9]+x?d?/)?[A-Za-z][A-Za-z0-9+.-]*/|[A-Za-z][A-Za-z0-9+.-]*://)[^/?#]*@")
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")


class Letter(msgspec.Struct, frozen=True):
    """
    `method`, `path` (as it was asked of the gate) and `headers` make the request again; `body` None = not kept, and why.

    `replays` are the ids under which it was sent again, with what came of it (shelf.py).
    """

    id: str
    at_ms: int
    reason: str
    target: str
    model: str
    attempts: int
    step: dict[str, str]
    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes | None
    without_body: str = ""
    replays: dict[str, str] = {}


def is_id(text: str) -> bool:
    """Whether this can name a letter or a replay: it becomes part of a file's name."""
    return _ID.fullmatch(text) is not None


def kept_headers(fields: list[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    """The headers of a request without secrets, by their names, and without framing."""
    said = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields]
    return [(name, value) for name, value in said if name not in OURS and not names_secret(name)]


def kept_path(target: bytes) -> str:
    """The target of a request without what names an account: userinfo, and words and parameters by their names."""
    path, mark, query = _USERINFO.sub(r"\1", target.decode("latin-1")).partition("?")
    if path.startswith("/as/"):
        words, slash, rest = path[4:].partition("/")
        path = f"/as/{_without_secrets(words, ',')}{slash}{rest}"
    query = _without_secrets(query, "&")
    return f"{path}{mark if query else ''}{query}"


def names_secret(name: str) -> bool:
    """Whether what bears this name may be a credential; a doubtful one is not kept."""
    return name.lower() not in _HARMLESS and _SECRET.search(name.replace("_", "-")) is not None


def _without_secrets(pairs: str, between: str) -> str:
    return between.join(pair for pair in pairs.split(between) if not names_secret(unquote(pair.partition("=")[0])))
