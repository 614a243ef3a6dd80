"""Gates for tests: a store whose calls are futures, and a process that takes until it is killed."""

import asyncio
import contextlib
import sys

from swarmgate.core.answers import Granted
from swarmgate.core.book import Take, Usage, first_score
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.stores.valkey.store import ValkeyStore

BUCKET = Limits(BudgetKind.LEVEL, burst=40, quota=200, window_ms=1_000, lease_ms=500)
SLOTS = Limits(BudgetKind.LEASES, burst=3, lease_ms=500)
WORK = 20  # round trips to the server that a call takes


def ask(lease, *demands, rank=1, waits=False, lease_ms=500, **rest):
    return Take(lease, lease, rank, rest.pop("score", first_score(rank)), (demands,), lease_ms, waits=waits, **rest)


def tell(call, event):
    if not call.done():
        call.set_result(event)


@contextlib.asynccontextmanager
async def opened(*urls, deployment="d", **budgets):
    store = ValkeyStore(urls, deployment, tell)
    for name, limits in budgets.items():
        store.define(name, limits)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def asked(store, request):
    """The event that answers a take."""
    call = asyncio.get_running_loop().create_future()
    store.take(call, request)
    return await call


async def work(url, name):
    """Take and settle for ever; each line tells what this gate holds, in the store's ms."""
    async with opened(url, bucket=BUCKET, slots=SLOTS) as store:
        number = 0
        while True:
            number += 1
            lease = f"{name}.{number}"
            event = await asked(store, ask(lease, ("bucket", 1, 0), ("slots", 0, 1)))
            if isinstance(event, Granted):
                print(lease, event.now_ms, event.expires_ms, flush=True)
                for _ in range(WORK):
                    await asked(store, ask(f"{lease}.w", ("bucket", 0, 0)))
                store.settle(lease, (Usage("slots", 1, 0),), last=True)
                print(lease, "ended", flush=True)


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:]))
