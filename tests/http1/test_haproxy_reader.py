"""What we serve and pass on is what HAProxy would have read: whole streams of requests against one that says what it saw."""

import itertools
import json
import shutil
import socket
import subprocess
from contextlib import suppress

import pytest
from fuzz import SEEDS
from hypothesis import given, settings
from hypothesis import strategies as st
from test_differential import HONEST, PIECES, SMUGGLING, forwarded, ours

from eventually import at_last

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed"),
]

CONFIG = """
global
  nbthread 1
  log stdout format raw local0
defaults
  mode http
  timeout client 5s
  timeout connect 5s
  timeout server 5s
  timeout http-request 5s
frontend all
  bind 127.0.0.1:{port}
  log global
  option http-buffer-request
  http-request set-var(txn.body) req.body,hex
  log-format '[%cp,%ST,"%HM","%HU","%[var(txn.body)]"]'
  http-request return status 200 content-type text/plain string said
"""


class HAProxy:
    """A running one; `read` is what it read of one connection's bytes, `at_least` so many requests."""

    def __init__(self, port: int, said) -> None:
        self._port, self._said = port, said
        self._marks = itertools.count()

    def read(self, raw: bytes, at_least: int = 0) -> list[tuple[bytes, bytes, bytes]]:
        port = self._tell(raw, at_least)
        mark = f"/mark{next(self._marks)}"
        self._tell(b"GET %b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" % mark.encode(), 1)
        seen = []
        while (line := json.loads(self._said.readline()))[3] != mark:
            if line[:2] == [port, 200]:  # what it refuses is in its log as well
                seen.append((line[2].encode(), line[3].encode(), bytes.fromhex(line[4].replace("-", ""))))
        return seen

    def _tell(self, raw: bytes, at_least: int) -> int:
        """
        Everything is said and answered; the port that it was said from.

        Who closes his side gets one answer and no more, so that waits for as many as there must be.
        """
        with socket.create_connection(("127.0.0.1", self._port), timeout=10) as link:
            with suppress(ConnectionError):
                link.sendall(raw)
                answers = b""
                while answers.count(b"HTTP/1.1 ") < at_least and (read := link.recv(65_536)):
                    answers += read
                link.shutdown(socket.SHUT_WR)
                while link.recv(65_536):
                    pass
            return link.getsockname()[1]


@pytest.fixture(scope="module")
def haproxy(tmp_path_factory):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = tmp_path_factory.mktemp("haproxy") / "conf"
    config.write_text(CONFIG.format(port=port))
    with subprocess.Popen(["haproxy", "-f", config], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        at_last(lambda: is_up(port))
        yield HAProxy(port, process.stdout)
        process.terminate()


def is_up(port: int) -> bool:
    with socket.socket() as link:
        return link.connect_ex(("127.0.0.1", port)) == 0


LAST = b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


def assert_haproxy_read_the_same(haproxy: HAProxy, raw: bytes) -> None:
    seen = ours([raw])
    assert haproxy.read(raw, len(seen))[: len(seen)] == seen


def assert_what_goes_on_is_read_alike(haproxy: HAProxy, raw: bytes, *, chunked: bool) -> None:
    """As many requests go on as were served, not one more: the one behind them is read as itself."""
    seen = ours([raw])
    assert haproxy.read(forwarded([raw], chunked=chunked) + LAST, len(seen) + 1) == [*seen, (b"GET", b"/last", b"")]


def test_the_count_can_fail(haproxy):
    assert haproxy.read(b"POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi", 1) == [(b"POST", b"/p", b"hi")]
    assert (
        haproxy.read(b"POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n") == []
    )
    assert haproxy.read(b"nonsense\r\n\r\n") == []


@pytest.mark.parametrize("raw", SMUGGLING, ids=repr)
def test_no_smuggled_request_is_served_that_haproxy_does_not_see(haproxy, raw):
    assert_haproxy_read_the_same(haproxy, raw)


@pytest.mark.parametrize("raw", HONEST, ids=repr)
def test_what_is_honest_is_read_alike(haproxy, raw):
    assert haproxy.read(raw, 2) == ours([raw])
    for chunked in (False, True):
        assert_what_goes_on_is_read_alike(haproxy, raw, chunked=chunked)


def test_seeds_read_alike(haproxy):
    for row in json.loads(SEEDS.read_text()):
        assert_haproxy_read_the_same(haproxy, row["raw"].encode("latin-1"))


@settings(max_examples=400)
@given(st.lists(PIECES, min_size=1, max_size=12).map(b"".join), st.booleans())
def test_any_stream_of_pieces_reads_as_haproxy_reads_it(haproxy, raw, chunked):
    assert_haproxy_read_the_same(haproxy, raw)
    assert_what_goes_on_is_read_alike(haproxy, raw, chunked=chunked)
