import contextlib
import socket

import pytest

from kernels import TELLS_OF_SOCKETS
from swarmgate.http1 import hung_up
from swarmgate.http1.hung_up import has_hung_up


@contextlib.contextmanager
def connected(family, host):
    """Both ends of a connection over which nothing more can be written: ours, theirs."""
    with socket.create_server((host, 0), family=family) as door, socket.socket(family) as theirs:
        theirs.connect(door.getsockname())
        ours, _ = door.accept()
        with ours:
            theirs.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    theirs.send(bytes(256 * 1024))
            yield ours, theirs


PLACES = pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])


@TELLS_OF_SOCKETS
@PLACES
@pytest.mark.parametrize(
    "leave", [socket.socket.close, lambda link: link.shutdown(socket.SHUT_WR)], ids=["closed", "half-closed"]
)
def test_an_end_that_stands_behind_bytes_that_nobody_takes_is_known_on_this_machine(family, host, leave):
    with connected(family, host) as (ours, theirs):
        assert not has_hung_up(ours)
        leave(theirs)
        assert has_hung_up(ours)


@pytest.mark.parametrize("answer", [b"", bytes(15), bytes(200), None])
def test_a_kernel_that_does_not_answer_says_that_nobody_left(answer, monkeypatch):
    class Kernel:
        def __init__(self, *_kind):
            if answer is None:
                raise PermissionError

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def send(self, _question):
            pass

        def recv(self, *_most):
            return answer

    with connected(socket.AF_INET, "127.0.0.1") as (ours, theirs):
        theirs.shutdown(socket.SHUT_WR)
        monkeypatch.setattr(hung_up.socket, "socket", Kernel)
        assert not has_hung_up(ours)


def test_what_is_closed_or_is_no_connection_over_a_network_is_not_asked_for():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert not has_hung_up(ours)
        theirs.close()
        assert has_hung_up(ours)
    assert not has_hung_up(ours)
