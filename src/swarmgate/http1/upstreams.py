"""
All connections to all targets: the driver of one pool per target.

Here lives the input/output that pool.py asks for: dial, hand out, close. A kept connection whose end was seen is never
handed out. Pools of hosts are separate (shared ones reuse less: 62 % against 91 %, essay A) and forgotten when empty.
"""

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from swarmgate.http1.dial import Dialler, Endpoint
from swarmgate.http1.faults import Fault
from swarmgate.http1.pool import NOTHING, Pool, PoolFull, Todo
from swarmgate.http1.pool_demand import PoolDemand
from swarmgate.http1.sweep import Sweep
from swarmgate.http1.upstream_end import UpstreamEnd

EXPIRE_EVERY_MS: Final = 1_000


class Origin(NamedTuple):
    """What a connection belongs to: scheme (`http`, `https`), host as normalised, port."""

    scheme: str
    host: str
    port: int


class Waiter(Protocol):
    """A call of a class (0 goes first) that wants a connection; exactly one of these follows, unless it withdraws."""

    @property
    def rank(self) -> int:
        """Its class."""

    def on_connection(self, end: UpstreamEnd) -> None:
        """It is yours: `send` on it, or `release` it unused."""

    def on_no_connection(self, fault: Fault) -> None:
        """There is none; no byte has left."""


class Dials(Protocol):
    """Opens connections: `dial.Dialler`."""

    def dial(
        self, endpoint: Endpoint, make: Callable[[], UpstreamEnd], outcome: Callable[[UpstreamEnd | Fault], None]
    ) -> None:
        """Open one; `outcome` hears of it once."""

    def close(self) -> None:
        """Open none any more."""


class PoolLimits(NamedTuple):
    """
    Per target: at most `most` connections, idle ones kept `idle_ms`, `max_waiting` calls.

    A pool keeps as many as it measures that it needs (pool_demand.py) and dials more while calls find none idle: budgets
    say how much a target takes. `most` bounds both: 1.3 x the streams that one loop serves on time.
    """

    most: int = 2_600
    idle_ms: int = 30_000
    max_waiting: int = 4_096


DEFAULT_LIMITS: Final = PoolLimits()
Located = Callable[[Endpoint | Fault], None]
Locate = Callable[[Origin, Located], None]


class HostConnections:
    """The connections to one origin: does what its pool decides."""

    def __init__(self, origin: Origin, shared: "Upstreams") -> None:
        self._origin = origin
        self._shared = shared
        self._sweep = shared.sweep
        most, idle_ms, max_waiting = shared.limits
        self.pool: Pool[UpstreamEnd, Waiter] = Pool(most, idle_ms=idle_ms, max_waiting=max_waiting)
        self.demand = PoolDemand(most)

    def connect(self, waiter: Waiter) -> None:
        """Give the waiter a connection: a kept one at once, else when one is free or dialled."""
        now_ms = self._sweep.now_ms
        end = self.pool.take(now_ms)
        if end is not None:
            if end.is_closing():  # its end was seen after it had become idle
                self._do(self.pool.bounce(waiter, end, now_ms, waiter.rank))
            else:
                waiter.on_connection(end)
            return
        try:
            todo = self.pool.ask(waiter, now_ms, waiter.rank)
        except PoolFull:
            waiter.on_no_connection(Fault.POOL_FULL)
        else:
            self._do(todo)

    def on_free(self, end: UpstreamEnd) -> None:
        """A connection may serve another exchange."""
        todo = self.pool.give_back(end, self._sweep.now_ms, end.keep_ms)
        if todo is not NOTHING:
            self._do(todo)

    def on_closed(self, end: UpstreamEnd) -> None:
        """A connection is gone."""
        self._do(self.pool.lost(end, self._sweep.now_ms))

    def expire(self) -> None:
        """Measure, and close what has been idle too long or is more than needed."""
        self.demand.sample(self.pool.in_use)
        self._do(self.pool.expire(self._sweep.now_ms, self.demand.size))

    @property
    def is_done(self) -> bool:
        """Whether it may be forgotten: it holds and awaits nothing, and nothing of note was measured of late."""
        return self.pool.is_empty and self.demand.is_least

    def _do(self, todo: Todo[UpstreamEnd, Waiter]) -> None:
        for end in todo.close:
            end.abandon()
        for _ in range(todo.dial):
            self._shared.locate(self._origin, self._located)
        for waiter in todo.turned_away:
            waiter.on_no_connection(Fault.POOL_FULL)
        for waiter, end in todo.give:
            self._give(waiter, end)

    def _give(self, waiter: Waiter, end: UpstreamEnd) -> None:
        if end.is_closing():
            self._do(self.pool.bounce(waiter, end, self._sweep.now_ms, waiter.rank))
        else:
            waiter.on_connection(end)

    def _located(self, found: Endpoint | Fault) -> None:
        if isinstance(found, Fault):  # later, so that a long line of waiters is no deep recursion
            self._shared.loop.call_soon(self._dialled, found)
        else:
            self._shared.dialler.dial(found, lambda: UpstreamEnd(self._sweep, self), self._dialled)

    def _dialled(self, outcome: UpstreamEnd | Fault) -> None:
        if isinstance(outcome, UpstreamEnd):
            self._do(self.pool.opened(outcome, self._sweep.now_ms))
            return
        victim, todo = self.pool.failed(self._sweep.now_ms)
        if victim is not None:
            victim.on_no_connection(outcome)
        self._do(todo)


class Upstreams:
    """Connections by origin; `locate` finds and judges the addresses of an origin and calls back, at once or later."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sweep: Sweep,
        locate: Locate,
        limits: PoolLimits = DEFAULT_LIMITS,
        dialler: Dials | None = None,
    ) -> None:
        self.loop = loop
        self.sweep = sweep
        self.locate = locate
        self.limits = limits
        self.dialler: Dials = dialler or Dialler(loop)  # shared ones share the turns of their handshakes
        self.hosts: dict[Origin, HostConnections] = {}
        self.deadline_ms = sweep.now_ms + EXPIRE_EVERY_MS
        sweep.watch(self)

    def connect(self, origin: Origin, waiter: Waiter) -> None:
        """Give the waiter a connection to this origin, or tell it why there is none."""
        host = self.hosts.get(origin)
        if host is None:
            host = self.hosts[origin] = HostConnections(origin, self)
        host.connect(waiter)

    def withdraw(self, origin: Origin, waiter: Waiter) -> bool:
        """The waiter wants none any more; false if it is not waiting (it has its connection, or its fault)."""
        host = self.hosts.get(origin)
        return host is not None and host.pool.withdraw(waiter)

    def close(self) -> None:
        """Stop dialling and close what is idle; exchanges in progress run to their end."""
        self.sweep.forget(self)
        self.dialler.close()
        for host in self.hosts.values():
            for end in host.pool.idle():
                end.abandon()

    def on_deadline(self) -> None:
        """Once a second: measure, close what is idle for too long, forget empty pools."""
        self.deadline_ms = self.sweep.now_ms + EXPIRE_EVERY_MS
        for origin, host in list(self.hosts.items()):
            host.expire()
            if host.is_done:
                del self.hosts[origin]
