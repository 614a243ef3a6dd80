"""`[tls]`: certificates of the data port, and whom the gate trusts besides the system's authorities."""

import ssl
from pathlib import Path
from typing import Self

from pydantic import model_validator

from swarmgate.config.problems import Mistakes
from swarmgate.config.table import Table

_NO_PASSWORD = ""  # nobody could type one


class Tls(Table):
    """
    Files in PEM form. With `certificate` (and its chain) and `key` the data port speaks TLS, and nothing else.

    `client_ca`: only callers with a certificate by one of these authorities come in. `target_ca`: authorities of targets,
    besides the system's.
    """

    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    target_ca: Path | None = None

    @model_validator(mode="after")
    def _can_be_used(self) -> Self:
        found = [
            ((name,), f"the file {file} cannot be read")
            for name, file in (("certificate", self.certificate), ("key", self.key))
            if file is not None and not _is_readable(file)
        ]
        if (self.certificate is None) != (self.key is None):
            found.append((("certificate" if self.key else "key",), "stands without the other; both or none"))
        elif self.certificate is None and self.client_ca is not None:
            found.append((("client_ca",), "needs certificate and key: without them the data port speaks no TLS"))
        elif self.certificate is not None and not found and not _belong(self.certificate, self.key):
            found.append((("key",), "does not belong to certificate, has a password, or one of them is no PEM file"))
        for name in ("client_ca", "target_ca"):
            file = getattr(self, name)
            if file is not None and not _has_authorities(file):
                found.append(((name,), f"the file {file} cannot be read, or holds no certificate in PEM form"))
        if found:
            raise Mistakes(found)
        return self


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
