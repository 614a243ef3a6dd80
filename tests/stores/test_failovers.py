"""What a change of servers may cost: demotion, a replica that lacks the newest, two masters, two versions, too many clients."""

import asyncio
from itertools import pairwise

import pytest
import redis
from floods import flood, grants, kept_its_bound
from gates import BUCKET, ask, asked, opened
from test_liars import fake, good
from valkey_server import running

from eventually import at_last, eventually
from swarmgate.core.answers import Granted
from swarmgate.core.events import StoreLost
from swarmgate.core.limits import BudgetKind, Limits
from swarmgate.core.reasons import Reason
from swarmgate.stores.valkey.store import FIRST_PAUSE_S, LONGEST_PAUSE_S

COUNTER = Limits(BudgetKind.COUNTER, burst=100_000, window_ms=86_400_000, slices=24)
AT_ONCE = ("--repl-diskless-sync-delay", "0")
MOST_BYTES = 1_200  # of an idle target


def test_st_05_a_master_that_is_demoted_admits_nothing_and_the_next_is_taken(own_server, server):
    server.client.flushall()

    async def main():
        async with opened(own_server.url, server.url, c=COUNTER) as store:
            assert isinstance(await asked(store, ask("x", ("c", 1, 0))), Granted)
            own_server.client.replicaof("127.0.0.1", 1)
            assert await asked(store, ask("y", ("c", 1, 0))) == StoreLost(Reason.GATE_STORE_READ_ONLY)
            await eventually(lambda: store.trouble is None)
            assert isinstance(await asked(store, ask("z", ("c", 1, 0))), Granted)
        assert [one.client.hget("{sg:d}b:c", "level") for one in (own_server, server)] == [b"1", b"1"]

    asyncio.run(main())


def test_st_06_a_replica_that_lacks_the_newest_grants_nothing_twice(tmp_path):
    with running(tmp_path / "m", *AT_ONCE, tcp=True) as master, running(tmp_path / "r", tcp=True) as replica:
        replica.client.replicaof("127.0.0.1", master.port)
        at_last(lambda: replica.client.info("replication")["master_link_status"] == "up")

        async def main():
            async with opened(master.url, replica.url, a=BUCKET) as store:
                stop, heard = asyncio.Event(), []
                flooding = asyncio.gather(*[flood(store, stop, heard) for _ in range(4)])
                await eventually(lambda: len(grants(heard)) > BUCKET.burst)
                replica.freeze()
                before = len(grants(heard))
                await eventually(lambda: len(grants(heard)) > before + BUCKET.burst)
                master.kill()
                replica.thaw()
                replica.client.replicaof("NO", "ONE")
                after = len(grants(heard))
                await eventually(lambda: store.births == 2)
                await eventually(lambda: len(grants(heard)) > after + BUCKET.burst)
                stop.set()
                await flooding
                assert kept_its_bound(heard)

        asyncio.run(main())


def test_st_12_two_masters_are_at_worst_two_budgets_and_one_that_wants_replicas_is_none(own_server, tmp_path):
    with running(tmp_path / "other") as other:

        async def main():
            async with opened(own_server.url, a=BUCKET) as here, opened(other.url, a=BUCKET) as there:
                stop, heard = asyncio.Event(), ([], [])
                floods = [
                    flood(one, stop, told) for one, told in zip((here, there), heard, strict=True) for _ in (1, 2)
                ]
                flooding = asyncio.gather(*floods)
                await eventually(lambda: min(len(grants(told)) for told in heard) > BUCKET.burst)
                other.client.config_set("min-replicas-to-write", 1)
                await eventually(lambda: there.trouble is not None)
                lonely, went_on = len(grants(heard[1])), len(grants(heard[0]))
                await eventually(lambda: len(grants(heard[0])) > went_on + BUCKET.burst)
                stop.set()
                await flooding
                assert len(grants(heard[1])) == lonely
                assert StoreLost(Reason.GATE_STORE_READ_ONLY) in heard[1]
                assert all(kept_its_bound(told) for told in heard)
                assert kept_its_bound(heard[0] + heard[1], times=2)

        asyncio.run(main())


def test_st_18_two_versions_of_the_script_share_one_bound(own_server):
    async def main():
        async with opened(own_server.url, a=BUCKET) as old, opened(own_server.url, a=BUCKET) as new:
            link = new._link
            link._text += "\n-- another version"
            link._sha = redis.Redis().register_script(link._text).sha
            stop, heard = asyncio.Event(), ([], [])
            floods = [flood(one, stop, told) for one, told in zip((old, new), heard, strict=True) for _ in (1, 2)]
            flooding = asyncio.gather(*floods)
            await eventually(lambda: min(len(grants(told)) for told in heard) > BUCKET.burst, 30)
            stop.set()
            await flooding
            assert own_server.client.script_exists(old._link._sha, new._link._sha) == [True, True]
            assert kept_its_bound(heard[0] + heard[1])

    asyncio.run(main())


def test_st_14_a_client_has_one_connection_however_many_ask(own_server):
    async def main():
        async with opened(own_server.url, c=COUNTER) as one, opened(own_server.url, c=COUNTER) as other:
            await asyncio.gather(
                *[asked(store, ask(f"l{n}", ("c", 1, 0))) for n in range(150) for store in (one, other)]
            )
            assert own_server.client.info("clients")["connected_clients"] == 3  # and the test's own

    asyncio.run(main())


def test_st_14_a_server_that_is_full_is_tried_less_and_less_often(tmp_path):
    tried_s = []

    def full(_command):
        tried_s.append(asyncio.get_running_loop().time())
        return b"-ERR max number of clients reached\r\n"

    async def main():
        async with fake(tmp_path, good(INFO=full)) as url, opened(url, c=COUNTER) as store:
            await eventually(lambda: len(tried_s) == 7)
            assert isinstance(await asked(store, ask("x", ("c", 1, 0))), StoreLost)
        pauses = [FIRST_PAUSE_S * 2**number for number in range(5)]
        assert max(pauses) < LONGEST_PAUSE_S
        gaps = [later - sooner for sooner, later in pairwise(tried_s[1:])]
        assert all(gap >= pause * 0.99 for gap, pause in zip(gaps, pauses, strict=True)), gaps

    asyncio.run(main())


@pytest.mark.parametrize("calls", [1, 50])
def test_st_15_what_a_target_costs_the_server_does_not_grow_and_ends(own_server, calls):
    names = [f"host-{number}.example.org" for number in range(100)]

    async def main():
        async with opened(own_server.url, **dict.fromkeys(names, BUCKET)) as store:
            for number in range(calls):
                await asyncio.gather(*[asked(store, ask(f"l{number}", (name, 1, 0))) for name in names])

    asyncio.run(main())
    client = own_server.client
    keys = [key for key in client.scan_iter() if key != b"{sg:d}"]
    assert sum(client.memory_usage(key) for key in keys) <= MOST_BYTES * len(names)
    assert all(0 < client.pttl(key) <= 120_000 for key in keys)
