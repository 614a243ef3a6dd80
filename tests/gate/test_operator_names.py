"""Where the operator's own targets lead: in time, also when name servers are silent, and to the new address when it moves (UP-12)."""

import asyncio
import socket

import pytest

from eventually import eventually
from swarmgate.gate.resolve import KEPT_MS, STALE_MS, OperatorResolver
from swarmgate.http1.dial import CONNECT_S, Endpoint
from swarmgate.http1.faults import Fault
from swarmgate.http1.sweep import Sweep
from swarmgate.http1.upstreams import Origin

HERE = Origin("http", "api.test", 80)
GONE = socket.gaierror(socket.EAI_NONAME, "no such name")
FAILED = socket.gaierror(socket.EAI_AGAIN, "try again")


class Names(asyncio.SelectorEventLoop):
    """A loop whose name servers say what the test says: addresses, an error, or nothing (None)."""

    said = ()
    asked = 0

    async def getaddrinfo(self, host, port, **_more):
        self.asked += 1
        if self.said is None:
            await asyncio.get_running_loop().create_future()
        if isinstance(self.said, Exception):
            raise self.said
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in self.said]


def played(scenario):
    with asyncio.Runner(loop_factory=Names) as runner:
        runner.run(scenario())


def resolver(look_up_s=CONNECT_S):
    loop = asyncio.get_running_loop()
    sweep = Sweep(loop)
    return loop, sweep, OperatorResolver(loop, sweep, None, {}, look_up_s)


async def located(made, origin=HERE):
    found = []
    made.locate(origin, found.append)
    await eventually(lambda: found)
    return found[0]


def to(*addresses):
    return Endpoint(addresses, 80)


@pytest.mark.parametrize("trouble", [GONE, FAILED, None, ()], ids=["NXDOMAIN", "SERVFAIL", "silent", "empty"])
def test_up_12_a_name_without_an_answer_is_told_within_the_time_of_a_dial(trouble):
    async def run():
        loop, _, made = resolver(0.01)
        loop.said = trouble
        assert await located(made) is Fault.RESOLVE_FAILED
        assert await located(made, Origin("http", "a..b", 80)) is Fault.RESOLVE_FAILED

    played(run)


def test_up_12_a_name_is_kept_for_a_while_and_its_new_address_taken_then():
    async def run():
        loop, sweep, made = resolver()
        loop.said = ("192.0.2.1", "192.0.2.2", "192.0.2.1")
        assert await located(made) == to("192.0.2.1", "192.0.2.2")
        loop.said = ("192.0.2.9",)
        assert await located(made) == to("192.0.2.1", "192.0.2.2")
        assert loop.asked == 1
        sweep.now_ms += KEPT_MS
        assert await located(made) == to("192.0.2.9")

    played(run)


@pytest.mark.parametrize(
    ("trouble", "later_ms", "expected"),
    [
        (None, KEPT_MS, to("192.0.2.1")),
        (FAILED, KEPT_MS, to("192.0.2.1")),
        (FAILED, KEPT_MS + STALE_MS, Fault.RESOLVE_FAILED),
        (GONE, KEPT_MS, Fault.RESOLVE_FAILED),
    ],
)
def test_where_name_servers_are_silent_a_target_is_where_it_was_for_a_while(trouble, later_ms, expected):
    async def run():
        loop, sweep, made = resolver(0.01)
        loop.said = ("192.0.2.1",)
        await located(made)
        loop.said = trouble
        sweep.now_ms += later_ms
        assert await located(made) == expected
        loop.said = ("192.0.2.9",)
        assert await located(made) == to("192.0.2.9")  # asked anew: what was stale is not kept

    played(run)
