"""
What the data process asks before and after a keyed write: two orders that the control process answers from its file.

Answers come after the change is on disk; the work is done in a thread, so that the operator port answers meanwhile.
"""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, TypeVar

from swarmgate.control.link import Order, Said
from swarmgate.core.errors import BadInput
from swarmgate.core.once import Standing
from swarmgate.engine.clock import unix_ms
from swarmgate.stores.sql.writes import Stored, Writes

Result = TypeVar("Result")


class WriteOrders:
    """`table` is what the data process may ask."""

    def __init__(self, writes: Writes) -> None:
        self._writes = writes
        self._lock = asyncio.Lock()  # one connection, one thread at a time
        self.table: dict[str, Order] = {"write_begin": self.begin, "write_end": self.end}

    async def begin(self, said: Said) -> dict[str, Any]:
        """Whether a write may go: key, payload, call, run -> ruling, and the stored answer of a replay."""
        ruling, stored = await self._done(
            self._writes.begin, said["key"], said["payload"], said["call"], said["run"], unix_ms()
        )
        told: dict[str, Any] = {"ruling": ruling.value}
        if stored is not None:
            body = None if stored.body is None else b64encode(stored.body).decode()
            told |= {"call": stored.call, "status": stored.status, "content_type": stored.content_type, "body": body}
        return told

    async def end(self, said: Said) -> dict[str, Any]:
        """What a write came to: key, call, standing, and its answer if one is to be kept."""
        answer = None
        if said.get("status"):
            body = said.get("body")
            kept = None if body is None else b64decode(body)
            answer = Stored(said["call"], said["status"], said.get("content_type", ""), kept)
        await self._done(self._writes.end, said["key"], said["call"], Standing(said["standing"]), unix_ms(), answer)
        return {}

    async def forget(self, run: str) -> None:
        """Let go what nobody may repeat any more; `run` is the gate's, "" if it has not said so. Errors: `BadInput`."""
        await self._done(self._writes.forget, unix_ms(), run)

    async def _done(self, act: Callable[..., Result], *said: object) -> Result:
        """What came of it. Errors: `BadInput` where the disk is full: that is an answer, and no bug to be logged each time."""
        async with self._lock:
            try:
                return await asyncio.to_thread(act, *said)
            except OSError as error:
                raise BadInput("writes", f"cannot be kept: {error}") from None
