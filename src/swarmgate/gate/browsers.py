"""
Pages in a browser on this machine: none of another site may call the gate, whatever name it reaches it by.

A gate on loopback asks nobody for a key, and every page that is open there can reach it. A browser says `Origin` or
`Sec-Fetch-Site` where one site calls another (Fetch Standard), and a name that was rebound to 127.0.0.1 stands in `Host`. Programs
say neither, and reach the gate by an address, by `localhost`, by a name without a dot or by one that nobody can register
(`host.docker.internal`; reliability AZ-04, AZ-05).
A browser leaves `Origin` out where it only reads, so a request is judged by all three.
"""

import re
from collections.abc import Mapping
from typing import Final

ORIGIN: Final = b"origin"
SITE: Final = b"sec-fetch-site"
_HOME: Final = re.compile(
    rb"(?i:https?)://(?:(?:[a-z0-9-]+\.)*localhost|127(?:\.[0-9]+){3}|\[::1\])(?::[0-9]+)?", re.IGNORECASE
)
_UNBINDABLE: Final = re.compile(  # no page can have been loaded from there, or only from this machine
    rb"(?:[^.:\[\]]*|(?:[a-z0-9-]+\.)+(?:localhost|internal)|[0-9]+(?:\.[0-9]+){3}|\[[0-9a-f:.]+\])\.?(?::[0-9]*)?",
    re.IGNORECASE,
)


def is_foreign(fields: Mapping[bytes, bytes]) -> bool:
    """Whether a request for a path of the gate itself comes from a page of another site."""
    origin = fields.get(ORIGIN)
    if origin is not None and not _HOME.fullmatch(origin):
        return True
    return fields.get(SITE) == b"cross-site" or not _UNBINDABLE.fullmatch(fields.get(b"host", b""))
