import asyncio

import pytest
from plain_relay import LOOPS, Target, run
from wire import Owner

from eventually import eventually
from swarmgate.http1.dial import Endpoint
from swarmgate.http1.faults import Fault
from swarmgate.http1.sweep import Sweep
from swarmgate.http1.upstreams import Origin, PoolLimits, Upstreams

on_both_loops = pytest.mark.parametrize("loop_name", sorted(LOOPS))
SIZED = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
GET = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"


class Caller(Owner):
    """Waits for a connection, sends one request, writes down everything."""

    rank = 1

    def __init__(self):
        super().__init__()
        self.end = None

    def on_connection(self, end):
        self.end = end
        self.hear("connection")

    def on_no_connection(self, fault):
        assert not fault.may_have_left
        self.hear("none", fault)


def locate(origin, located):
    located(Endpoint((origin.host,), origin.port))


def make(limits: PoolLimits, find=locate) -> Upstreams:
    loop = asyncio.get_running_loop()
    return Upstreams(loop, Sweep(loop), find, limits)


@on_both_loops
def test_a_full_pool_serves_its_line_in_order_over_few_connections(loop_name):
    async def scenario():
        async with Target(lambda transport, request: transport.write(SIZED)) as target:
            upstreams = make(PoolLimits(most=2))
            origin = Origin("http", "127.0.0.1", target.port)
            callers = [Caller() for _ in range(10)]
            for caller in callers:
                upstreams.connect(origin, caller)
            for caller in callers:
                await eventually(lambda caller=caller: caller.end)
                caller.end.send(caller, b"GET", GET)
                await eventually(lambda caller=caller: caller.events[-1][0] == "end")
            assert len(target.connections) == 2
            upstreams.close()
            await eventually(lambda: all(connection.lost for connection in target.connections))

    run(loop_name, scenario)


@on_both_loops
def test_idle_connections_expire_and_empty_pools_are_forgotten(loop_name):
    async def scenario():
        async with Target(lambda transport, request: None) as target:
            upstreams = make(PoolLimits(idle_ms=2000))
            origin, caller = Origin("http", "127.0.0.1", target.port), Caller()
            upstreams.connect(origin, caller)
            await eventually(lambda: caller.end)
            caller.end.release()
            now_ms = upstreams.sweep.now_ms
            upstreams.sweep.look(now_ms + 1999)
            assert len(upstreams.hosts[origin].pool.idle()) == 1
            upstreams.sweep.look(now_ms + 3500)
            await eventually(lambda: target.connections[0].lost)
            upstreams.sweep.look(now_ms + 5000)
            assert not upstreams.hosts
            upstreams.close()

    run(loop_name, scenario)


@on_both_loops
def test_a_pool_is_as_large_as_was_measured_and_a_burst_beyond_it_is_not_kept(loop_name):
    async def scenario():
        async with Target(lambda transport, request: None) as target:
            upstreams = make(PoolLimits())
            origin = Origin("http", "127.0.0.1", target.port)

            async def occupy(count):
                callers = [Caller() for _ in range(count)]
                for caller in callers:
                    upstreams.connect(origin, caller)
                await eventually(lambda: all(caller.end for caller in callers))
                return callers

            def release(callers):
                for caller in callers:
                    caller.end.release()

            def pass_seconds(seconds):
                for _ in range(seconds):
                    upstreams.sweep.look(upstreams.sweep.now_ms + 1_000)

            still, brief = await occupy(20), await occupy(20)
            host = upstreams.hosts[origin]
            pass_seconds(10)
            assert (host.demand.mean_permille, host.demand.size) == (40_000, 52)
            release(brief)
            pass_seconds(15)
            await eventually(lambda: host.pool.open == 40)  # all of them within the size
            pass_seconds(300)
            assert (host.demand.mean_permille, host.demand.size) == (20_000, 26)
            release(await occupy(30))  # more than the size, and nobody waits for it
            pass_seconds(9)
            assert host.pool.open == 50
            pass_seconds(1)
            await eventually(lambda: host.pool.open == 26)
            assert host.pool.in_use == len(still)
            release(still)
            upstreams.close()

    run(loop_name, scenario)


@on_both_loops
def test_what_a_pool_measured_is_remembered_when_it_is_empty(loop_name):
    async def scenario():
        async with Target(lambda transport, request: None) as target:
            upstreams = make(PoolLimits(idle_ms=1_000))
            origin, callers = Origin("http", "127.0.0.1", target.port), [Caller() for _ in range(10)]
            for caller in callers:
                upstreams.connect(origin, caller)
            await eventually(lambda: all(caller.end for caller in callers))
            for second in range(320):
                if second == 10:
                    for caller in callers:
                        caller.end.release()
                if second == 20:
                    await eventually(lambda: upstreams.hosts[origin].pool.is_empty)
                    assert upstreams.hosts[origin].demand.size == 13
                upstreams.sweep.look(upstreams.sweep.now_ms + 1_000)
            assert not upstreams.hosts
            upstreams.close()

    run(loop_name, scenario)


def test_a_connection_found_closed_is_replaced_before_anybody_uses_it():
    async def scenario():
        async with Target(lambda transport, request: transport.write(SIZED)) as target:
            upstreams = make(PoolLimits(most=1))
            origin, first, second, third = Origin("http", "127.0.0.1", target.port), Caller(), Caller(), Caller()
            upstreams.connect(origin, first)
            await eventually(lambda: first.end)
            first.end.release()
            first.end._transport.close()  # seen by the transport, not yet told to the pool
            upstreams.connect(origin, second)
            upstreams.connect(origin, third)
            await eventually(lambda: second.end)
            assert second.end is not first.end
            second.end.release()
            await eventually(lambda: third.end)
            upstreams.close()

    run("asyncio", scenario)


def test_faults_reach_each_waiting_call_once_however_long_the_line():
    async def scenario():
        upstreams = make(PoolLimits(most=3, max_waiting=2000), lambda origin, located: located(Fault.RESOLVE_FAILED))
        callers = [Caller() for _ in range(2001)]
        for caller in callers:
            upstreams.connect(Origin("http", "nowhere", 80), caller)
        await eventually(lambda: all(caller.events for caller in callers))
        assert [caller.events for caller in callers[:-1]] == [[("none", Fault.RESOLVE_FAILED)]] * 2000
        assert callers[-1].events == [("none", Fault.POOL_FULL)]
        upstreams.close()

    run("asyncio", scenario)


def test_who_withdraws_hears_nothing():
    async def scenario():
        found = []
        upstreams = make(PoolLimits(), lambda origin, located: found.append(located))
        origin, caller = Origin("http", "127.0.0.1", 1), Caller()
        upstreams.connect(origin, caller)
        assert upstreams.withdraw(origin, caller)
        assert not upstreams.withdraw(origin, caller)
        found[0](Fault.RESOLVE_FAILED)
        host = upstreams.hosts[origin]
        await eventually(lambda: host.pool.is_empty)
        assert caller.events == []
        assert not upstreams.withdraw(Origin("http", "other", 1), caller)
        upstreams.close()

    run("asyncio", scenario)
