"""A scheduler's view of deferral: what is ready elsewhere starts at once, nothing uses a retry, places are kept (P6)."""

import asyncio
import json
import random

from stage import stage

from eventually import eventually

TEXT = """
[targets.busy]
base_url = "http://127.0.0.1:{port}/v1"
keys = {{ only = "env:KEY" }}
limits = ["600 per 60s"]

[targets.free]
base_url = "http://127.0.0.1:{port}/v1"
keys = {{ only = "env:KEY" }}
limits = ["600 per 60s"]

[routes]
"busy" = "busy/busy"
"free" = "free/free"
"""
DEFERRED = 1_000
READY = 10
CONNECTIONS = 20
BACK = 40


class Agent:
    """One connection that asks again and again."""

    def __init__(self, reader, writer):
        self._reader = reader
        self._writer = writer

    @classmethod
    async def of(cls, running):
        return cls(*await asyncio.open_connection("127.0.0.1", running.port))

    async def ask(self, model, number, wait, ticket=""):
        body = json.dumps({"model": model, "messages": [], "user": str(number)}).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nx-swarmgate-wait: {wait}\r\n"
        head += f"x-swarmgate-ticket: {ticket}\r\n" if ticket else ""
        self._writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length: ")[1].split("\r\n")[0])
        return int(head.split(" ")[1]), json.loads(await self._reader.readexactly(length))

    def close(self):
        self._writer.close()


async def deferrals(agents):
    """A thousand calls to the busy target, each sent away; their tickets, in order."""
    tickets = {}

    async def work(agent, first):
        for number in range(first, DEFERRED, CONNECTIONS):
            status, said = await agent.ask("busy", number, "0s")
            assert (status, said["error"]["type"]) == (429, "deferred")
            tickets[number] = said["error"]["deferral"]["ticket"]

    await asyncio.gather(*[work(agent, first) for first, agent in enumerate(agents)])
    return tickets


def asked_of(running):
    return [(hit.said["model"], int(hit.said["user"])) for hit in running.stand_in.hits]


def test_a_thousand_deferrals_delay_nobody_elsewhere_and_come_back_in_their_order():
    async def scene():
        async with stage(text=TEXT) as running:
            gate = running.gate
            gate.operator.pause("busy")
            agents = [await Agent.of(running) for _ in range(CONNECTIONS)]
            tickets = await deferrals(agents)
            ready = await asyncio.gather(*[agents[number].ask("free", number, "0s") for number in range(READY)])
            started = asked_of(running)

            numbers = random.Random(7).sample(sorted(tickets), BACK)
            late = [await Agent.of(running) for _ in range(BACK)]
            coming = asyncio.gather(
                *[
                    agent.ask("busy", number, "20s", tickets[number])
                    for agent, number in zip(late, numbers, strict=True)
                ]
            )
            await eventually(lambda: len(gate.pump.room) == BACK)
            gate.operator.resume("busy")
            back = await coming
            for agent in agents + late:
                agent.close()
            served = [call for call, *_ in gate.callers.ended if call.end.value == "answered"]
            return (
                tickets,
                [status for status, _ in ready],
                started,
                [status for status, _ in back],
                asked_of(running),
                served,
            )

    tickets, ready, started, back, asked, served = asyncio.run(scene())
    assert ready == [200] * READY
    assert sorted(started) == [("free", number) for number in range(READY)]
    assert back == [200] * BACK
    came = [number for model, number in asked if model == "busy"]
    assert came == sorted(came, key=lambda number: int(tickets[number].split(".")[1], 16))
    assert {(call.attempt, call.retries) for call in served} == {(1, 0)}
