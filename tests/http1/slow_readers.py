"""Targets that send as fast as they are read, and what is held of it, counted by the allocator."""

import contextlib
import tracemalloc
from asyncio.sslproto import SSLProtocol

NOTED = 4 * 1024  # what is smaller is no payload
SIZE = 100_000_000
SENT = b"HTTP/1.1 200 OK\r\n"
PIECE = b"x" * 0x10000
TARGETS = {
    "sized": (SENT + b"content-length: %d\r\n\r\n" % SIZE, PIECE),
    "chunked": (SENT + b"transfer-encoding: chunked\r\n\r\n", b"10000\r\n%b\r\n" % PIECE),
    "until close": (SENT + b"connection: close\r\n\r\n", PIECE),
}
FOR_GOOD = SSLProtocol.max_size, SSLProtocol.max_size + 1  # buffers into which TLS reads; each connection keeps one


def pour(listener, head, piece, tls=None):
    """A target that sends as fast as it is read; a thread, so that its loop holds nothing of it."""
    link, _ = listener.accept()
    if tls is not None:
        link = tls.wrap_socket(link, server_side=True)
    with link, contextlib.suppress(OSError):
        link.recv(65_536)
        link.sendall(head)
        for _ in range(SIZE // len(piece)):
            link.sendall(piece)


@contextlib.contextmanager
def counted():
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


def held():
    """Bytes in pieces that may be payload."""
    return sum(
        trace.size for trace in tracemalloc.take_snapshot().traces if trace.size > NOTED and trace.size not in FOR_GOOD
    )
