"""Whatever the data port answers has a name of its own, `x-request-id`, by which a caller can ask for it."""

import asyncio
import re

import pytest
from sdks import claude, gpt
from stage import TARGET, stage
from test_front import TEXT, request
from wires import Bench

NAME = re.compile(rb"\r\nx-request-id: ((?:ref|req)-[0-9a-f]+-[0-9a-f]+)\r\n")
VIEWS = ("budgets", "budgets/events", "calls", "calls?state=queued", "alive?agent=a1", "calls/none", "nothing", "plan")
ASKED = {
    "models": request("/v1/models", b"", "GET"),
    "one model": request("/v1/models/fast", b"", "GET"),
    "no such model": request("/v1/models/none", b"", "GET"),
    "of the head only": request("/v1/models", b"", "HEAD"),
    "Anthropic's models": request("/v1/models", b"", "GET", "anthropic-version: 2023-06-01"),
    **{f"view of {name}": request(f"/swarmgate/v1/{name}", b"", "GET") for name in VIEWS},
    "a plan": request("/swarmgate/v1/plan", b'{"steps":[]}'),
    "a bad plan": request("/swarmgate/v1/plan", b"["),
    "a refusal": request(body=b"["),
    "no request": b"GET / HTTP/0.9\r\n\r\n",
    "a loop": request("/nowhere", b"", "GET"),
}


@pytest.mark.parametrize("name", ASKED)
def test_no_answer_is_without_a_name(name):
    names = set()
    for _ in range(2):
        bench = Bench(TEXT)
        bench.client.data_received(ASKED[name])
        head, blank, _ = b"".join(bench.wire.written).partition(b"\r\n\r\n")
        assert blank, head
        (found,) = NAME.findall(head.lower() + b"\r\n")
        names.add(found)
    assert len(names) == 2


def test_sdks_show_the_name_of_a_list():
    async def play():
        async with stage(text=TARGET) as on, gpt(on.port) as ours, claude(on.port) as theirs:
            assert (await ours.models.list())._request_id.startswith("ref-")
            assert (await theirs.models.with_raw_response.list()).headers["x-request-id"].startswith("ref-")

    asyncio.run(play())
