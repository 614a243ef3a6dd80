"""What this machine's kernel tells: some things can be shown only where it does."""

import socket

import pytest


def _tells_of_sockets():
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4).close()  # sock_diag
    except (OSError, AttributeError):
        return False
    return True


TELLS_OF_SOCKETS = pytest.mark.skipif(not _tells_of_sockets(), reason="the kernel does not tell of its sockets")
