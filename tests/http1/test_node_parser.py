"""What we pass on is what Node's parser would have read: whole streams of requests against a server of `node:http`."""

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

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed"),
]

# Said per connection: what was read of it, also where what follows is an error that takes the answers with it.
SERVER = """
const server = require("http").createServer((request, response) => {
  const said = [request.method, request.url, ""];
  const push = request.push.bind(request);
  request.push = (part) => {
    if (part === null) request.socket.seen.push(said);
    else said[2] += part.toString("latin1");
    return push(part);
  };
  response.end();
});
server.on("connection", (socket) => {
  socket.seen = [];
  socket.on("close", () => console.log(JSON.stringify(socket.seen)));
});
server.httpAllowHalfOpen = true;
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
"""


class Node:
    """A running server; `read` is what it read of one connection's bytes."""

    def __init__(self, said) -> None:
        self._said = said
        self._port = int(said.readline())

    def read(self, raw: bytes) -> list[tuple[bytes, bytes, bytes]]:
        with socket.create_connection(("127.0.0.1", self._port), timeout=10) as link, suppress(ConnectionError):
            link.sendall(raw)
            link.shutdown(socket.SHUT_WR)
            while link.recv(65_536):
                pass
        return [tuple(part.encode("latin-1") for part in one) for one in json.loads(self._said.readline())]


@pytest.fixture(scope="module")
def node():
    with subprocess.Popen(["node", "-e", SERVER], stdout=subprocess.PIPE) as process:
        yield Node(process.stdout)
        process.terminate()


def assert_node_read_the_same(node: Node, raw: bytes) -> None:
    seen, other = ours([raw]), node.read(raw)
    assert seen == other[: len(seen)]


def test_the_count_can_fail(node):
    assert node.read(b"POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi") == [(b"POST", b"/p", b"hi")]
    assert node.read(b"nonsense\r\n\r\n") == []


@pytest.mark.parametrize("raw", SMUGGLING, ids=repr)
def test_no_smuggled_request_is_served_that_node_does_not_see(node, raw):
    assert_node_read_the_same(node, raw)


@pytest.mark.parametrize("raw", HONEST, ids=repr)
def test_what_is_honest_is_read_alike(node, raw):
    assert (
        ours([raw])
        == node.read(raw)
        == node.read(forwarded([raw], chunked=True))
        == node.read(forwarded([raw], chunked=False))
    )


def test_seeds_read_alike(node):
    for row in json.loads(SEEDS.read_text()):
        assert_node_read_the_same(node, row["raw"].encode("latin-1"))


@settings(max_examples=400)
@given(st.lists(PIECES, min_size=1, max_size=12).map(b"".join))
def test_any_stream_of_pieces_reads_as_node_reads_it(node, raw):
    assert_node_read_the_same(node, raw)
