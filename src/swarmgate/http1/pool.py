"""
Connections to one target, shared by all calls: who gets which, and what has to be opened or closed for it.

Here lives a pure assignment: events in, the input/output to do out; nothing is dialled or closed here. Idle connections
are given out last in, first out: the warmest serves, the coldest expire. Each is promised to exactly one call. Who waits
for one waits by class, and inside a class in the order of arrival (design 2: P5).
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

C = TypeVar("C")  # a connection
W = TypeVar("W")  # a call that waits for one
CLASSES: Final = 3  # 0 goes first
DOUBT_MS: Final = 1_000  # after so long without any news, dials of calls that left are no reason not to dial
EXTRA_MS: Final = 10_000  # how long what is beyond the measured size stays; what comes in waves finds it


class Todo(NamedTuple, Generic[C, W]):
    """What the driver has to do: hand out, dial, close, and tell who has no place in line any more."""

    give: Sequence[tuple[W, C]]
    dial: int
    close: Sequence[C]
    turned_away: Sequence[W] = ()


NOTHING: Todo[Any, Any] = Todo([], 0, [])


class PoolFull(ValueError):
    """More calls wait than the pool lets wait: `field` = `waiting`, `reason` = `pool_full`; nothing changed."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"waiting: {limit} calls already wait for a connection to this target; retry later")
        self.field, self.reason = "waiting", "pool_full"


class Pool(Generic[C, W]):
    """At most `most` connections (open or being dialled), idle ones kept `idle_ms`, at most `max_waiting` calls waiting."""

    __slots__ = (
        "_dialling",
        "_hopeful_ms",
        "_idle",
        "_idle_ms",
        "_leased",
        "_lines",
        "_max_waiting",
        "_most",
        "_promised",
        "_waiting",
        "dials",
        "uses",
    )

    def __init__(self, most: int, *, idle_ms: int, max_waiting: int) -> None:
        self._most, self._idle_ms, self._max_waiting = most, idle_ms, max_waiting
        self._idle: deque[tuple[C, int, int]] = deque()  # (connection, expires at, idle since), coldest first
        self._leased: set[C] = set()
        self._dialling = self._hopeful_ms = 0  # how many dials are under way, and when one last began or succeeded
        self._promised = (
            0  # of them begun for who waits now; those of calls that left or found another may be of no use
        )
        self._lines: list[deque[W]] = [deque() for _ in range(CLASSES)]
        self._waiting = 0  # in all of them
        self.uses = self.dials = 0

    def take(self, now_ms: int) -> C | None:
        """The warmest idle connection, if nobody waits: the common case, without a to-do."""
        if self._waiting or not self._idle or self._idle[-1][1] <= now_ms:
            return None
        connection = self._idle.pop()[0]
        self._leased.add(connection)
        self.uses += 1
        return connection

    def ask(self, waiter: W, now_ms: int, rank: int = 0) -> Todo[C, W]:
        """
        A call of that class wants a connection; it gets one at once or waits its turn.

        Where too many wait, the newest of a worse class gives way. Errors: `PoolFull`.
        """
        away: list[W] = []
        if self._waiting >= self._max_waiting:
            worse = next((line for line in self._lines[:rank:-1] if line), None)
            if worse is None:
                raise PoolFull(self._max_waiting)
            away.append(worse.pop())
            self._waiting -= 1
        self._lines[rank].append(waiter)
        self._waiting += 1
        todo = self._assign(now_ms)
        return todo._replace(turned_away=away) if away else todo

    def bounce(self, waiter: W, connection: C, now_ms: int, rank: int = 0) -> Todo[C, W]:
        """A connection just given turned out to be closed: it is forgotten, its call is the first of its class again."""
        self._leased.discard(connection)
        self._lines[rank].appendleft(waiter)
        self._waiting += 1
        return self._assign(now_ms)

    def idle(self) -> list[C]:
        """The idle connections, coldest first."""
        return [entry[0] for entry in self._idle]

    def withdraw(self, waiter: W) -> bool:
        """A waiting call wants none any more; false if it was not waiting. A dial that is new serves the next one."""
        for line in self._lines:
            if waiter in line:
                line.remove(waiter)
                self._waiting -= 1
                self._promised = min(self._promised, self._waiting)
                return True
        return False

    def opened(self, connection: C, now_ms: int) -> Todo[C, W]:
        """A dial succeeded."""
        self._dialling -= 1
        self._promised = max(0, self._promised - 1)
        self._hopeful_ms = now_ms
        self._idle.append((connection, now_ms + self._idle_ms, now_ms))
        return self._assign(now_ms)

    def failed(self, now_ms: int) -> tuple[W | None, Todo[C, W]]:
        """A dial failed: the first in line is to hear it, None if it was begun for somebody else."""
        is_told = 0 < self._promised == self._dialling
        self._dialling -= 1
        self._promised -= int(is_told)
        return self._first() if is_told else None, self._assign(now_ms)

    def give_back(self, connection: C, now_ms: int, keep_ms: int) -> Todo[C, W]:
        """A call is done with its connection, which may serve another; its peer keeps it `keep_ms` at most."""
        self._leased.discard(connection)
        self._idle.append((connection, now_ms + min(self._idle_ms, keep_ms), now_ms))
        return self._assign(now_ms) if self._waiting else NOTHING

    def lost(self, connection: C, now_ms: int) -> Todo[C, W]:
        """A connection closed, leased or idle."""
        if connection in self._leased:
            self._leased.discard(connection)
        else:
            self._idle = deque(entry for entry in self._idle if entry[0] is not connection)
        return self._assign(now_ms)

    def expire(self, now_ms: int, size: int) -> Todo[C, W]:
        """Close what has been idle too long; where more than `size` are open, the coldest after EXTRA_MS."""
        todo = self._assign(now_ms)
        extra = len(self._idle) + len(self._leased) + self._dialling - size
        close: list[C] = []
        while len(close) < extra and self._idle and self._idle[0][2] + EXTRA_MS <= now_ms:
            close.append(self._idle.popleft()[0])
        return todo._replace(close=[*todo.close, *close]) if close else todo

    @property
    def is_empty(self) -> bool:
        """Whether it holds and awaits nothing, so that it can be forgotten."""
        return not (self._idle or self._leased or self._dialling or self._waiting)

    @property
    def in_use(self) -> int:
        """How many connections serve a call."""
        return len(self._leased)

    @property
    def open(self) -> int:
        """How many connections there are, idle or in use."""
        return len(self._idle) + len(self._leased)

    def _first(self) -> W:
        """Who waits and is to go first leaves the line."""
        self._waiting -= 1
        return next(filter(None, self._lines)).popleft()

    def _assign(self, now_ms: int) -> Todo[C, W]:
        if not self._waiting and not (self._idle and self._idle[0][1] <= now_ms):
            return NOTHING
        close: list[C] = []
        while self._idle and self._idle[0][1] <= now_ms:
            close.append(self._idle.popleft()[0])
        give: list[tuple[W, C]] = []
        while self._waiting and self._idle:
            connection, expires_ms, _ = self._idle.pop()
            if expires_ms <= now_ms:
                close.append(connection)
                continue
            self._leased.add(connection)
            give.append((self._first(), connection))
        self.uses += len(give)
        self._promised = min(self._promised, self._waiting)
        under_way = self._dialling if now_ms - self._hopeful_ms < DOUBT_MS else self._promised
        dial = max(0, min(self._waiting - under_way, self._most - self.open - self._dialling))
        if dial:
            self._hopeful_ms = now_ms
            self._dialling += dial
            self._promised += dial
            self.dials += dial
        return Todo(give, dial, close)
