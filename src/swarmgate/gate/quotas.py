"""
What answers say is left of their keys' quotas, read as they pass.

A reading costs some twenty calls and a plan of keys lasts for 256 picks, so one per key every quarter of a second is enough.
"""

from collections.abc import Callable
from typing import Final

from swarmgate.core.outcome import QuotaLeft
from swarmgate.core.record import Ring
from swarmgate.http1.head import ResponseHead
from swarmgate.providers.dialect import Dialect
from swarmgate.providers.rates import quota_left, read_rates, read_row

EVERY_MS: Final = 250
MOST_PLACES: Final = 16_384  # models come and go, and with them their rings


class Quotas:
    """The ears of one target; `names` are the headers that say what is left."""

    __slots__ = ("_dialect", "_next_ms", "names")

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._next_ms: dict[tuple[Ring, str], int] = {}
        self.names = dialect.remaining_names | {b"ratelimit"}

    def left(
        self, ring: Ring, key: str, head: ResponseHead, now_ms: int, unix_s: Callable[[], int]
    ) -> QuotaLeft | None:
        """What this answer says of its key in this ring; None = nothing, or the last word is too young."""
        place = (ring, key)
        if now_ms < self._next_ms.get(place, 0):
            return None
        if len(self._next_ms) >= MOST_PLACES:
            self._next_ms.clear()
        self._next_ms[place] = now_ms + EVERY_MS
        fields = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.fields.items()}
        if "0" not in fields.values():  # nothing is used up: the first quota alone weighs
            for row in self._dialect.rates:
                if row.remaining in fields:
                    return quota_left((read_row(row, fields, unix_s()),), now_ms)
        return quota_left(read_rates(self._dialect, fields, unix_s()), now_ms)
