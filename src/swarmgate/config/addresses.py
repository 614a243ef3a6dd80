"""Addresses in the file: where the gate listens, and the base URLs of targets."""

from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

from pydantic import BeforeValidator

from swarmgate.core.errors import BadInput

DEFAULT_LISTEN = "127.0.0.1:8787"


class BaseUrl(NamedTuple):
    """A base URL taken apart; `path` has no slash at its end."""

    scheme: str
    host: str
    port: int
    path: str


class Listen(NamedTuple):
    """The data port."""

    host: str
    port: int


def _base_url(text: object) -> BaseUrl:
    try:
        url = urlsplit(text) if isinstance(text, str) else urlsplit("")
        port = url.port
    except ValueError:
        url, port = urlsplit(""), None
    if url.scheme not in {"http", "https"} or not url.hostname or url.query or url.fragment:
        raise BadInput("", "is no base URL; write https://host[:port]/v1")
    if url.username or url.password:
        raise BadInput("", "carries a user or a password; keys stand in `keys`")
    return BaseUrl(url.scheme, url.hostname, port or (443 if url.scheme == "https" else 80), url.path.rstrip("/"))


def _listen(text: object) -> Listen:
    host, _, port = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise BadInput("", f"{text!r} is no address; write {DEFAULT_LISTEN!r}")
    return Listen(host, int(port))


BaseUrlText = Annotated[BaseUrl, BeforeValidator(_base_url)]
ListenText = Annotated[Listen, BeforeValidator(_listen)]
