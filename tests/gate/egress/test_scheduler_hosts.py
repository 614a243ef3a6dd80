"""A thousand requests to one host are sent away; ten to another start at once; places are kept (design 2: P6)."""

import asyncio

from outside import Caller, stage, to

from eventually import eventually

TEXT = """
[egress]
presets = "off"

[policies.busy]
hosts = ["a.org"]
limits = ["6_000 per 60s"]

[policies.free]
hosts = ["b.org"]
limits = ["6_000 per 60s"]
"""
DEFERRED = 1_000
CALLERS = 20
BACK = 30


def test_ten_for_a_free_host_start_while_a_thousand_wait_for_their_time():
    async def scene():
        async with stage(text=TEXT) as on:
            gate, port = on.gate, on.caller.port
            gate.operator.pause("busy")
            callers = [Caller(port) for _ in range(CALLERS)]
            tickets = {}

            async def sent_away(caller, first):
                for number in range(first, DEFERRED, CALLERS):
                    answer = await caller.ask("GET", to(f"http://a.org/{number}"))
                    assert answer.status == 429
                    tickets[number] = answer.said["deferral"]["ticket"]

            await asyncio.gather(*[sent_away(caller, first) for first, caller in enumerate(callers)])
            ready = await asyncio.gather(
                *[caller.ask("GET", to(f"http://b.org/{number}")) for number, caller in enumerate(callers[:10])]
            )
            before = [(hit.host, hit.path) for hit in on.world.hits]
            late = [Caller(port) for _ in range(BACK)]
            numbers = sorted(tickets)[-BACK:][::-1]  # the last of them, and they come back the wrong way round
            coming = asyncio.gather(
                *[
                    caller.ask(
                        "GET",
                        to(f"http://a.org/{number}"),
                        {"x-swarmgate-ticket": tickets[number], "x-swarmgate-wait": "20s"},
                    )
                    for caller, number in zip(late, numbers, strict=True)
                ]
            )
            await eventually(lambda: len(gate.pump.room) == BACK)
            gate.operator.resume("busy")
            back = await coming
            for caller in callers + late:
                caller.close()
            served = [call for call, *_ in gate.callers.ended if call.end.value == "answered"]
            came = [int(hit.path[1:]) for hit in on.world.hits if hit.host == "a.org"]
            return tickets, ready, before, back, came, served

    tickets, ready, before, back, came, served = asyncio.run(scene())
    assert [answer.status for answer in ready] == [200] * 10
    assert sorted(before) == sorted(("b.org", f"/{number}") for number in range(10))
    assert [answer.status for answer in back] == [200] * BACK
    assert came == sorted(came, key=lambda number: int(tickets[number].split(".")[1], 16))
    assert {(call.attempt, call.retries) for call in served} == {(1, 0)}
