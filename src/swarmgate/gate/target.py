"""
A place where models are called: its origin, its paths, its credentials, and the request that is written there.

A credential is held as the header line that it becomes and shows itself to nobody (design 2: P11); it goes to its own
origin only, because no other target holds it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from swarmgate.http1.head import Header, RequestHead
from swarmgate.http1.render import passed_on, request_head
from swarmgate.http1.upstreams import Origin

# What a caller says to the gate or about itself, and what would name an account other than the key's.
KEPT_HERE = frozenset(
    {
        b"authorization",
        b"x-api-key",
        b"api-key",
        b"x-goog-api-key",
        b"openai-organization",
        b"openai-project",
        b"cookie",
        b"accept-encoding",
        b"traceparent",
        b"tracestate",
        b"baggage",
        b"x-request-id",
        b"forwarded",
        b"via",
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-proto",
        b"x-real-ip",
        b"x-should-retry",
    }
)
_PLAIN = (b"accept-encoding", b"identity")  # usage is read while the answer passes
_V1 = len(b"/v1")


class Credential:
    """One key's header; its value is nowhere shown."""

    __slots__ = ("header",)

    def __init__(self, header: Header) -> None:
        self.header = header

    def __repr__(self) -> str:
        return "Credential(***)"


@dataclass(frozen=True, slots=True)
class ModelTarget:
    """`base` replaces `/v1` of the caller's path; `credentials` by key id."""

    origin: Origin
    host: bytes
    base: bytes
    credentials: Mapping[str, Credential]

    def request(self, key: str, path: bytes, headers: list[Header], body: bytes) -> bytes:
        """The whole request for one attempt. Errors: KeyError for a key of another target."""
        lines = [self.credentials[key].header, _PLAIN, *headers]
        return request_head(b"POST", self.base + path[_V1:], self.host, lines, length=len(body)) + body


def passed_headers(head: RequestHead, *, identified: bool) -> list[Header]:
    """The caller's headers that the target may see."""
    passed = passed_on(head, KEPT_HERE)
    return [field for field in passed if not field[0].startswith(b"x-swarmgate-")] if identified else passed
