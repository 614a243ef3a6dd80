"""
Callers of streams who have waited for long: they hear that their call still stands, before something between closes.

Nothing is committed for 25 s, so that errors have their status; then a comment keeps proxies and clients patient (design
5: Waiting). Calls are open in the order of their arrival, so only those that are due are looked at.
"""

from swarmgate.core.patience import SILENT_MS
from swarmgate.engine.pump import Pump
from swarmgate.gate.relay import Relay
from swarmgate.ports import Clock


class Patient:
    """Looks at open calls; called a few times a second."""

    def __init__(self, pump: Pump, clock: Clock) -> None:
        self._pump = pump
        self._clock = clock

    def look(self) -> None:
        """Let everybody speak who has been silent for long."""
        now_ms = self._clock.now_ms()
        late = []
        for call in self._pump.open:
            if call.arrived_ms > now_ms - SILENT_MS:
                break
            late.append(call)
        for call in late:
            if isinstance(call.client, Relay):
                call.client.keep_alive(call, now_ms)
