"""
The link between the data and the control process: lines of JSON over a unix socket, either end may ask.

`{"id": 1, "do": "state", "with": {}}` is answered by `{"id": 1, "said": ...}` or `{"id": 1, "wrong": {"field": ..., "reason":
...}}`. What can be asked of an end is one table of orders. The socket is for its owner only, in the state folder.
"""

import asyncio
import inspect
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from swarmgate.core.errors import BadInput

SOCKET: Final = "control.sock"
MOST_BYTES: Final = 32 * 1024 * 1024
ANSWER_S: Final = 5.0
_LONGEST_NAME: Final = 100  # of a socket's path; the kernel takes 107 bytes

Said = dict[str, Any]
_decode = msgspec.json.Decoder(Said).decode
Order = Callable[[Said], object | Awaitable[object]]
Orders = Mapping[str, Order]


class LinkLost(ConnectionError):
    """The other end is gone, or did not answer in time."""


class Peer(asyncio.Protocol):
    """
    One end of one link. `orders` are what the other end may ask; `gone` is told when the link is over.

    Orders get what was said with them and return what JSON can carry, at once or awaited; `BadInput` is answered as such.
    """

    def __init__(self, orders: Orders, gone: Callable[["Peer"], None] = lambda _: None) -> None:
        self._orders = orders
        self._gone = gone
        self._transport: asyncio.Transport | None = None
        self._rest = b""
        self._number = 0
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, order: str, within_s: float = ANSWER_S, **said: Any) -> Any:
        """What the other end answers. Errors: `BadInput` as it was raised there, `LinkLost`."""
        if self._transport is None:
            raise LinkLost("there is no link")
        self._number += 1
        number, loop = self._number, asyncio.get_running_loop()
        answer = self._asked[number] = loop.create_future()
        self._write({"id": number, "do": order, "with": said})
        try:
            async with asyncio.timeout(within_s):
                return await answer
        except TimeoutError:
            raise LinkLost(f"{order}: no answer within {within_s:g} s") from None
        finally:
            self._asked.pop(number, None)

    def close(self) -> None:
        """End the link once what was said has left."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The link is up."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by its type

    def connection_lost(self, _error: Exception | None) -> None:
        """The link is over; nobody waits any longer."""
        self._transport = None
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(LinkLost("the other end is gone"))
        self._gone(self)

    def data_received(self, data: bytes) -> None:
        """Lines, whole or in pieces."""
        *lines, self._rest = (self._rest + data).split(b"\n") if self._rest else data.split(b"\n")
        for line in lines:
            self._read(line)
        if len(self._rest) > MOST_BYTES:
            self.close()

    def _read(self, line: bytes) -> None:
        try:
            said = _decode(line)
            number = said["id"]
        except (msgspec.DecodeError, KeyError):
            self.close()  # not one of us
            return
        if "do" in said:
            self._do(number, str(said["do"]), said.get("with") or {})
            return
        answer = self._asked.get(number)
        if answer is None or answer.done():
            return  # too late
        wrong = said.get("wrong")
        if wrong is None:
            answer.set_result(said.get("said"))
        else:
            answer.set_exception(BadInput(str(wrong["field"]), str(wrong["reason"])))

    def _do(self, number: int, order: str, said: Said) -> None:
        try:
            done = self._orders.get(order, self._unknown)(said)
        except Exception as error:  # noqa: BLE001  one order that fails must not end the link; it is told at both ends
            self._fail(number, order, error)
            return
        if inspect.isawaitable(done):
            task = asyncio.get_running_loop().create_task(self._finish(number, order, done), name=f"order {order}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._write({"id": number, "said": done})

    def _unknown(self, _said: Said) -> object:
        raise BadInput("do", f"is none of {', '.join(sorted(self._orders))}")

    async def _finish(self, number: int, order: str, done: Awaitable[object]) -> None:
        try:
            self._write({"id": number, "said": await done})
        except Exception as error:  # noqa: BLE001  as in _do
            self._fail(number, order, error)

    def _fail(self, number: int, order: str, error: Exception) -> None:
        if isinstance(error, BadInput):
            field, reason = error.field, error.reason
        else:
            field, reason = "do", f"{order} failed: {type(error).__name__}"
            asyncio.get_running_loop().call_exception_handler({"message": f"order {order} failed", "exception": error})
        self._write({"id": number, "wrong": {"field": field, "reason": reason}})

    def _write(self, said: Said) -> None:
        if self._transport is not None:
            self._transport.write(msgspec.json.encode(said) + b"\n")


async def listen(folder: Path, make: Callable[[], Peer]) -> asyncio.Server:
    """Serve links in the state folder, which is this process's alone. Errors: OSError."""
    path = folder / SOCKET
    path.unlink(missing_ok=True)
    with _Reach(folder) as name:
        door = socket.socket(socket.AF_UNIX)
        try:
            door.bind(name)
            path.chmod(0o600)
        except OSError:
            door.close()
            raise
    door.setblocking(False)
    return await asyncio.get_running_loop().create_unix_server(make, sock=door)


def runs(folder: Path) -> bool:
    """Whether the data process of a state folder runs."""
    try:
        _door(folder).close()
    except OSError:
        return False
    return True


async def connect(folder: Path, make: Callable[[], Peer]) -> Peer:
    """The link to the data process of a state folder. Errors: OSError where none runs."""
    door = _door(folder)
    door.setblocking(False)
    _, peer = await asyncio.get_running_loop().create_unix_connection(make, sock=door)
    return peer


def _door(folder: Path) -> socket.socket:
    with _Reach(folder) as name:
        door = socket.socket(socket.AF_UNIX)
        try:
            door.connect(name)
        except OSError:
            door.close()
            raise
    return door


class _Reach:
    """A name for the socket that is short enough, however deep the folder lies."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fd = -1

    def __enter__(self) -> str:
        name = str(self._folder / SOCKET)
        if len(os.fsencode(name)) <= _LONGEST_NAME:
            return name
        self._fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        return f"/proc/self/fd/{self._fd}/{SOCKET}"

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)
