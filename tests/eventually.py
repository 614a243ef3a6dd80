"""Waiting for what real sockets and processes will do, without guessing how long it takes: the one place that sleeps."""

import asyncio
import time
from collections.abc import Awaitable, Callable

LOOK_S = 0.001
ASK_S = 0.05  # a question costs who is asked


async def eventually(condition: Callable[[], object], timeout_s: float = 5.0) -> None:
    """Return as soon as `condition()` is true; fail with its source after `timeout_s`."""
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout_s
    while not condition():
        assert loop.time() < end, f"never true within {timeout_s} s: {condition}"
        await asyncio.sleep(LOOK_S)


async def eventually_says(ask: Callable[[], Awaitable[object]], timeout_s: float = 5.0) -> None:
    """The same for a question that is asked over a socket; one question at a time."""
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout_s
    while not await ask():
        assert loop.time() < end, f"never true within {timeout_s} s: {ask}"
        await asyncio.sleep(ASK_S)


def at_last(condition: Callable[[], object], timeout_s: float = 10.0) -> None:
    """The same where no loop runs."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, f"never true within {timeout_s} s: {condition}"
        time.sleep(5 * LOOK_S)
