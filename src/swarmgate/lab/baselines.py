"""
What swarms do without a gate, as pure decisions: the two baselines beside which every result is shown.

Direct: each agent sends at once and backs off by itself, as provider SDKs do; no agent knows of another. One budget: all
targets share a single rate, so that nothing breaks only if it is set for the weakest of them, and every target then
waits for every other. Both answer the same question: when is the next send of this call, if there is one?
"""

from random import Random
from typing import Protocol

from swarmgate.lab.errors import at_least

RETRIES = 2
FIRST_DELAY_MS = 500
LONGEST_DELAY_MS = 8_000
LONGEST_HINT_MS = 120_000


class Baseline(Protocol):
    """A way to decide when a call is sent."""

    def next_send(self, now_ms: int, sends: int, hint_ms: int | None = None) -> int | None:
        """
        The instant of the next send of a call that was sent `sends` times and is not answered; None if it gives up.

        `hint_ms` is the wait that the target asked for with its last refusal. Each answer is acted on: ask once per send.
        """


class Direct:
    """
    Local exponential backoff of the official SDKs: retries (2) after 0.5 s, doubled up to 8 s, less up to a quarter at random.

    A hint of at most two minutes is obeyed to the letter, a longer one ends the call (openai-python 3.57,
    `_base_client.py`: `_calculate_retry_timeout`, `_should_retry`).
    """

    __slots__ = ("_retries", "_rng")

    def __init__(self, rng: Random, retries: int = RETRIES) -> None:
        self._rng = rng
        self._retries = at_least("retries", retries, 0)

    def next_send(self, now_ms: int, sends: int, hint_ms: int | None = None) -> int | None:
        """At once, then after each failure a delay or the hint."""
        if at_least("sends", sends, 0) == 0:
            return now_ms
        if sends > self._retries or (hint_ms is not None and hint_ms > LONGEST_HINT_MS):
            return None
        if hint_ms is not None and hint_ms > 0:
            return now_ms + hint_ms
        delay_ms = min(FIRST_DELAY_MS << min(sends - 1, 10), LONGEST_DELAY_MS)
        return now_ms + delay_ms - self._rng.randint(0, delay_ms // 4)


class OneBudget:
    """
    One rate for everything that leaves: `limit` places per `window_ms`, evenly spaced, first come, first served.

    A failed send is repeated like a direct one, at the first free place that is not before its instant.
    """

    __slots__ = ("_limit", "_next", "_retry", "_taken", "_window_ms")

    def __init__(self, limit: int, window_ms: int, rng: Random) -> None:
        self._limit = at_least("limit", limit, 1)
        self._window_ms = at_least("window_ms", window_ms, 1)
        self._retry = Direct(rng)
        self._next = 0  # place k lies at k * window / limit; every place before this one is taken or gone by
        self._taken: set[int] = set()  # places after it that waiting repeats have

    def next_send(self, now_ms: int, sends: int, hint_ms: int | None = None) -> int | None:
        """The instant of the place that this send takes."""
        wished_ms = self._retry.next_send(now_ms, sends, hint_ms)
        if wished_ms is None:
            return None
        self._pass_by(self._first_place(now_ms))
        place = max(self._next, self._first_place(wished_ms))
        while place in self._taken:
            place += 1
        self._taken.add(place)
        self._pass_by(self._next)
        return -(-place * self._window_ms // self._limit)

    def _first_place(self, t_ms: int) -> int:
        return -(-t_ms * self._limit // self._window_ms)

    def _pass_by(self, first: int) -> None:
        if first > self._next:
            self._next = first
            self._taken = {place for place in self._taken if place >= first}
        while self._next in self._taken:
            self._taken.discard(self._next)
            self._next += 1
