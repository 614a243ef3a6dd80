"""Dials to a target with TLS, cancelled after each number of turns: a program of its own, since a loop that breaks ends it."""

import asyncio
import ssl
import sys
from pathlib import Path

from plain_relay import run

from eventually import eventually
from swarmgate.http1.dial import Dialler, Endpoint
from swarmgate.http1.sweep import Sweep
from swarmgate.http1.tls import client_context
from swarmgate.http1.upstream_end import UpstreamEnd

TURNS, DIALS = 16, 8


class Home:
    def on_closed(self, end):
        pass


def files():
    return len(list(Path("/proc/self/fd").iterdir()))


async def cancelled(endpoint, sweep):
    """All that was opened is closed again, whenever its dial was cancelled."""
    for turns in range(TURNS):
        dialler, ends = Dialler(asyncio.get_running_loop()), []
        for _ in range(DIALS):
            dialler.dial(endpoint, lambda: UpstreamEnd(sweep, Home()), ends.append)
        for _ in range(turns):
            await asyncio.sleep(0)
        dialler.close()
        for end in ends:
            end.abandon()


async def main():
    folder, loop, wrong = Path(sys.argv[2]), asyncio.get_running_loop(), []
    loop.set_exception_handler(lambda _loop, context: wrong.append(context["message"]))
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(folder / "leaf.pem", folder / "leaf.key")
    server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0, ssl=own)
    port = server.sockets[0].getsockname()[1]
    endpoint = Endpoint(("127.0.0.1",), port, client_context(folder / "ca.pem"), "localhost")
    before = files()
    await cancelled(endpoint, Sweep(loop))
    await eventually(lambda: files() <= before, 20)
    server.close()
    print(wrong)


if __name__ == "__main__":
    run(sys.argv[1], main)
