"""
One store client as a process: the real pump on a shared Valkey, with so many callers that want the same budget at once.

Each call that is let through is one datagram to the witness. `python contenders.py URL PORT NAME CALLERS SKEW_MS` runs until
killed; its clock is wrong by so much.
"""

import asyncio
import socket
import sys

from swarmgate.core.commands import Answer, End
from swarmgate.core.compiler import Published
from swarmgate.core.events import DELIVERED, READY, Ended
from swarmgate.core.outcome import Signal, classify
from swarmgate.core.record import Call, Rung
from swarmgate.core.retry import RetryBudget
from swarmgate.core.routing import budget, route
from swarmgate.core.target_ring import ONLY_KEY, TargetRing
from swarmgate.core.waiting import Room
from swarmgate.engine.alarm import LoopTimer
from swarmgate.engine.clock import LoopClock
from swarmgate.engine.pump import Pump
from swarmgate.stores.valkey.store import ValkeyStore

LIMIT, WINDOW_MS = 1_500, 10_000
SHARED = budget("host", Published(LIMIT, WINDOW_MS))
SERVED = Ended(classify(Signal(status=200)), 0)
ANSWER_S = 0.02
SWEEP_S = 0.25
HOLD_MS = 20_000
FOR_EVER_MS = 10**9


class Client:
    """Callers of one process, the host as they reach it, and nothing in between but pump and store."""

    def __init__(self, loop, url, port, name, skew_ms):
        self.loop, self.name, self.number = loop, name, 0
        self.clock = LoopClock(loop)
        self.clock.offset_ms += skew_ms
        timer = LoopTimer(loop, self.clock, lambda: None)
        self.pump = Pump(self.clock, timer, Room(), self.failed)
        timer.ring = self.pump.ring
        self.store = ValkeyStore((url,), "contenders", self.pump.fire)
        for budget_name, limits in SHARED.limits():
            self.store.define(budget_name, limits)
        self.pump.attach(self.store, self, self, self)
        self.rung = Rung("host", "", {ONLY_KEY: route(ONLY_KEY, [SHARED])}, TargetRing(), RetryBudget())
        self.witness = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.witness.connect(("127.0.0.1", port))

    def failed(self, call, bug):
        self.loop.call_exception_handler({"message": f"{call.id} failed", "exception": bug})
        self.loop.stop()

    def want(self, ticket=None):
        """A caller wants one more; `ticket` is the deferred call that it repeats."""
        self.number += 1
        now_ms = self.clock.now_ms()
        call = Call(f"{self.name}.{self.number}", (self.rung,), self.pump.room, rank=1, arrived_ms=now_ms)
        call.deadline_ms, call.wait_until_ms = now_ms + FOR_EVER_MS, now_ms + HOLD_MS
        call.content_ms = FOR_EVER_MS
        if ticket is not None:
            call.ticket, call.score = ticket.ticket, ticket.score
        self.pump.arrive(call)

    def connect(self, call):
        self.pump.fire(call, READY)

    def send(self, call):
        self.witness.send(call.id.encode())
        self.pump.fire(call, DELIVERED)
        self.loop.call_later(ANSWER_S, self.pump.fire, call, SERVED)

    def answer(self, call, answer: Answer):
        if answer.end is End.DEFERRED:
            after_ms = max(1, answer.denied.not_before_ms - answer.denied.now_ms)
            self.loop.call_later(after_ms / 1_000, self.want, call)
        else:
            assert answer.end is End.ANSWERED, answer
            self.loop.call_soon(self.want)

    def nothing(self, *_):
        pass

    park = abort = relay = intent = note = lost = end = nothing


async def contend(url, port, name, callers, skew_ms):
    loop = asyncio.get_running_loop()
    client = Client(loop, url, int(port), name, int(skew_ms))
    await client.store.open()
    for _ in range(int(callers)):
        client.want()
    print("ready", flush=True)

    def sweep():
        client.pump.sweep()
        loop.call_later(SWEEP_S, sweep)

    sweep()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(contend(*sys.argv[1:]))
