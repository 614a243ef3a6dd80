"""
`/budgets/events`: the same rows as they change, as server-sent events.

The first event has everything (where budgets are many, what was looked at by then; the rest follows), each later one what
changed since; at most four a second, however much happens. Who reads slowly misses what came between and gets everything
again. While nobody listens nothing is looked at.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial

import msgspec

from swarmgate.core.reasons import Reason
from swarmgate.core.scope import Scope
from swarmgate.core.view import BudgetView, changed
from swarmgate.gate import answers
from swarmgate.gate.view.budgets import Budgets
from swarmgate.gate.view.surface import Query, whose_is, words
from swarmgate.http1.client_end import ClientEnd
from swarmgate.http1.head import RequestHead

MOST_LISTENERS = 64
MOST_OF_ONE = 32  # of them of one caller: whoever opens streams without end must not keep all others out
LOOK_AT_MOST = 300  # budgets; some 10 ms of the loop
QUIET_LOOKS = 40  # looks without news until a comment says that the connection lives: 10 s
HEAD = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
ALIVE = b": alive\n\n"


class Listening:
    """One connection that hears what changes."""

    __slots__ = ("_others", "end", "is_behind", "is_paused", "viewer", "whose")

    def __init__(self, end: ClientEnd, others: "dict[Listening, None]", viewer: Scope, whose: bytes) -> None:
        self.end = end
        self.whose = whose
        self.viewer = viewer
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
    """Everybody who listens; `look` is called a few times a second. Streams of whom `admits` no longer knows end with it."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets
        self._listening: dict[Listening, None] = {}
        self._seen: dict[str, BudgetView] = {}
        self._names: list[str] = []  # still to be looked at, the next one last
        self._quiet = 0
        self.admits: Callable[[Scope], bool] = lambda _: True

    def __len__(self) -> int:
        return len(self._listening)

    def begin(self, end: ClientEnd, head: RequestHead, query: Query, viewer: Scope) -> Listening | None:
        """Somebody begins to listen; the first event comes with the next look."""
        words(query)
        if len(self._listening) >= MOST_LISTENERS:
            end.respond(*answers.refusal(Reason.GATE_BUSY, f"At most {MOST_LISTENERS} may listen at once."))
            return None
        whose = whose_is(head, viewer)
        if sum(one.whose == whose for one in self._listening) >= MOST_OF_ONE:
            end.respond(*answers.refusal(Reason.GATE_BUSY, f"At most {MOST_OF_ONE} of one caller may listen at once."))
            return None
        end.start_stream(200, [*HEAD, answers.named()])
        listening = Listening(end, self._listening, viewer, whose)
        self._listening[listening] = None
        return listening

    def look(self) -> None:
        """Tell everybody what changed since the last look; of many budgets, so many at a time."""
        for one in [one for one in self._listening if not self.admits(one.viewer)]:
            del self._listening[one]
            one.end.finish()
        if not self._listening:
            self._seen.clear()
            self._names.clear()
            return
        news = self._news()
        self._quiet = 0 if news else self._quiet + 1
        told = cache(partial(self._event, {"budgets": self._seen, "changed": news}))
        quiet = b""
        if self._quiet >= QUIET_LOOKS:
            quiet, self._quiet = ALIVE, 0
        for one in [one for one in self._listening if not one.is_paused]:
            name = "budgets" if one.is_behind else "changed"
            one.end.write_chunk(told(name, one.viewer) or quiet)
            one.is_behind = False

    def _news(self) -> dict[str, BudgetView]:
        if not self._names:
            self._names = self._budgets.directory.names[::-1]
            self._seen = {name: one for name, one in self._seen.items() if name in self._budgets.directory.published}
        names = [self._names.pop() for _ in range(min(LOOK_AT_MOST, len(self._names)))]
        now = self._budgets.again(names, self._seen)
        news = changed(self._seen, now)
        self._seen |= now
        return {one.budget: one for one in news}

    def close(self) -> None:
        """The gate stops: every stream ends whole."""
        for one in list(self._listening):
            one.end.finish()
        self._listening.clear()

    def _event(self, events: Mapping[str, Mapping[str, BudgetView]], name: str, viewer: Scope) -> bytes:
        """What a viewer may see of an event; nothing if no change is its own."""
        is_seen = self._budgets.seen_by(viewer)
        own = {budget: one for budget, one in events[name].items() if is_seen(budget)}
        if name == "changed" and not own:
            return b""
        return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(self._budgets.rows(own, viewer)))
