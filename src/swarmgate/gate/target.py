"""
A place where models are called: its origin, its paths, its credentials, and the request that is written there.

A credential becomes part of ready-made openings and shows itself to nobody (design 2: P11); it goes to its own origin
only, because no other target holds it.
"""

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import parse_qsl, urlencode

from swarmgate.core.scope import SHOWS_KEY
from swarmgate.gate.hop import HOP, OUR_HOP
from swarmgate.gate.quotas import Quotas
from swarmgate.http1.head import Header, RequestHead
from swarmgate.http1.render import REPLACED, passed_on, request_head
from swarmgate.http1.upstreams import Origin
from swarmgate.providers.dialect import Dialect
from swarmgate.providers.tables import GENERIC

# What a caller says to the gate or about itself, and what would name an account other than the key's.
KEPT_HERE: Final = frozenset(
    {
        b"authorization",
        b"x-api-key",
        b"api-key",
        b"x-goog-api-key",
        b"openai-organization",
        b"openai-project",
        b"x-goog-user-project",
        b"x-dashscope-workspace",
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
        *REPLACED,
    }
)
SHORTEST_SECRET: Final = 8  # bytes; a shorter one is a placeholder, and a word of any text
_PLAIN: Final = (b"accept-encoding", b"identity")  # usage is read while the answer passes
_OURS: Final = b"x-swarmgate-"
_V1: Final = b"/v1"
_END: Final = b"\r\n"
_VERSION: Final = b" HTTP/1.1\r\n"
_CREDENTIALS: Final = frozenset({"key", "api_key", "api-key", "access_token"})
_WITH_BODY: Final = frozenset({b"POST", b"PUT", b"PATCH"})


def without_credentials(query: bytes) -> bytes:
    """A caller's query as a target may see it: a key in it is the gate's, and stays here (SC-03)."""
    text = query.decode("ascii")
    if not any(f"{name}=" in text for name in _CREDENTIALS):
        return query
    return urlencode([pair for pair in parse_qsl(text, keep_blank_values=True) if pair[0] not in _CREDENTIALS]).encode()


class ModelTarget:
    """
    One target. `base` replaces `/v1` of the `paths` that callers use; `credentials` are header fields by key id; `dialect`
    is how its answers are read, and which headers it wants where a caller sends none. `secrets` has the keys themselves,
    `windows` what the operator says of context windows, by model.

    Errors: `BadField` for a credential that would start a header line of its own.
    """

    __slots__ = ("_base", "_credentials", "_host", "_openings", "dialect", "origin", "quotas", "secrets", "windows")

    def __init__(
        self,
        origin: Origin,
        host: bytes,
        base: bytes,
        credentials: Mapping[str, Header],
        paths: Iterable[bytes],
        *,
        dialect: Dialect = GENERIC,
    ) -> None:
        self.origin = origin
        self._host = host
        self._base = base
        self._credentials = dict(credentials)
        keys = {key: value.rpartition(b" ")[2] for key, (_, value) in credentials.items()}
        self.secrets = {key: secret for key, secret in keys.items() if len(secret) >= SHORTEST_SECRET}
        self.dialect = dialect
        self.windows: Mapping[str, int] = {}
        self.quotas = Quotas(dialect)
        self._openings = {
            (key, path): request_head(b"POST", base + path.removeprefix(_V1), host, [credential, _PLAIN, OUR_HOP])[
                : -len(_END)
            ]
            for path in paths
            for key, credential in credentials.items()
        }

    def hide(self, said: bytes) -> bytes:
        """What the target said, of the same length, with its keys starred out: errors repeat them (reliability SC-02)."""
        for secret in self.secrets.values():
            if secret in said:
                said = said.replace(secret, b"*" * len(secret))
        return said

    def hide_all(self, headers: Iterable[Header]) -> list[Header]:
        """The same of an answer's headers."""
        return [(name, self.hide(value)) for name, value in headers]

    def request(
        self, key: str, path: bytes, head: RequestHead, body: bytes, query: bytes = b"", rest_bytes: int = 0
    ) -> bytes:
        """
        The request of one attempt: our opening, what the target may see of the caller's headers, the body.

        So many bytes of it as `rest_bytes` says are sent after this. A head that was read holds no CR or LF inside a field, so no line can begin there. Errors: KeyError for a key of
        another target.
        """
        passed = head.notes.get(self.dialect.name)
        if passed is None:
            passed = b"".join([b"%b: %b\r\n" % field for field in self._passed(head)])
            head.notes[self.dialect.name] = passed
        opening = self._openings[key, path]
        if query:
            opening = opening.replace(_VERSION, b"?" + query + _VERSION, 1)
        return b"%b%bcontent-length: %d\r\n\r\n%b" % (opening, passed, len(body) + rest_bytes, body)

    def passing_head(self, key: str, path: bytes, head: RequestHead, length: int | None, *, chunked: bool) -> bytes:
        """The head of a request that is passed on unread, whatever its method and path; `length` None = none or `chunked`."""
        if length is None and not chunked and head.method in _WITH_BODY:
            length = 0
        ours = [self._credentials[key], _PLAIN, OUR_HOP]
        where = self._base + path.removeprefix(_V1)
        return request_head(
            head.method, where, self._host, [*ours, *self._passed(head)], length=length, chunked=chunked
        )

    def _passed(self, head: RequestHead) -> list[Header]:
        """The lines of a caller's head that the target may see, and those that its dialect adds."""
        fields = [
            (name, value)
            for name, value in passed_on(head)
            if name not in KEPT_HERE and not name.startswith(_OURS) and not SHOWS_KEY.search(value)
        ]
        if HOP in head.fields:
            fields.append((HOP, head.fields[HOP]))
        fields += [one for one in self.dialect.headers if one[0] not in head.fields]
        return fields
