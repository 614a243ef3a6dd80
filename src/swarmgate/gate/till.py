"""
What calls cost, where a cap in money holds for their caller; without one nothing is priced here.

A call reserves what its prompt and its likely output cost, as if no cache held any of it, and is charged what the target
counted, at the prices of caches.
"""

from collections.abc import Callable, Mapping
from typing import Final

from swarmgate.core.caps import ANY_TARGET
from swarmgate.core.ladders import ANY
from swarmgate.core.price import Price, Used, could_stream, could_use
from swarmgate.core.reasons import Reason
from swarmgate.core.record import Call, Rung
from swarmgate.facts.prices import PriceBook
from swarmgate.gate.target import ModelTarget
from swarmgate.providers.dialect import Dialect

UNKNOWN: Final = -1
_FREE: Final = Price(((0, 0),), ((0, 0),))


class Till:
    """Costs by the prices of a configuration and the public list; `is_on_record`: what is spent now will be known later."""

    __slots__ = ("_prices", "is_on_record")

    def __init__(self, prices: PriceBook) -> None:
        self._prices = prices
        self.is_on_record: Callable[[], bool] = lambda: True

    def refuses(self, call: Call) -> Reason | None:
        """Why money may not be spent now: without a record of it, a cap would not hold over a crash (reliability LG-03)."""
        return Reason.GATE_RECORDS_LOST if call.money and not self.is_on_record() else None

    def reserve(self, call: Call, targets: Mapping[str, ModelTarget], prompt: int, output: int) -> bool:
        """
        Put what so many tokens cost on the call, at each of its rungs.

        False if a cap in money holds and the price at the first is not known.
        """
        if not is_capped(call):
            return True
        used = Used(prompt, output)
        costs = [self._cost_at(rung, call.model, targets[rung.target].dialect.name, used) for rung in call.rungs]
        call.costs = tuple([UNKNOWN if cost == UNKNOWN else max(1, cost) for cost in costs])
        call.money = max(1, costs[0])
        return costs[0] != UNKNOWN

    def reserve_unread(self, call: Call, dialect: Dialect, method: str, path: str) -> bool:
        """
        The same of a request that nobody reads: it costs what the operator says that one of its path costs, else nothing if
        its provider bills no such request.

        A price for tokens alone says nothing of it, unless the tokens are free: that is one's own machine.
        """
        price = self._prices.own(path.lstrip("/"), call.rungs[call.rung].target)
        if price is not None and (price.request_micro > 0 or price == _FREE):
            call.flat_micro = price.request_micro
        elif dialect.bills_nothing(method, path):
            call.flat_micro = 0
            return True
        if is_capped(call):
            call.money = max(1, call.flat_micro)
        return call.flat_micro >= 0 or not call.money

    def cost(self, call: Call, provider: str, usage: tuple[int, int], cached: tuple[int, int]) -> int:
        """Micro-units that an answer cost (`gate/taps.py`: Usage, Cached); UNKNOWN charges what was reserved."""
        (prompt, output), (read, apart) = usage, cached
        read = max(0, read)
        used = Used(prompt + apart, output, read, max(0, apart - read))
        return UNKNOWN if min(usage) < 0 else self._cost_at(call.rungs[call.rung], call.model, provider, used)

    def believes(self, call: Call, target: ModelTarget, prompt: int, output: int) -> bool:
        """Whether the call can have used so many tokens where it stands."""
        return could_use(prompt, output, self._window(call, target))

    def is_endless(self, call: Call, target: ModelTarget, pieces: int, allowed: tuple[int, int]) -> bool:
        """Whether a stream with so many pieces of content went on beyond any of so many tokens, so many at once."""
        tokens, choices = allowed
        return not could_stream(pieces, tokens, self._window(call, target), choices)

    def _window(self, call: Call, target: ModelTarget) -> int:
        """Of the model where the call stands; the operator's word on windows comes first."""
        model, windows = call.rungs[call.rung].model or call.model, target.windows
        told = windows.get(model) or windows.get(ANY, 0)
        return told or self._prices.window(model, target.dialect.name)

    def _cost_at(self, rung: Rung, model: str, provider: str, used: Used) -> int:
        cost = self._prices.cost_micro(rung.model or model, provider, used, rung.target)
        return UNKNOWN if cost is None else cost


def is_capped(call: Call) -> bool:
    """Whether a cap in money holds for the call's caller."""
    caps = call.caps or {}
    capped = caps.get(call.rungs[call.rung].target) or caps.get(ANY_TARGET)
    return capped is not None and bool(capped.money)
