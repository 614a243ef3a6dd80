"""P10 with real servers: killed, frozen, flushed, full, busy, of the wrong kind; gates that die."""

import asyncio
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from floods import flood, kept_its_bound, more
from gates import BUCKET, ask, asked, opened

from eventually import at_last, eventually, eventually_says
from swarmgate.core.answers import Denied, Granted
from swarmgate.core.events import StoreLost
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.reasons import Reason
from swarmgate.stores.valkey.store import STAND_S, USUAL_OPERATION_S
from swarmgate.testing.kit import most_in_any_window

COUNTER = Limits(BudgetKind.COUNTER, burst=100_000, window_ms=86_400_000, slices=24)
GATES = Path(__file__).with_name("gates.py")


@pytest.mark.usefixtures("patient")
def test_a_server_that_forgot_the_script_is_given_it_and_nobody_notices(own_server):
    async def main():
        async with opened(own_server.url, a=BUCKET) as store:
            stop, heard = asyncio.Event(), []
            flooding = asyncio.gather(*[flood(store, stop, heard) for _ in range(4)])
            for _ in range(20):
                own_server.client.script_flush()
                await more(heard, 20)
            stop.set()
            await flooding
            assert {type(event) for event in heard} <= {Granted, Denied}
            assert kept_its_bound(heard)

    asyncio.run(main())


@pytest.mark.usefixtures("patient")
def test_a_flush_under_load_is_a_birth_and_keeps_the_bound(own_server):
    async def main():
        async with opened(own_server.url, a=BUCKET) as store:
            stop, heard = asyncio.Event(), []
            flooding = asyncio.gather(*[flood(store, stop, heard) for _ in range(4)])
            for births in (2, 3):
                await more(heard, 500)
                own_server.client.flushall()
                await eventually(lambda births=births: store.births == births)
            await more(heard, 500)
            stop.set()
            await flooding
            assert {type(event) for event in heard} <= {Granted, Denied}
            assert kept_its_bound(heard)

    asyncio.run(main())


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("options", [(), ("--appendonly", "yes", "--appendfsync", "always")], ids=["empty", "kept"])
def test_a_killed_server_comes_back_cold(own_server, options):
    own_server.options += options
    own_server.kill()
    own_server.start()

    async def main():
        async with opened(own_server.url, a=BUCKET) as store:
            stop, heard = asyncio.Event(), []
            flooding = asyncio.gather(*[flood(store, stop, heard) for _ in range(4)])
            await more(heard, 500)
            own_server.kill()
            await eventually(lambda: store.trouble is Reason.GATE_STORE_UNREACHABLE)
            before = len(heard)
            own_server.start()
            await eventually(lambda: store.births == 2)
            await eventually(lambda: any(isinstance(event, Granted) for event in heard[before:]))
            stop.set()
            await flooding
            lost = {event.reason for event in heard if isinstance(event, StoreLost)}
            assert lost == {Reason.GATE_STORE_UNREACHABLE}
            assert kept_its_bound(heard)

    asyncio.run(main())


def test_llm_gateways_58_a_frozen_server_is_lost_within_100_ms_and_comes_back(own_server):
    async def freeze(store):
        """How long 200 takes waited, and 200 more after the loss was known."""
        waited_s = []
        own_server.freeze()
        try:
            for _ in range(2):
                began_s = time.monotonic()
                events = await asyncio.gather(*[asked(store, ask(f"l{one}", ("c", 0, 1))) for one in range(200)])
                waited_s.append(time.monotonic() - began_s)
                reasons = {event.reason for event in events}
                assert {Reason.GATE_STORE_SILENT} <= reasons <= {Reason.GATE_STORE_SILENT, Reason.GATE_STORE_CROWDED}
        finally:
            own_server.thaw()
        await eventually(lambda: store.trouble is None, 2)
        await asked(store, ask("again", ("c", 1, 0)))
        pending = own_server.client.hget("{sg:d}b:c", "pending")
        assert pending == b"0", "what the server granted to nobody is released"
        return waited_s

    async def main():
        async with opened(own_server.url, c=COUNTER) as store:
            await asked(store, ask("first", ("c", 1, 0)))
            waited_s = [await freeze(store) for _ in range(3)]
            # a shared machine may hold up our own loop once or twice; the store's promise is the best of three
            assert min(first for first, _ in waited_s) < 0.1
            assert min(second for _, second in waited_s) < 0.05

    asyncio.run(main())


def test_a_crowd_is_told_at_once_and_the_others_as_ever(own_server):
    async def main():
        async with opened(own_server.url, c=COUNTER) as store:
            await asked(store, ask("first", ("c", 1, 0)))
            own_server.freeze()
            try:
                waits = [asked(store, ask(f"l{one}", ("c", 0, 1))) for one in range(500)]
                reasons = Counter([event.reason for event in await asyncio.gather(*waits)])
            finally:
                own_server.thaw()
            stand = int(STAND_S / USUAL_OPERATION_S) + 1
            assert reasons == {Reason.GATE_STORE_SILENT: stand, Reason.GATE_STORE_CROWDED: 500 - stand}
            assert store.crowded == 500 - stand
            await eventually(lambda: store.trouble is None, 2)

    asyncio.run(main())


def test_a_gate_that_is_killed_leaves_nothing_that_does_not_end(own_server, tmp_path):
    told = [tmp_path / name for name in ("g1", "g2", "g3")]

    def said():
        return [
            line.split() for file in told for line in file.read_text().splitlines(keepends=True) if line[-1] == "\n"
        ]

    gates = []
    try:
        for file in told:
            with file.open("w") as out:
                gates.append(subprocess.Popen([sys.executable, GATES, own_server.url, file.name], stdout=out))
        at_last(lambda: len(said()) > 20)
        gates[0].kill()
        at_last(lambda: len(said()) > 60)
    finally:
        for gate in gates:
            gate.kill()
            gate.wait()
    lines = said()
    granted = {line[0]: (int(line[1]), int(line[2])) for line in lines if len(line) == 3}
    assert len(granted) > 20
    assert most_in_any_window(sorted((now_ms, 1) for now_ms, _ in granted.values()), 40, 200, 1_000)
    ended = {line[0] for line in lines if line[1] == "ended"}
    left = [expires_ms for lease, (_, expires_ms) in granted.items() if lease not in ended]
    last_ms = max(left, default=0)  # on a busy machine a kill may hit nobody in the middle

    async def main():
        async with opened(own_server.url, slots=Limits(BudgetKind.LEASES, burst=3, lease_ms=500)) as store:
            heard = []

            async def all_are_free():
                heard.append(await asked(store, ask("all", ("slots", 0, 3))))
                return isinstance(heard[-1], Granted)

            await eventually_says(all_are_free)
            assert last_ms <= heard[-1].now_ms
            assert not left or heard[-1].now_ms <= last_ms + 1_000

    asyncio.run(main())


def replicate(server):
    server.client.replicaof("127.0.0.1", 1)


def evict(server):
    server.client.config_set("maxmemory", "100mb")
    server.client.config_set("maxmemory-policy", "allkeys-lru")


@pytest.mark.parametrize(
    ("spoil", "trouble"), [(replicate, Reason.GATE_STORE_READ_ONLY), (evict, Reason.GATE_STORE_UNFIT)]
)
def test_a_server_of_the_wrong_kind_is_refused_and_the_next_one_taken(own_server, server, spoil, trouble):
    spoil(own_server)

    async def main():
        async with opened(own_server.url, c=COUNTER) as store:
            assert await asked(store, ask("x", ("c", 1, 0))) == StoreLost(trouble)
        async with opened(own_server.url, server.url, c=COUNTER) as store:
            await eventually(lambda: store.trouble is None)
            assert isinstance(await asked(store, ask("x", ("c", 1, 0))), Granted)

    asyncio.run(main())


def test_a_server_without_memory_admits_nothing(own_server):
    async def main():
        async with opened(own_server.url, c=COUNTER) as store:
            own_server.client.config_set("maxmemory", "1")
            assert await asked(store, ask("y", ("c", 1, 0))) == StoreLost(Reason.GATE_STORE_FULL)

    asyncio.run(main())


def test_a_server_that_runs_a_long_script_is_busy_and_comes_back(own_server):
    own_server.client.config_set("busy-reply-threshold", "1")

    async def main():
        async with opened(own_server.url, c=COUNTER) as store:
            await asked(store, ask("x", ("c", 1, 0)))
            endless = own_server.client.connection_pool.get_connection()
            endless.send_command("EVAL", "while true do end", "0")

            async def is_busy():
                return await asked(store, ask("y", ("c", 1, 0))) == StoreLost(Reason.GATE_STORE_BUSY)

            await eventually_says(is_busy)
            own_server.client.script_kill()
            endless.disconnect()
            await eventually(lambda: store.trouble is None, 2)

    asyncio.run(main())
