"""The request that a host sees: the caller's own headers, without what was said to the gate, and our hop."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote_to_bytes

from swarmgate.core.effect import READ_METHODS
from swarmgate.core.idempotency import HEADER
from swarmgate.core.scope import SHOWS_KEY
from swarmgate.core.target import ParsedUrl
from swarmgate.gate.egress.rewrite import is_credential
from swarmgate.gate.hop import HOP, OUR_HOP, OUR_NAME
from swarmgate.gate.identity import REQUEST_ID
from swarmgate.gate.keeper import presented
from swarmgate.http1.head import Header, RequestHead
from swarmgate.http1.render import passed_on, request_head

OURS: Final = b"x-swarmgate-"
UPGRADE: Final = b"x-swarmgate-upgrade"
_TRACES: Final = frozenset({b"traceparent", b"tracestate", b"baggage", REQUEST_ID})
_AGENT: Final = b"user-agent"
IDEMPOTENCY: Final = HEADER.encode()
# An agent's key for the gate is nobody else's, in base64 either.
_MAYBE_OURS: Final = frozenset({b"authorization", b"x-api-key", b"api-key"})
_TO_THE_GATE: Final = frozenset({b"proxy-authorization", b"proxy-authenticate"})
_SAYS_WHO: Final = frozenset(
    {"key", "appid", "app_id", "client_id", "sig"}
)  # in a query, beside what is called as headers are
_WITH_BODY: Final = frozenset({b"POST", b"PUT", b"PATCH"})


class Manners(NamedTuple):
    """How a host is to be called: whose name is said (empty = the caller's), and what does not go along."""

    user_agent: bytes = b""
    traces: bool = False
    bare: bool = False  # without credentials
    key: bytes = b""  # of a write, made from agent, task and operation, for a host that honours such keys


_ANY: Final = Manners()


def render(head: RequestHead, url: ParsedUrl, manners: Manners, length: int | None, *, chunked: bool) -> bytes:
    """The head of one request; `length` of a body that is known, None = none or `chunked`. Errors: `BadField`."""
    headers = [field for field in passed_on(head) if not _stays(*field, manners)]
    if manners.user_agent:
        headers = [field for field in headers if field[0] != _AGENT] + [(_AGENT, manners.user_agent)]
    if url.credential is not None and not manners.bare and b"authorization" not in head.fields:
        secret = b64encode(unquote_to_bytes(url.credential.userinfo))
        headers.append((b"authorization", b"Basic " + secret))
    if manners.key and IDEMPOTENCY not in head.fields:
        headers.append((IDEMPOTENCY, manners.key))
    headers.append(_hop(head))
    if length is None and not chunked and head.method in _WITH_BODY:
        length = 0
    authority = url.target.authority.encode()
    return request_head(head.method, url.origin_form.encode(), authority, headers, length=length, chunked=chunked)


def is_plain(method: bytes, fields: Mapping[bytes, bytes], url: ParsedUrl) -> bool:
    """
    Whether nobody can bill anybody for a request: it only reads, and nothing in it says who asks.

    What is shown to the gate alone does not go along. A key may stand in a body: who sends one is not plain.
    """
    if method.decode("latin-1") not in READ_METHODS or url.credential is not None:
        return False
    names = [name.lower() for name, _ in parse_qsl(url.origin_form.partition("?")[2], keep_blank_values=True)]
    if any(name in _SAYS_WHO or is_credential(name.encode()) for name in names):
        return False
    return not any(
        is_credential(name) and name not in _TO_THE_GATE and not _stays(name, value, _ANY)
        for name, value in fields.items()
    )


def _stays(name: bytes, value: bytes, manners: Manners) -> bool:
    if name.startswith(OURS) or SHOWS_KEY.search(value) or (name in _MAYBE_OURS and presented({name: value})):
        return True
    if name in _TRACES:
        return not manners.traces
    return manners.bare and is_credential(name)


def _hop(head: RequestHead) -> Header:
    before = head.fields.get(HOP)
    return OUR_HOP if before is None else (HOP, before + b", " + OUR_NAME)
