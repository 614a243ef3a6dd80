"""
Agents that call any OpenAI-compatible endpoint: one URL, one key, no repeats, so that what is measured is the endpoint.

A refusal is a result here, not something to come back from: whoever sizes a gateway wants to see where it begins to refuse.
"""

import re
import socket
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from swarmgate.http1.dial import Endpoint
from swarmgate.http1.head import Header
from swarmgate.http1.tls import client_context
from swarmgate.http1.upstreams import Located, Origin
from swarmgate.lab.agents.body import chat_body, post
from swarmgate.lab.agents.ways import OVER, STREAMED, Next, Outgoing
from swarmgate.lab.agents.wire import Answer
from swarmgate.lab.errors import LabError
from swarmgate.lab.workload import Wanted

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 5.6.2
COMPLETIONS = "/chat/completions"


class Destination(NamedTuple):
    """An endpoint taken apart, and where it is dialled."""

    origin: Origin
    path: bytes
    host: bytes
    endpoint: Endpoint

    def locate(self, _origin: Origin, located: Located) -> None:
        """It was looked up once, before the run: a name server's time is not the endpoint's."""
        located(self.endpoint)


def place_of(url: str) -> Destination:
    """The place that a base URL names, `http://127.0.0.1:8787/v1`. Errors: `LabError`."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.username:
        raise LabError("to", "is no base URL without user, password and query; write http://127.0.0.1:8787/v1")
    host = parts.hostname
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise LabError("to", f"{host} is not found: {error.strerror}") from None
    addresses = tuple(dict.fromkeys(str(info[4][0]) for info in found))
    secure = parts.scheme == "https"
    endpoint = Endpoint(addresses, port, client_context(), host) if secure else Endpoint(addresses, port)
    authority = parts.netloc.rpartition("@")[2].encode()
    path = parts.path.rstrip("/").removesuffix(COMPLETIONS) + COMPLETIONS
    return Destination(Origin(parts.scheme, host, port), path.encode(), authority, endpoint)


def header_of(line: str) -> Header:
    """A header that every call carries, `name: value`. Errors: `LabError`."""
    name, colon, value = (part.strip() for part in line.partition(":"))
    if not _NAME.fullmatch(name) or not colon or not value.isprintable() or not value.isascii():
        raise LabError("header", f"{name[:40]!r} is no header line; write 'name: value'")
    return name.lower().encode(), value.encode()


class ToEndpoint:
    """Every call goes to one endpoint, once; `headers` are what that endpoint wants besides."""

    idle_ms = 75_000
    chained = False

    def __init__(
        self, place: Destination, model: str, key: str, *, streams: bool, headers: Sequence[Header] = ()
    ) -> None:
        self._place = place
        self._model = model
        self._key = key
        self._streams = streams
        self._headers = headers

    def takes(self, wanted: Wanted) -> bool:
        """Model calls; fetches have nowhere to go here."""
        return wanted.task_type != "fetch"

    def first(self, _wanted: Wanted, now_ms: int) -> int:
        """At once."""
        return now_ms

    def outgoing(self, wanted: Wanted, _ticket: bytes) -> Outgoing:
        """A chat completion; a gate reads who asks, others pass over it."""
        headers: list[Header] = [
            (b"x-swarmgate-agent", wanted.agent.encode()),
            (b"x-swarmgate-priority", wanted.priority.encode()),
            *self._headers,
        ]
        if self._key:
            headers.append((b"authorization", f"Bearer {self._key}".encode()))
        is_stream = self._streams and wanted.task_type in STREAMED
        body = chat_body(wanted, self._model, is_stream=is_stream)
        return Outgoing(self._place.origin, b"POST", post(self._place.path, self._place.host, headers, body))

    def after(self, _wanted: Wanted, _answer: Answer, _sends: int, _now_ms: int) -> Next:
        """Whatever it was, it is the result."""
        return OVER

    def heartbeat(self, _agent: str) -> Outgoing | None:
        """Nobody asks."""
        return None
