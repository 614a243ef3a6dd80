"""
What calls cost, where a cap in money holds for their caller; without one nothing is priced here.

A call reserves what its prompt and its likely output cost, and is charged what the target counted. What was read from a
cache is priced like the rest of the prompt: never too little.
"""

from typing import Final

from swarmgate.core.caps import ANY_TARGET
from swarmgate.core.price import Used
from swarmgate.core.record import Call
from swarmgate.facts.prices import PriceBook

UNKNOWN: Final = -1


class Till:
    """Costs by the prices of a configuration and the public list."""

    __slots__ = ("_prices",)

    def __init__(self, prices: PriceBook) -> None:
        self._prices = prices

    def reserve(self, call: Call, provider: str) -> bool:
        """Put what the call will probably cost on it; False if a cap in money holds and the price is not known."""
        target = call.rungs[call.rung].target
        caps = call.caps or {}
        capped = caps.get(target) or caps.get(ANY_TARGET)
        if capped is None or not capped.money:
            return True
        cost = self._cost(call, provider, call.prompt, call.reserve)
        call.money = max(1, cost)
        return cost != UNKNOWN

    def cost(self, call: Call, provider: str, usage: tuple[int, int]) -> int:
        """Micro-units that an answer cost; UNKNOWN charges what was reserved."""
        prompt, output = usage
        return UNKNOWN if UNKNOWN in usage else self._cost(call, provider, prompt, output)

    def _cost(self, call: Call, provider: str, prompt: int, output: int) -> int:
        rung = call.rungs[call.rung]
        cost = self._prices.cost_micro(rung.model or call.model, provider, Used(prompt, output), rung.target)
        return UNKNOWN if cost is None else cost
