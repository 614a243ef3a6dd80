"""
How a gate knows its own requests again: one header on whatever it sends.

A request that passed through this process and comes back to it would go round for ever. Gates may stand behind each
other, so each adds its own name and keeps those that are there already.
"""

import os
from typing import Final

HOP: Final = b"x-swarmgate-hop"
OUR_NAME: Final = os.urandom(6).hex().encode()  # of this process; says nothing about where it runs
OUR_HOP: Final = (HOP, OUR_NAME)


def is_loop(names: bytes) -> bool:
    """Whether one of the gates that a request passed, as its hop header lists them, is this one."""
    return OUR_NAME in names.replace(b" ", b"").split(b",")
