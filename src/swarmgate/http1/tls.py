"""
TLS towards targets: verified, named, and no switch that a caller could reach to weaken it.

Here lives the one context that all dials share: building it costs tens of milliseconds (the trust store is read).
"""

import ssl
from pathlib import Path


def client_context(extra_ca: Path | None = None) -> ssl.SSLContext:
    """
    A context that checks certificate and name against the system's roots, and `extra_ca` (a PEM file) besides.

    TLS 1.2 or newer; only HTTP/1.1 is offered. Raises OSError or ssl.SSLError if `extra_ca` cannot be read.
    """
    context = ssl.create_default_context()
    if extra_ca is not None:
        context.load_verify_locations(extra_ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context
