"""
One dead letter: who asked for what, why it was given up, and the request itself if it may be kept.

What names an account or a session is not part of it: a letter is sent again with the sender's own credentials (design 2: P11).
"""

import re
from typing import Final

import msgspec

MOST_BODY_BYTES: Final = 1024 * 1024
SECRET: Final = frozenset(
    {
        *(
            "authorization",
            "proxy-authorization",
            "x-api-key",
            "api-key",
            "x-goog-api-key",
            "x-swarmgate-key",
            "cookie",
        ),
        *(
            "x-swarmgate-ticket",
            "x-swarmgate-hop",
            "content-length",
            "transfer-encoding",
            "connection",
            "host",
            "expect",
        ),
    }
)
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")


class Letter(msgspec.Struct, frozen=True):
    """
    `method`, `path` (as it was asked of the gate) and `headers` make the request again; `body` None = not kept, and why.

    `replays` are the ids under which it was sent again, with what came of it.
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
    """The headers of a request without secrets and framing."""
    said = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields]
    return [(name, value) for name, value in said if name not in SECRET]
