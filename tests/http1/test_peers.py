"""nginx as target and as witness: it sees exactly the requests that were served here, and its answers pass unharmed."""

import asyncio
import hashlib
import shutil
import socket
import subprocess

import pytest
from plain_relay import PlainRelay, run
from test_differential import HONEST, SMUGGLING, ours

from eventually import eventually

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed"),
]

CONFIG = """
daemon off; user root; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  log_format seen "$request_method $request_uri $content_length $status";
  access_log {folder}/seen.log seen;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  keepalive_requests 7; keepalive_timeout 5s 5s;
  server {{
    listen 127.0.0.1:{port};
    root {folder}/files;
    location /p {{ return 200 "posted"; }}
    location /g {{ return 204; }}
    location /gzip {{ gzip on; gzip_min_length 1; gzip_types *; alias {folder}/files/; }}
  }}
}}
"""


@pytest.fixture
def nginx(tmp_path):
    """A running nginx: its port and its folder."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "files").mkdir()
    (tmp_path / "conf").write_text(CONFIG.format(folder=tmp_path, port=port))
    process = subprocess.Popen(["nginx", "-p", tmp_path, "-c", tmp_path / "conf"], stderr=subprocess.DEVNULL)
    yield port, tmp_path
    process.terminate()
    process.wait()


def is_up(port: int) -> bool:
    with socket.socket() as link:
        return link.connect_ex(("127.0.0.1", port)) == 0


async def send(port: int, raw: bytes) -> bytes:
    """Everything that comes back until the other side closes; a client that has said all waits for that."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(raw)
    try:
        return await asyncio.wait_for(reader.read(), 0.3)
    except TimeoutError:
        return b""
    finally:
        writer.close()


def test_nginx_sees_what_was_served_and_nothing_else(nginx):
    async def scenario():
        port, folder = nginx
        await eventually(lambda: is_up(port))
        async with PlainRelay(port) as relay:
            for raw in SMUGGLING + HONEST:
                (folder / "seen.log").write_text("")
                served = [target.decode() for _, target, _ in ours([raw])]
                await send(relay.port, raw)
                await eventually(lambda served=served: len(seen(folder)) >= len(served))
                assert [line.split()[1] for line in seen(folder)] == served

    run("uvloop", scenario)


def seen(folder) -> list[str]:
    return (folder / "seen.log").read_text().splitlines()


def test_answers_of_every_kind_pass_unharmed(nginx):
    async def scenario():
        port, folder = nginx
        await eventually(lambda: is_up(port))
        content = b"".join(hashlib.sha256(b"%d" % at).digest() for at in range(30_000))
        (folder / "files" / "large").write_bytes(content)
        (folder / "files" / "empty").write_bytes(b"")
        (folder / "files" / "text").write_bytes(b"text " * 5_000)
        async with PlainRelay(port) as relay:
            reader, writer = await asyncio.open_connection("127.0.0.1", relay.port, limit=1 << 22)
            relay.cleanup.append(writer.transport.abort)

            async def ask(start: bytes, *lines: bytes) -> tuple[bytes, bytes]:
                writer.write(b"\r\n".join([start + b" HTTP/1.1", b"Host: a", *lines, b"", b""]))
                head = await reader.readuntil(b"\r\n\r\n")
                if b"content-length: " in head and not start.startswith(b"HEAD"):
                    length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
                    return head, await reader.readexactly(length)
                if b"chunked" in head and not start.startswith(b"HEAD"):
                    return head, await reader.readuntil(b"\r\n0\r\n\r\n")
                return head, b""

            for _ in range(5):  # nginx closes every seventh exchange's connection
                assert (await ask(b"GET /large"))[1] == content
                assert (await ask(b"GET /large", b"Range: bytes=5-9"))[1] == content[5:10]
                head, _ = await ask(b"HEAD /large")
                assert b"content-length: %d\r\n" % len(content) in head
                assert (await ask(b"GET /empty"))[1] == b""
                head, _ = await ask(b"GET /g")
                assert b" 204 " in head
                head, body = await ask(b"GET /gzip/text", b"Accept-Encoding: gzip")
                assert b"transfer-encoding: chunked" in head
                assert b"content-encoding: gzip" in head
                assert len(body) < 5_000
                etag = head.partition(b"last-modified: ")[2].partition(b"\r\n")[0]
                head, _ = await ask(b"GET /text", b"If-Modified-Since: " + etag)
                assert b" 304 " in head
            assert relay.pool.dials > 1
            assert not relay.log

    run("uvloop", scenario)
