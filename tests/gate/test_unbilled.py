"""Which calls nobody bills: counts of tokens, what a provider's list says, what the operator prices by the request."""

import asyncio
import json

import pytest
from stage import stage, whole

from swarmgate.providers.tables import DIALECTS

TARGET = """
[targets.up]
base_url = "http://127.0.0.1:{port}/v1"
keys = {{ first = "env:KEY" }}
provider = "PROVIDER"
"""
CAPPED = '[environments.all]\nagents = ["*"]\nlimits = ["1 USD per 1d"]\n'
PRICES = '[prices."up/v1/images/generations"]\ninput = 1\noutput = 1\nper_request = 0.04\n'
COUNT = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}


async def answer(_stand_in, _hit, writer):
    writer.write(whole({"input_tokens": 3}))


async def ask(port, method, path, said=None):
    """The status, the id and the body of one answer."""
    body = b"" if said is None else json.dumps(said).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"{method} {path} HTTP/1.1\r\nhost: g\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    raw = await reader.read()
    writer.close()
    await writer.wait_closed()
    head, _, body = raw.decode().partition("\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:])
    return int(head.split(" ")[1]), fields.get("x-request-id", ""), body


async def cost_of(port, *request):
    """What a call cost as its caller may ask, and its status."""
    status, identity, _ = await ask(port, *request)
    said = json.loads((await ask(port, "GET", f"/swarmgate/v1/calls/{identity}"))[2])
    return status, said["cost_micro_usd"]


@pytest.mark.parametrize("caps", ["", CAPPED])
@pytest.mark.parametrize(
    ("provider", "request_", "cost"),
    [
        ("anthropic", ("POST", "/v1/messages/count_tokens", COUNT), 0),
        ("openai", ("POST", "/v1/moderations", {"input": "x"}), 0),
        ("openai", ("GET", "/v1/files"), 0),
        ("openai", ("POST", "/v1/images/generations", {"prompt": "x"}), 40_000),
    ],
)
def test_what_costs_nothing_or_a_sum_is_told_as_that_and_a_cap_in_money_lets_it_through(provider, request_, cost, caps):
    async def scene():
        text = TARGET.replace("PROVIDER", provider) + caps + PRICES
        async with stage(answer, text) as on:
            assert await cost_of(on.port, *request_) == (200, cost)
            cells = on.gate.store.book.cells
            money = [cell.level for name, cell in cells.items() if "USD" in name]
            assert money == ([cost] if caps else [])

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("provider", "request_"),
    [
        ("openai", ("POST", "/v1/audio/speech", {"input": "x"})),
        ("openai", ("POST", "/v1/moderationsx", {"input": "x"})),
        ("mistral", ("POST", "/v1/moderations", {"input": "x"})),
        ("generic", ("GET", "/v1/files")),
    ],
)
def test_what_may_cost_stays_unknown_and_a_cap_in_money_refuses_it(provider, request_):
    async def scene(caps):
        async with stage(answer, TARGET.replace("PROVIDER", provider) + caps) as on:
            return await cost_of(on.port, *request_)

    assert asyncio.run(scene("")) == (200, None)
    assert asyncio.run(scene(CAPPED))[0] == 403


def test_only_reading_and_what_is_named_is_unbilled():
    for dialect in DIALECTS.values():
        assert not dialect.bills_nothing("POST", "/v1/audio/speech")
        assert not dialect.bills_nothing("GET", "/v2/files")
    assert DIALECTS["openai"].bills_nothing("GET", "/v1/batches/b1?x")
