"""Hosts that end connections in the middle: what was sent is counted once, and a write is done once at most (P7, P8)."""

import asyncio
import socket
import struct

import pytest
from outside import Caller, World, stage, to, whole

from swarmgate.core.commands import Intent
from swarmgate.core.limits import BudgetKind

COUNTED = """
[egress]
presets = "off"
[policies.a]
hosts = ["a.org"]
limits = ["1_000 per 1h"]
headroom = 100
"""
BODY = b"x" * 200_000


def taken_of(on):
    """What counters hold, by their names."""
    cells = on.gate.store.book.cells
    return {name: cell.level for name, cell in cells.items() if cell.limits.kind is BudgetKind.COUNTER}


def resetting(least):
    """A host that reads so many bytes of each request and then resets its connection."""

    async def serve(self, reader, writer):
        self.connections += 1
        await reader.readexactly(least)
        link = writer.get_extra_info("socket")
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.close()

    return serve


@pytest.mark.parametrize("least", [0, 1, 30, 70_000, 200_000])
def test_ov_03_a_post_that_is_reset_after_any_number_of_bytes_is_sent_once(monkeypatch, least):
    async def act():
        async with stage(text=COUNTED) as on:
            return await on.caller.ask("POST", to("http://a.org/pay"), {}, BODY), on.world.connections, on.ends

    monkeypatch.setattr(World, "serve", resetting(least))
    answer, connections, ends = asyncio.run(act())
    assert (answer.status, answer.said["code"], ends) == (502, "target_unknown_effect", ["unknown_effect"])
    assert connections == 1


@pytest.mark.parametrize(("method", "end", "hits"), [("GET", "answered", 3), ("POST", "unknown_effect", 2)])
def test_rb_20_a_kept_connection_that_ends_before_the_answer_hides_no_repeat(method, end, hits):
    async def act():
        replies = iter([whole(), b"", whole()])
        async with stage(lambda _hit: next(replies), COUNTED) as on:
            await on.caller.ask(method, to("http://a.org/"))
            await on.caller.ask(method, to("http://a.org/"))
            attempts = [entry for entry in on.gate.journal.entries if isinstance(entry.noted, Intent)]
            (taken,) = taken_of(on).values()
            return len(on.world.hits), len(attempts), taken, on.ends

    *counts, ends = asyncio.run(act())
    assert counts == [hits] * 3
    assert ends == ["answered", end]


def test_ov_13_a_host_that_drips_holds_no_other_host_up():
    async def act():
        slow = b"HTTP/1.1 200 X\r\ncontent-length: 1000\r\n\r\nx"
        async with stage(lambda hit: slow if hit.host == "b.org" else whole()) as on:
            waiting = Caller(on.caller.port)
            dripping = asyncio.ensure_future(waiting.ask("GET", to("http://b.org/")))
            statuses = {(await on.get("http://a.org/")).status for _ in range(50)}
            still, connections = not dripping.done(), on.world.connections
            dripping.cancel()
            waiting.close()
            return statuses, still, connections

    assert asyncio.run(act()) == ({200}, True, 2)


def test_rb_21_each_hop_of_a_redirect_pays_its_host():
    leads_to = {"/": "http://b.org/1", "/1": "http://b.org/2"}

    def reply(hit):
        return whole(302, b"", location=leads_to[hit.path]) if hit.path in leads_to else whole()

    async def act():
        other = COUNTED.partition("[policies.a]")[2].replace("a.org", "b.org")
        async with stage(reply, f"{COUNTED}[policies.b]{other}") as on:
            answers = [await on.get("http://a.org/")]
            while answers[-1].status == 302:
                answers.append(await on.caller.ask("GET", answers[-1].headers["location"]))
            return [one.status for one in answers], taken_of(on)

    statuses, taken = asyncio.run(act())
    assert statuses == [302, 302, 200]
    assert taken == {"a: requests per 3600s": 1, "b: requests per 3600s": 2}
