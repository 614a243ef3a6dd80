"""`[tls]`: certificates of the data port, and whom the gate trusts besides the system's authorities."""

import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, model_validator

from swarmgate.config.problems import Loc, Mistakes
from swarmgate.config.table import Table
from swarmgate.core.errors import BadInput

_NO_PASSWORD = ""  # nobody could type one


def _readable(file: Path) -> Path:
    if not _is_readable(file):
        raise BadInput("", f"the file {file} cannot be read")
    return file


def _authorities(file: Path) -> Path:
    if not _has_authorities(file):
        raise BadInput("", f"the file {file} cannot be read, or holds no certificate in PEM form")
    return file


Readable = Annotated[Path, AfterValidator(_readable)]
Authorities = Annotated[Path, AfterValidator(_authorities)]


class Tls(Table):
    """
    Files in PEM form. With `certificate` (and its chain) and `key` the data port speaks TLS, and nothing else.

    `client_ca`: only callers with a certificate by one of these authorities come in. `target_ca`: authorities of targets,
    besides the system's.
    """

    certificate: Readable | None = None
    key: Readable | None = None
    client_ca: Authorities | None = None
    target_ca: Authorities | None = None

    @model_validator(mode="after")
    def _belongs(self) -> Self:
        if self.certificate is not None and self.key is not None and not _belong(self.certificate, self.key):
            why = "does not belong to certificate, has a password, or one of them is no PEM file"
            raise Mistakes([(("key",), why)])
        return self


def unresolved(raw: Mapping[str, Any]) -> Iterator[tuple[Loc, str]]:
    """What is written without what it needs, be that right or wrong."""
    tls = raw.get("tls")
    if not isinstance(tls, dict):
        return
    if ("certificate" in tls) != ("key" in tls):
        yield ("tls", "certificate" if "key" in tls else "key"), "stands without the other; both or none"
    elif "certificate" not in tls and "client_ca" in tls:
        yield ("tls", "client_ca"), "needs certificate and key: without them the data port speaks no TLS"


def _is_readable(file: Path) -> bool:
    try:
        file.read_bytes()
    except OSError:
        return False
    return True


def _belong(certificate: Path, key: Path | None) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, _NO_PASSWORD)
    except (ssl.SSLError, ValueError):
        return False
    return True


def _has_authorities(file: Path) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(file)
    except OSError:  # ssl.SSLError is one
        return False
    return True
