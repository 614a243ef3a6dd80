"""
What the data process asks before and after a keyed write: two orders that the control process answers from its file.

Answers come after the change is on disk; the work is done in a thread, so that the operator port answers meanwhile.
"""

import asyncio
from base64 import b64decode, b64encode
from typing import Any

from swarmgate.control.link import Order, Said
from swarmgate.core.once import Standing
from swarmgate.engine.clock import unix_ms
from swarmgate.stores.sql.writes import Stored, Writes


class WriteOrders:
    """`table` is what the data process may ask."""

    def __init__(self, writes: Writes) -> None:
        self._writes = writes
        self._lock = asyncio.Lock()  # one connection, one thread at a time
        self.table: dict[str, Order] = {"write_begin": self.begin, "write_end": self.end}

    async def begin(self, said: Said) -> dict[str, Any]:
        """Whether a write may go: key, payload, call, run -> ruling, and the stored answer of a replay."""
        async with self._lock:
            ruling, stored = await asyncio.to_thread(
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
        async with self._lock:
            await asyncio.to_thread(
                self._writes.end, said["key"], said["call"], Standing(said["standing"]), unix_ms(), answer
            )
        return {}
