"""Plain HTTP at a port that speaks TLS."""

import asyncio
import json

import pytest
from plain_relay import LOOPS, run

from certificates import made_in
from eventually import eventually
from swarmgate.http1.listen import listen
from swarmgate.http1.tls import client_context, server_context

LONG = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n" + bytes(1_000_000)
GET = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
CONNECT = b"CONNECT a:443 HTTP/1.1\r\nhost: a:443\r\n\r\n"
on_both_loops = pytest.mark.parametrize("loop_name", sorted(LOOPS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made_in(tmp_path_factory.mktemp("tls"))


class Door(asyncio.Protocol):
    """Says hello to whoever has shaken hands."""

    def __init__(self, made):
        self.made = made

    def connection_made(self, transport):
        self.made.append(self)
        transport.write(b"hello")
        transport.close()


async def opened(folder, made):
    context = server_context(folder / "leaf.pem", folder / "leaf.key")
    return await listen(asyncio.get_running_loop(), lambda: Door(made), "127.0.0.1", 0, context)


@on_both_loops
@pytest.mark.parametrize("sent", [GET, LONG, CONNECT], ids=["get", "long", "connect"])
def test_who_speaks_plain_http_to_a_port_of_tls_is_told_so(loop_name, sent, folder):
    async def scenario():
        made = []
        server = await opened(folder, made)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(sent)
        await writer.drain()  # all of it is taken: nothing was reset
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ")
        assert b"connection: close" in head
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        error = json.loads(await reader.readexactly(length))["error"]
        assert (error["code"], "https://" in error["message"]) == ("caller_not_tls", True)
        writer.close()
        assert made == []
        server.close()

    run(loop_name, scenario)


@on_both_loops
def test_what_is_neither_ends_and_tls_goes_on_as_ever(loop_name, folder):
    async def scenario():
        made = []
        server = await opened(folder, made)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        assert b"HTTP" not in await reader.read()
        writer.close()
        context = client_context(folder / "ca.pem")
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", server.port, ssl=context, server_hostname="localhost"
        )
        assert await reader.read() == b"hello"
        writer.close()
        await eventually(lambda: len(made) == 1)
        server.close()

    run(loop_name, scenario)
