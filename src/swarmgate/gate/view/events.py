"""
`/budgets/events`: the same rows as they change, as server-sent events.

The first event has everything, each later one what changed since; at most four a second, however much happens. Who
reads slowly misses what came between and gets everything again. While nobody listens nothing is looked at.
"""

import msgspec

from swarmgate.core.reasons import Reason
from swarmgate.core.view import BudgetView, changed
from swarmgate.gate import answers
from swarmgate.gate.view.budgets import Budgets
from swarmgate.gate.view.surface import Query, words
from swarmgate.http1.client_end import ClientEnd
from swarmgate.http1.head import RequestHead

MOST_LISTENERS = 64
QUIET_LOOKS = 40  # looks without news until a comment says that the connection lives: 10 s
HEAD = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
ALIVE = b": alive\n\n"


class Listening:
    """One connection that hears what changes."""

    __slots__ = ("_others", "end", "is_behind", "is_paused")

    def __init__(self, end: ClientEnd, others: "dict[Listening, None]") -> None:
        self.end = end
        self.is_behind = True
        self.is_paused = False
        self._others = others

    def on_body(self, data: bytes) -> None:
        """A GET says nothing more."""

    def complete(self) -> None:
        """The request is whole; the answer goes on."""

    def on_gone(self) -> None:
        """It left."""
        self._others.pop(self, None)

    def on_pause(self) -> None:
        """It reads too slowly: what changes now is not kept for it."""
        self.is_paused = self.is_behind = True

    def on_resume(self) -> None:
        """It caught up, and gets everything with the next look."""
        self.is_paused = False


class Events:
    """Everybody who listens; `look` is called a few times a second."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets
        self._listening: dict[Listening, None] = {}
        self._seen: dict[str, BudgetView] = {}
        self._quiet = 0

    def __len__(self) -> int:
        return len(self._listening)

    def begin(self, end: ClientEnd, _head: RequestHead, query: Query) -> Listening | None:
        """Somebody begins to listen; the first event comes with the next look."""
        words(query)
        if len(self._listening) >= MOST_LISTENERS:
            end.respond(*answers.refusal(Reason.GATE_BUSY, f"At most {MOST_LISTENERS} may listen at once."))
            return None
        end.start_stream(200, HEAD)
        listening = Listening(end, self._listening)
        self._listening[listening] = None
        return listening

    def look(self) -> None:
        """Tell everybody what changed since the last look."""
        if not self._listening:
            self._seen = {}
            return
        now = self._budgets.again(self._seen)
        news, self._seen = changed(self._seen, now), now
        self._quiet = 0 if news else self._quiet + 1
        update = self._event("changed", news) if news else b""
        if self._quiet >= QUIET_LOOKS:
            update, self._quiet = ALIVE, 0
        whole = b""
        for one in [one for one in self._listening if not one.is_paused]:
            if one.is_behind:
                whole = whole or self._event("budgets", list(now.values()))
                one.is_behind = False
                one.end.write_chunk(whole)
            else:
                one.end.write_chunk(update)

    def close(self) -> None:
        """The gate stops: every stream ends whole."""
        for one in list(self._listening):
            one.end.finish()
        self._listening.clear()

    def _event(self, name: str, rows: list[BudgetView]) -> bytes:
        said = {
            "budgets": [self._budgets.row(one) for one in rows],
            "targets": self._budgets.targets(self._seen.values()),
        }
        return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(said))
