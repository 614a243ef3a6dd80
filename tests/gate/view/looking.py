"""How tests look at a running gate: its configuration, a scene, and one read."""

import asyncio

import httpx
from stage import either, stage

LIMITED = """
[targets.up]
base_url = "http://127.0.0.1:{port}/v1"
keys = {{ first = "env:KEY", second = "env:KEY" }}
limits = ["2 concurrent"]
key_limits = ["50 per 60s", "100_000 tokens per 60s"]

[targets.down]
base_url = "http://127.0.0.1:{port}/v1"
keys = {{ only = "env:KEY" }}
limits = ["900_000_000 per 1s"]

[routes]
"busy" = "up/m"
"free" = "down/m"
"""
SAID = {"model": "busy", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}


def run(scene, script=either, text=LIMITED):
    async def play():
        async with stage(script, text) as running, httpx.AsyncClient(timeout=10) as client:
            client.base_url = f"http://127.0.0.1:{running.port}"
            return await scene(running, client)

    return asyncio.run(play())


async def read(client, path, **query):
    answer = await client.get(f"/swarmgate/v1/{path}", params=query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    return answer.json()
