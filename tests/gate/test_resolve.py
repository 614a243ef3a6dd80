"""Where agents' names lead: every address judged, exactly the judged ones dialled, and no way to make it slow for others."""

import asyncio
import socket
import threading
from contextlib import contextmanager

import pytest

from eventually import eventually
from records import Beside
from swarmgate.core.leaving import NEXT_NAME_MS
from swarmgate.facts.suffixes import load_suffix_rules
from swarmgate.gate.lookups import AT_ONCE, LOOK_UP_S, PER_DOMAIN, Found
from swarmgate.gate.resolve import (
    KEPT_MS,
    MOST_KNOWN,
    NAMES_AT_ONCE,
    STALE_MS,
    TargetResolver,
)
from swarmgate.http1.dial import MAX_ADDRESSES, Endpoint
from swarmgate.http1.faults import Fault
from swarmgate.http1.sweep import Sweep
from swarmgate.http1.upstreams import Origin

DENIED = Fault.ADDRESS_DENIED
PUBLIC = "93.184.215.14"


@contextmanager
def resolver(answers=None, pins=None, look_up=None):
    loop = asyncio.get_running_loop()
    asked = []

    def answer(name):
        asked.append(name)
        found = answers[name]
        if isinstance(found, Exception):
            raise found
        return found if isinstance(found, Found) else Found(tuple(found))

    made = TargetResolver(loop, Sweep(loop), None, load_suffix_rules(), pins or {}, look_up or answer)
    try:
        yield Beside(made, asked=asked)
    finally:
        made.close()


async def located(made, host, port=443, scheme="http"):
    found = []
    made.locate(Origin(scheme, host, port), found.append)
    await eventually(lambda: found)
    return found[0]


INSIDE = [
    "127.0.0.1",
    "0.0.0.0",
    "::",
    "::1",
    "10.0.0.1",
    "169.254.169.254",
    "100.100.100.200",
    "100.64.0.1",
    "fd00:ec2::254",
    "fe80::1",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::",
    "::127.0.0.1",
    "224.0.0.1",
    "192.88.99.1",
    "localhost",
    "metadata.google.internal",
    "db.svc",
    "x.local",
    "api.cluster.local",
]


@pytest.mark.parametrize("host", INSIDE)
def test_nothing_inside_is_dialled_and_nobody_is_asked(host):
    async def run():
        with resolver() as made:
            assert await located(made, host) is DENIED
            assert made.asked == []

    asyncio.run(run())


@pytest.mark.parametrize(
    "answer",
    [
        ["127.0.0.1"],
        [PUBLIC, "10.0.0.1"],  # one public, one private address
        ["::ffff:169.254.169.254"],
        ["fe80::1%eth0"],
        Found((PUBLIC,), "db.internal"),
        Found((PUBLIC,), "LOCALHOST."),
    ],
)
def test_a_name_that_leads_inside_is_denied_whole(answer):
    async def run():
        with resolver({"evil.org": answer}) as made:
            assert await located(made, "evil.org") is DENIED
            assert made.denied == 1

    asyncio.run(run())


def test_what_was_judged_is_dialled_until_it_is_judged_anew():
    """DNS rebinding: public first, loopback next, with a lifetime of 0."""

    async def run():
        answers = {"evil.org": [PUBLIC]}
        with resolver(answers) as made:
            assert await located(made, "evil.org") == Endpoint((PUBLIC,), 443)
            answers["evil.org"] = ["127.0.0.1"]
            assert await located(made, "evil.org") == Endpoint((PUBLIC,), 443)
            assert made.asked == ["evil.org"]
            made._sweep.now_ms += 31_000
            assert await located(made, "evil.org") is DENIED

    asyncio.run(run())


def test_pins_are_the_only_way_in_and_exact():
    pins = {"api.x.org": ("127.0.0.1", 9_101), "db.x.org:8080": ("10.0.0.7", 80), "127.0.0.1": ("127.0.0.1", 9_102)}

    async def run():
        with resolver({"www.api.x.org": ["127.0.0.1"]}, pins) as made:
            assert await located(made, "api.x.org") == Endpoint(("127.0.0.1",), 9_101)
            assert await located(made, "db.x.org", 8_080) == Endpoint(("10.0.0.7",), 80)
            assert await located(made, "127.0.0.1", 80) == Endpoint(("127.0.0.1",), 9_102)
            assert await located(made, "www.api.x.org") is DENIED

    asyncio.run(run())


def test_up_13_tls_verifies_the_name_that_was_asked_for():
    async def run():
        with resolver({"x.org": [PUBLIC]}) as made:
            found = await located(made, "x.org", scheme="https")
            assert (found.server_name, found.addresses) == ("x.org", (PUBLIC,))

    asyncio.run(run())


def test_up_12_a_name_that_is_not_there_is_asked_for_once_in_a_while():
    async def run():
        gone = socket.gaierror(socket.EAI_NONAME, "no such name")
        with resolver(
            {"gone.org": gone, "empty.org": [], "lost.org": socket.gaierror(socket.EAI_AGAIN, "later")}
        ) as made:
            for host in ("gone.org", "gone.org", "empty.org"):
                assert await located(made, host) is Fault.NO_SUCH_NAME
            assert await located(made, "lost.org") is Fault.RESOLVE_FAILED
            assert made.asked == ["gone.org", "empty.org", "lost.org"]

    asyncio.run(run())


def test_up_12_of_a_thousand_addresses_few_are_kept_and_all_are_judged():
    many = [f"93.184.{number // 256}.{number % 256}" for number in range(1_000)]

    async def run():
        with resolver({"many.org": many, "one.org": [*many, "10.0.0.1"]}) as made:
            assert await located(made, "many.org") == Endpoint(tuple(many[:MAX_ADDRESSES]), 443)
            assert await located(made, "one.org") is DENIED

    asyncio.run(run())


def test_up_12_a_name_that_moves_is_followed():
    async def run():
        answers = {"moves.org": [PUBLIC]}
        with resolver(answers) as made:
            assert await located(made, "moves.org") == Endpoint((PUBLIC,), 443)
            answers["moves.org"] = ["93.184.216.35"]
            made._sweep.now_ms += KEPT_MS
            assert await located(made, "moves.org") == Endpoint(("93.184.216.35",), 443)

    asyncio.run(run())


def test_eg_12_new_names_of_one_domain_have_a_pace():
    async def run():
        with resolver(look_up=lambda _name: Found((PUBLIC,))) as made:
            found = [await located(made, f"n{number}.evil.org") for number in range(NAMES_AT_ONCE + 5)]
            assert found[NAMES_AT_ONCE:] == [Fault.NAMES_USED_UP] * 5
            assert made.lookups == NAMES_AT_ONCE
            assert (await located(made, "n0.evil.org")).addresses == (PUBLIC,)  # what is known is not asked for again
            assert (await located(made, "n0.other.org")).addresses == (PUBLIC,)
            assert made.refused == 5
            made._spent_ms["evil.org"] -= 2 * NEXT_NAME_MS  # two seconds later
            later = [await located(made, f"m{number}.evil.org") for number in range(3)]
            assert [one is Fault.NAMES_USED_UP for one in later] == [False, False, True]

    asyncio.run(run())


class Slow:
    """A resolver of the system that answers when the test lets it."""

    def __init__(self):
        self.go_on = threading.Event()
        self.running = []

    def __call__(self, name):
        self.running.append(name)
        if name.endswith("slow.org"):
            self.go_on.wait(10)
        return Found((PUBLIC,))


def test_one_slow_domain_holds_nobody_else_up():
    async def run():
        slow = Slow()
        found = {}
        with resolver(look_up=slow) as made:
            for number in range(3 * AT_ONCE):
                host = f"n{number}.slow.org"
                made.locate(Origin("http", host, 80), lambda end, host=host: found.update({host: end}))
            assert await located(made, "quick.org") == Endpoint((PUBLIC,), 443)
            assert len([name for name in slow.running if name.endswith("slow.org")]) == PER_DOMAIN
            slow.go_on.set()
            await eventually(lambda: len(found) == 3 * AT_ONCE)
            await eventually(lambda: not len(made._asking))

    asyncio.run(run())


class Timers:
    """The limits in time of look-ups: `pass_by` lets all of them pass that are under way."""

    def __init__(self, made):
        self.set = []
        self.loop, made._asking._loop = made._asking._loop, self

    def __getattr__(self, name):
        return getattr(self.loop, name)

    def call_later(self, after_s, act, *told):
        assert after_s == LOOK_UP_S == 2
        timer = self.loop.call_later(3_600, act)
        self.set.append((timer, act, told))
        return timer

    def pass_by(self):
        passed, self.set = self.set, []
        for timer, act, told in passed:
            if not timer.cancelled():
                timer.cancel()
                act(*told)


def test_a_silent_domain_has_one_thread_and_its_names_wait_for_nothing():
    async def run():
        slow, found = Slow(), []
        with resolver(look_up=slow) as made:
            timers = Timers(made)
            for host in "abcd":
                made.locate(Origin("http", f"{host}.slow.org", 80), found.append)
            await eventually(lambda: len(slow.running) == PER_DOMAIN)
            timers.pass_by()
            made.locate(Origin("http", "e.slow.org", 80), found.append)
            assert found == [Fault.RESOLVE_FAILED] * 5
            slow.go_on.set()
            await eventually(lambda: not len(made._asking))
            for host in "fgh":  # its servers speak: it is a domain as any other again
                assert await located(made, f"{host}.slow.org") == Endpoint((PUBLIC,), 443)
            assert not made._asking._silent

    asyncio.run(run())


def test_a_flood_of_names_of_silent_domains_holds_nobody_else_up():
    async def run():
        slow = Slow()
        with resolver(look_up=slow) as made:
            timers = Timers(made)
            for turn in range(5):
                for number in range(3 * AT_ONCE):
                    made.locate(Origin("http", f"n{turn}.d{number}-slow.org", 80), lambda _: None)
                    made._known.clear()
                while made._waiting:
                    await eventually(lambda: len(slow.running) == made.lookups)
                    timers.pass_by()
                assert await located(made, f"quick{turn}.org") == Endpoint((PUBLIC,), 443)
            slow.go_on.set()
        return [name for name in slow.running if "slow" in name]

    blocked = asyncio.run(run())
    assert {name.partition(".")[0] for name in blocked} == {"n0"}  # later their domains wait for a thread to spare
    assert len(blocked) == 3 * AT_ONCE


def test_memory_is_bounded():
    async def run():
        with resolver() as made:
            for number in range(MOST_KNOWN + 5):
                made._keep(f"n{number}.org", (PUBLIC,))
            assert len(made._known) == MOST_KNOWN

    asyncio.run(run())


@pytest.mark.parametrize(
    ("trouble", "later_ms", "expected"),
    [
        (OSError("no answer"), KEPT_MS + 1, Endpoint((PUBLIC,), 443)),
        (OSError("no answer"), STALE_MS + 1, Fault.RESOLVE_FAILED),
        (socket.gaierror(socket.EAI_NONAME, "gone"), KEPT_MS + 1, Fault.NO_SUCH_NAME),
        (["10.0.0.1"], KEPT_MS + 1, DENIED),
    ],
)
def test_a_name_whose_servers_are_silent_leads_where_it_did_for_a_while(trouble, later_ms, expected):
    async def run():
        answers = {"busy.org": [PUBLIC]}
        with resolver(answers) as made:
            assert await located(made, "busy.org") == Endpoint((PUBLIC,), 443)
            answers["busy.org"] = trouble
            made._sweep.now_ms += later_ms
            assert await located(made, "busy.org") == expected

    asyncio.run(run())
