"""Waiting for what a real socket will do, without guessing how long it takes."""

import asyncio
from collections.abc import Callable


async def eventually(condition: Callable[[], object], timeout_s: float = 5.0) -> None:
    """Return as soon as `condition()` is true; fail with its source after `timeout_s`."""
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout_s
    while not condition():
        assert loop.time() < end, f"never true within {timeout_s} s: {condition}"
        await asyncio.sleep(0.001)
