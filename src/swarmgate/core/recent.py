"""
Counting what happened lately in constant time and space: one integer per second in a ring.

Shared by everything that judges by shares of recent sends (retry budget, breaker). Seconds are those of `now_ms`; a
count covers the last `seconds` of them including the current one, so between seconds - 1 and seconds of real time.
"""


class RecentCount:
    """How often something happened in the last seconds; time never runs back."""

    __slots__ = ("_second", "_slots", "total")

    def __init__(self, seconds: int) -> None:
        self._slots = [0] * seconds
        self._second = 0
        self.total = 0

    def add(self, now_ms: int, amount: int = 1) -> None:
        """Count `amount` at `now_ms`."""
        if now_ms // 1_000 != self._second:
            self._advance(now_ms)
        self._slots[self._second % len(self._slots)] += amount
        self.total += amount

    def at(self, now_ms: int) -> int:
        """The count of the seconds that end at `now_ms`."""
        self._advance(now_ms)
        return self.total

    def _advance(self, now_ms: int) -> None:
        second = now_ms // 1_000
        slots = self._slots
        for passed in range(max(self._second + 1, second - len(slots) + 1), second + 1):
            self.total -= slots[passed % len(slots)]
            slots[passed % len(slots)] = 0
        self._second = max(self._second, second)
