"""
One port of a stand-in: requests in whole, answers on timers of the loop, built on the gate's own http1/.

A site gives each request to `serve` once its body is here; what it does later it hangs on the exchange, so that a caller
who leaves cancels it.
"""

import asyncio
from collections.abc import Callable
from itertools import count

from swarmgate.http1.client_end import ClientEnd
from swarmgate.http1.head import RequestHead
from swarmgate.http1.listen import Listening, listen
from swarmgate.http1.refusals import BadHead
from swarmgate.http1.sweep import Sweep
from swarmgate.lab.standin.plan import LOOPBACK

MOST_BODY_BYTES = 64 * 1024 * 1024


class Exchange:
    """One request and what will still happen on its account; `left` is called once, at its end or the caller's."""

    __slots__ = ("_parts", "left", "size", "timer")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0
        self.timer: asyncio.TimerHandle | None = None
        self.left: Callable[[], None] | None = None

    @property
    def body(self) -> bytes:
        """The request's body as far as it is here."""
        return b"".join(self._parts)

    def add(self, data: bytes) -> None:
        """A piece of the body; what no model reads is not kept."""
        self.size += len(data)
        if self.size <= MOST_BODY_BYTES:
            self._parts.append(data)

    def over(self) -> None:
        """It ended, or nobody waits for it any more."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        left, self.left = self.left, None
        if left is not None:
            left()


class NumberedEnd(ClientEnd):
    """A client connection with a number of its own, for the witness."""

    __slots__ = ("number",)

    def __init__(self, site: "Site", sweep: Sweep) -> None:
        super().__init__(site, sweep)
        self.number = next(site.connections)


class Site:
    """The handler of one port's connections."""

    connections = count(1)  # of all sites of this process

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.answers = count(1)

    @property
    def now_ms(self) -> int:
        """The machine's monotonic clock."""
        return int(self.loop.time() * 1_000)

    async def listen(self, sweep: Sweep, port: int) -> Listening:
        """Accept connections; port 0 takes a free one. Errors: OSError."""
        return await listen(self.loop, lambda: NumberedEnd(self, sweep), LOOPBACK, port)

    def serve(self, end: NumberedEnd, head: RequestHead, exchange: Exchange) -> None:
        """A whole request."""
        raise NotImplementedError

    def later(self, exchange: Exchange, ms: float, then: Callable[[], None]) -> None:
        """Go on with an exchange after so many ms."""
        exchange.timer = self.loop.call_later(ms / 1_000, then)

    def on_request(self, end: ClientEnd, _head: RequestHead) -> None:
        """A request begins."""
        end.call = Exchange()
        end.want_body()

    def on_whole(self, end: ClientEnd, head: RequestHead, body: bytes) -> None:
        """All of it at once."""
        assert isinstance(end, NumberedEnd)
        end.call = Exchange()
        end.call.add(body)
        self.serve(end, head, end.call)

    def on_body(self, end: ClientEnd, data: bytes) -> None:
        """A piece of its body."""
        end.call.add(data)

    def on_body_end(self, end: ClientEnd) -> None:
        """It is whole."""
        assert isinstance(end, NumberedEnd)
        if end.head is not None:
            self.serve(end, end.head, end.call)

    def on_gone(self, end: ClientEnd) -> None:
        """The caller left."""
        if end.call is not None:
            end.call.over()

    def on_pause(self, _end: ClientEnd) -> None:
        """Answers are small: what is written waits in the connection."""

    def on_resume(self, _end: ClientEnd) -> None:
        """The caller caught up."""

    def on_refused(self, _end: ClientEnd, _bad: BadHead) -> None:
        """What is no request is answered in the usual form."""
