"""ST-02, ST-03: two guarded processes before one real server that is killed, and what they do alone until it is back."""

import asyncio
import contextlib

from gates import BUCKET, ask

from eventually import eventually
from records import a_call
from swarmgate.core.answers import Granted
from swarmgate.core.events import StoreLost
from swarmgate.engine.clock import LoopClock
from swarmgate.engine.guard import Guard, OutageMode
from swarmgate.stores.valkey.store import ValkeyStore
from swarmgate.testing.kit import most_in_any_window

PROCESSES = 2
APART_MS = 5  # the server's clock and ours, each cut to whole ms
ENOUGH = 60  # grants; more than a burst
PAUSE_S = 0.001


class Process:
    """A guarded store as a gate has it; `heard` is what its callers were told."""

    def __init__(self, url, name):
        self.name, self.heard, self.asked, self.by_store = name, [], 0, 0
        self.clock = LoopClock(asyncio.get_running_loop())
        self.store = ValkeyStore((url,), "d", self.told)
        self.guard = Guard(self.store, self.clock, PROCESSES)
        self.guard.fire = self.fire
        self.guard.modes = {"a": OutageMode.LOCAL_SHARE, "strict": OutageMode.CLOSED}
        for budget in ("a", "strict"):
            self.guard.define(budget, BUCKET)

    def told(self, call, event):
        self.by_store += isinstance(event, Granted)
        self.guard.heard(call, event)

    def fire(self, call, event):
        call.client.set_result(event)

    async def ask(self, budget):
        self.asked += 1
        call = a_call(f"{self.name}.{self.asked}", asyncio.get_running_loop().create_future())
        self.guard.take(call, ask(call.id, (budget, 1, 0)))
        return await call.client

    async def work(self, stop):
        while not stop.is_set():
            self.heard.append(await self.ask("a"))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PAUSE_S):
                    await stop.wait()


def test_st_02_03_shares_while_the_server_is_gone_keep_the_bound_and_end_when_it_is_back(own_server):
    async def main():
        processes = [Process(own_server.url, name) for name in ("one", "two")]
        for one in processes:
            await one.store.open()
        stop = asyncio.Event()
        working = asyncio.gather(*[one.work(stop) for one in processes])

        async def more(count):
            before = [count(one) for one in processes]
            await eventually(lambda: all(count(one) > n + ENOUGH for one, n in zip(processes, before, strict=True)), 30)

        await more(lambda one: one.by_store)
        own_server.kill()
        await eventually(lambda: all(one.guard.lost for one in processes))
        assert isinstance(await processes[0].ask("strict"), StoreLost)
        await more(lambda one: one.guard.local_grants)
        own_server.start()
        await more(lambda one: one.by_store)
        stop.set()
        await working
        for one in processes:
            await one.store.close()
        return processes

    processes = asyncio.run(main())
    used = sorted((event.now_ms, 1) for one in processes for event in one.heard if isinstance(event, Granted))
    losses = max(one.guard.losses for one in processes)  # each may add one burst, once (design 2: P1)
    room = (1 + losses) * BUCKET.burst + BUCKET.quota * APART_MS // BUCKET.window_ms
    assert most_in_any_window(used, room, BUCKET.quota, BUCKET.window_ms)
