"""
Wait exactly until a deferred call may come back, and bring its ticket: the whole of what a caller has to do.

No retry is used and no backoff added: the gate has said when. What is no deferral is raised as it came.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from swarmgate.sdk.attribution import Words, context
from swarmgate.sdk.deferral import Deferred, deferral_of
from swarmgate.sdk.hops import Walk, walking

ATTEMPTS = 20
MARGIN_S = 0.001  # some loops round their timers to milliseconds, also down
LEAST_S = 0.01

Result = TypeVar("Result")


def until_admitted(call: Callable[[], Result], *, attempts: int = ATTEMPTS, deadline_s: float | None = None) -> Result:
    """
    What `call` returns once it is let through; it is called at most `attempts` times.

    Errors: `Deferred` when the attempts are used up, or when the next one would come after `deadline_s` seconds.
    """
    patience = _Patience(attempts, deadline_s)
    while True:
        try:
            with patience.attempt():
                return call()
        except Exception as error:  # noqa: BLE001  what is no deferral is raised again by `pause_s`
            pause_s = patience.pause_s(error)
        time.sleep(pause_s)


async def until_admitted_async(
    call: Callable[[], Awaitable[Result]], *, attempts: int = ATTEMPTS, deadline_s: float | None = None
) -> Result:
    """As `until_admitted`, for a call that is awaited."""
    patience = _Patience(attempts, deadline_s)
    while True:
        try:
            with patience.attempt():
                return await call()
        except Exception as error:  # noqa: BLE001  what is no deferral is raised again by `pause_s`
            pause_s = patience.pause_s(error)
        await asyncio.sleep(pause_s)


class _Patience:
    """How often a call may still come back, until when, and with which ticket."""

    def __init__(self, attempts: int, deadline_s: float | None) -> None:
        if attempts < 1:
            raise ValueError(f"attempts = {attempts}: must be at least 1")
        self._left = attempts
        self._ends_s = None if deadline_s is None else time.monotonic() + deadline_s
        self._words: Words = {}
        self._walk = Walk()

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """One attempt: with the ticket of the one before, and past the redirects that it was told."""
        token = walking.set(self._walk)
        try:
            with context(**self._words):
                yield
        finally:
            walking.reset(token)

    def pause_s(self, error: Exception) -> float:
        """How long to sleep before the next attempt. Errors: what may not be repeated."""
        deferred = deferral_of(error)
        if deferred is None:
            raise error
        self._left -= 1
        pause_s = max(LEAST_S, deferred.left_s + MARGIN_S)
        if not self._left or (self._ends_s is not None and time.monotonic() + pause_s > self._ends_s):
            raise deferred if deferred is error else _from(deferred, error)
        self._words = {"ticket": deferred.ticket}
        self._walk.again()
        return pause_s


def _from(deferred: Deferred, error: Exception) -> Deferred:
    deferred.__cause__ = error
    return deferred
