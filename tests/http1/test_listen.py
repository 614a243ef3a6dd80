import asyncio
import socket

from eventually import eventually
from swarmgate.http1.listen import SOCKETS, listen


async def connect(port):
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    return writer


def test_many_sockets_share_one_port_and_close_together():
    async def scene():
        made = []

        class Guest(asyncio.Protocol):
            def connection_made(self, transport):
                made.append(transport)

        loop = asyncio.get_running_loop()
        listening = await listen(loop, Guest, "127.0.0.1", 0)
        writers = [await connect(listening.port) for _ in range(2 * SOCKETS)]
        await eventually(lambda: len(made) == 2 * SOCKETS)
        listening.close()
        with socket.socket() as late:
            late.setblocking(False)
            try:
                await loop.sock_connect(late, ("127.0.0.1", listening.port))
            except ConnectionRefusedError:
                refused = True
            else:
                refused = False
        for writer in writers:
            writer.close()
            await writer.wait_closed()
        return refused

    assert asyncio.run(scene())
