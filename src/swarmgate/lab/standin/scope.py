"""
One quota scope of a stand-in: every limit that it really has, and the witness beside it.

A request meets the limits in their order and is refused by the first that refuses it; the earlier ones have counted it,
as OpenAI documents. What the headers say of the rest is a count of the last
window, as rough as providers' own.
"""

from collections import deque
from typing import NamedTuple

from swarmgate.lab.limiters import Judgement, Limiter
from swarmgate.lab.scenario import ConcurrencyLimit, Limit
from swarmgate.lab.standin.witness_log import Left, WitnessLog


class Refusal(NamedTuple):
    """Which limit said no: its unit (`requests`, `tokens`, `concurrent`), size, window, and the wait that would help."""

    unit: str
    limit: int
    window_ms: int
    used: int
    requested: int
    wait_ms: int | None


class Rest(NamedTuple):
    """What a header tells of one limit."""

    unit: str
    limit: int
    remaining: int
    reset_ms: int


class _Held:
    """One limit in force, and what the last window holds of it."""

    __slots__ = ("_last", "held", "limiter", "size", "unit", "window_ms")

    def __init__(self, limit: Limit, percent: int = 100) -> None:
        self.size = max(1, limit.limit * percent // 100)
        self.limiter: Limiter = limit.model_copy(update={"limit": self.size}).limiter()
        self.unit = "concurrent" if isinstance(limit, ConcurrencyLimit) else limit.unit
        self.window_ms = 0 if isinstance(limit, ConcurrencyLimit) else limit.window_ms
        self._last: deque[tuple[int, int]] = deque()
        self.held = 0

    def cost(self, tokens: int) -> int:
        return tokens if self.unit == "tokens" else 1

    def count(self, now_ms: int, amount: int) -> None:
        if self.unit == "concurrent":
            self.held += amount
            return
        while self._last and self._last[0][0] <= now_ms - self.window_ms:
            self.held -= self._last.popleft()[1]
        if amount:
            self._last.append((now_ms, amount))
            self.held += amount


class Scope:
    """The limits of one quota scope; `place` and `name` are what its rows in the `log` are known by."""

    def __init__(self, place: str, name: str, limits: tuple[Limit, ...], log: WitnessLog) -> None:
        self.place = place
        self.name = name
        self._limits = limits
        self._held = [_Held(limit) for limit in limits]
        self.log = log

    def shrink(self, percent: int) -> None:
        """From now on every limit is `percent` of what it was at first; what was used is forgotten."""
        self._held = [_Held(limit, percent) for limit in self._limits]

    def arrive(self, now_ms: int, tokens: int) -> Refusal | None:
        """The first limit that refuses; None if the request passes."""
        for number, one in enumerate(self._held):
            cost = max(1, one.cost(tokens))
            verdict: Judgement = one.limiter.arrive(now_ms, cost)
            if not verdict.ok:
                self._free(now_ms, self._held[:number])
                one.count(now_ms, 0)
                return Refusal(one.unit, one.size, one.window_ms, one.held, cost, verdict.wait_ms)
            one.count(now_ms, cost)
        return None

    def depart(self, now_ms: int, call: str, tokens: int) -> None:
        """An answer ended that had passed, and cost `tokens` more."""
        self.log.write(Left(now_ms, self.place, self.name, call, tokens))
        for one in self._held:
            if one.unit == "tokens":
                one.limiter.depart(now_ms, tokens)
                one.count(now_ms, tokens)
        self._free(now_ms, self._held)

    @staticmethod
    def _free(now_ms: int, limits: list[_Held]) -> None:
        """A place is given back; after a change of limits there may be none to give."""
        for one in limits:
            if one.unit == "concurrent" and one.held:
                one.limiter.depart(now_ms)
                one.count(now_ms, -1)

    def rests(self, now_ms: int) -> list[Rest]:
        """What headers tell of the limits on use."""
        out = []
        for one in self._held:
            if one.unit != "concurrent":
                one.count(now_ms, 0)
                reset_ms = one.window_ms if one.held else 0
                out.append(Rest(one.unit, one.size, max(0, one.size - one.held), reset_ms))
        return out
