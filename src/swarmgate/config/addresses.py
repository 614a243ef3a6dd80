"""Addresses in the file: where the gate listens, and the base URLs of targets."""

from typing import Annotated, NamedTuple

from pydantic import BeforeValidator

from swarmgate.core.errors import BadInput
from swarmgate.core.host import normal_host
from swarmgate.core.target import parse_target
from swarmgate.core.target_errors import TARGET_REASONS, BadTarget

DEFAULT_LISTEN = "127.0.0.1:8787"
_CREDENTIAL = (
    "carries a user or a password, which the gate does not send: a key stands in `keys` as env:NAME or file:PATH, and "
    "`auth` says how it is sent: bearer, x-api-key or api-key"
)
_NO_URL = "is no base URL such as https://host[:port]/v1"


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


def read_base_url(text: object) -> BaseUrl:
    """
    Read as callers' URLs are (core/target.py); a percent sign in a host would be one more spelling, or a zone that is dropped.

    Errors: `BadInput`, whose reason repeats nothing of it.
    """
    url = text if isinstance(text, str) else ""
    if "?" in url or "#" in url:
        raise BadInput("", f"{_NO_URL}: it has a query or a fragment; leave it out")
    try:
        target, _, path, credential = parse_target(url)
    except BadTarget as bad:
        _, rule = TARGET_REASONS[bad.reason]
        whose = "it" if bad.field == "url" else f"its {bad.field}"
        raise BadInput("", f"{_NO_URL}: {whose} {rule.partition(': ')[0]}") from None
    if credential is not None:
        raise BadInput("", _CREDENTIAL)
    if "%" in url.split("/", 3)[2]:
        raise BadInput("", f"{_NO_URL}: its host has a percent sign; write the name or address itself, without a zone")
    return BaseUrl(target.scheme, target.host, target.port, path.rstrip("/"))


def _listen(text: object) -> Listen:
    host, _, port = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    host = host.removeprefix("[").removesuffix("]")
    if not _is_host(host) or not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65_535):
        raise BadInput("", f"{text!r} is no address; write {DEFAULT_LISTEN!r}")
    return Listen(host, int(port))


def _is_host(text: str) -> bool:
    """Whether a name or an address may stand there; an address of the local link with its zone may, too."""
    try:
        normal_host(f"[{text.partition('%')[0]}]" if ":" in text else text)
    except BadTarget:
        return False
    return True


BaseUrlText = Annotated[BaseUrl, BeforeValidator(read_base_url)]
ListenText = Annotated[Listen, BeforeValidator(_listen)]
