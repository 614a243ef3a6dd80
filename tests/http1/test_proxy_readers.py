"""What we serve and pass on is what HAProxy and nginx would have read: whole streams of requests against both, which say what they saw."""

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

pytestmark = pytest.mark.peers

HAPROXY = """
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
  log-format '[%cp,%ST,"%HM %HU","%[var(txn.body)]"]'
  http-request return status 200 content-type text/plain string said
"""
# It reads a body only to pass it on: to itself.
NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  log_format said escape=json '[$remote_port,$status,"$request","$request_body"]';
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{ listen unix:{folder}/s.sock; access_log off; location / {{ return 200 "said"; }} }}
  server {{
    listen 127.0.0.1:{port};
    access_log /dev/stdout said;
    location / {{ proxy_pass http://unix:{folder}/s.sock:; }}
  }}
}}
"""
# The file and its option, how a body is told, and a target that the program knows of and never serves (RFC 9112 3.2.4).
PROGRAMS = {
    "haproxy": (HAPROXY, "-f", lambda told: bytes.fromhex(told.removeprefix("-")), b""),
    "nginx": (NGINX, "-c", lambda told: told.removeprefix("-").encode("latin-1"), b"*"),
}


class Proxy:
    """A running one; `read` is what it read of one connection's bytes, `at_least` so many requests; `refused` targets it serves never."""

    def __init__(self, port: int, said, body, refused: bytes) -> None:
        self._port, self._said, self._body, self.refused = port, said, body, refused
        self._marks = itertools.count()

    def read(self, raw: bytes, at_least: int = 0) -> list[tuple[bytes, bytes, bytes]]:
        port = self._tell(raw, at_least)
        mark = f"/mark{next(self._marks)}/"
        self._tell(b"GET %b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" % mark.encode(), 1)
        seen = []
        while mark not in (line := json.loads(self._said.readline().decode("latin-1")))[2]:
            if line[:2] == [port, 200]:  # what it refuses is in its log as well
                method, target = line[2].split(" ")[:2]
                seen.append((method.encode(), target.encode("latin-1"), self._body(line[3])))
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


@pytest.fixture(scope="module", params=PROGRAMS)
def proxy(request, tmp_path_factory):
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp(request.param)
    text, option, body, refused = PROGRAMS[request.param]
    (folder / "conf").write_text(text.format(port=port, folder=folder))
    command = [request.param, option, folder / "conf"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        at_last(lambda: is_up(port))
        yield Proxy(port, process.stdout, body, refused)
        process.terminate()


def is_up(port: int) -> bool:
    with socket.socket() as link:
        return link.connect_ex(("127.0.0.1", port)) == 0


LAST = b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


def assert_proxy_read_the_same(proxy: Proxy, raw: bytes) -> None:
    seen = list(itertools.takewhile(lambda one: one[1] != proxy.refused, ours([raw])))
    assert proxy.read(raw, len(seen))[: len(seen)] == seen


def assert_what_goes_on_is_read_alike(proxy: Proxy, raw: bytes, *, chunked: bool) -> None:
    """As many requests go on as were served, not one more: the one behind them is read as itself."""
    seen = ours([raw])
    assert proxy.read(forwarded([raw], chunked=chunked) + LAST, len(seen) + 1) == [*seen, (b"GET", b"/last", b"")]


def test_the_count_can_fail(proxy):
    assert proxy.read(b"POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi", 1) == [(b"POST", b"/p", b"hi")]
    assert (
        proxy.read(b"POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n") == []
    )
    assert proxy.read(b"nonsense\r\n\r\n") == []


@pytest.mark.parametrize("raw", SMUGGLING, ids=repr)
def test_no_smuggled_request_is_served_that_a_proxy_does_not_see(proxy, raw):
    assert_proxy_read_the_same(proxy, raw)


@pytest.mark.parametrize("raw", HONEST, ids=repr)
def test_what_is_honest_is_read_alike(proxy, raw):
    assert proxy.read(raw, 2) == ours([raw])
    for chunked in (False, True):
        assert_what_goes_on_is_read_alike(proxy, raw, chunked=chunked)


def test_seeds_read_alike(proxy):
    for row in json.loads(SEEDS.read_text()):
        assert_proxy_read_the_same(proxy, row["raw"].encode("latin-1"))


@settings(max_examples=400)
@given(st.lists(PIECES, min_size=1, max_size=12).map(b"".join), st.booleans())
def test_any_stream_of_pieces_reads_as_proxies_read_it(proxy, raw, chunked):
    assert_proxy_read_the_same(proxy, raw)
    assert_what_goes_on_is_read_alike(proxy, raw, chunked=chunked)
