"""The list of models, as both SDKs read it."""

import asyncio

import anthropic
import openai
import pytest
from sdks import claude, gpt
from stage import TARGET, stage
from test_front import TEXT, answered, request
from wires import Bench

from swarmgate.core.scope import Scope, key_hash

ROUTES = TARGET + '[routes]\nfast = "up/small"\n"big/one" = "up/large"\n"claude-*" = "up/*"\n'


def test_openai_lists_and_retrieves():
    async def play():
        async with stage(text=ROUTES) as on, gpt(on.port) as client:
            assert [(one.id, one.owned_by) async for one in client.models.list()] == [("fast", "up"), ("big/one", "up")]
            assert (await client.models.retrieve("fast")).object == "model"
            assert (await client.models.retrieve("big/one")).id == "big/one"
            assert (await client.models.retrieve("claude-new")).id == "claude-new"
            with pytest.raises(openai.NotFoundError, match="fast"):
                await client.models.retrieve("fest")
            assert on.stand_in.hits == []
            assert on.ends == []

    asyncio.run(play())


def test_anthropic_lists_and_retrieves():
    async def play():
        async with stage(text=ROUTES) as on, claude(on.port) as client:
            assert [one.id async for one in client.models.list()] == ["fast", "big/one"]
            one = await client.models.retrieve("fast")
            assert (one.type, one.display_name, one.created_at.tzinfo is not None) == ("model", "fast", True)
            with pytest.raises(anthropic.NotFoundError):
                await client.models.retrieve("fest")

    asyncio.run(play())


def test_a_list_without_names_is_empty_and_models_are_only_read():
    bench = Bench(TEXT.partition("[routes]")[0])
    bench.client.data_received(b"GET /v1/models HTTP/1.1\r\nhost: g\r\nanthropic-version: 1\r\n\r\n")
    assert bench.wire.written[-1].endswith(b'{"data":[],"has_more":false,"first_id":null,"last_id":null}')
    assert answered(request("/v1/models", b"{}"))[1]["code"] == "caller_method"


def test_no_error_names_what_the_caller_may_not_use():
    text = TEXT + 'fastest = "up/other"\nhidden-fast = "up/third"\n"secret-*" = "up/*"\n'
    bench = Bench(text)
    keeper = bench.gate.ask_for_keys(required=False)
    keeper.replace(b"pepper", {key_hash("sgk_1_x", b"pepper"): Scope("1", models=("fast", "secret-1"))})
    key = ("authorization: Bearer sgk_1_x",)
    for path in ("/v1/chat/completions", "/v1/messages"):
        _, error = answered(request(path, b'{"model":"fest"}', "POST", *key), bench)
        assert error["message"].endswith("'fest' is not one of: fast.")
        _, error = answered(request(path, b'{"model":"fest"}'), bench)
        assert "fastest" in error["message"]
    _, error = answered(request(body=b'{"model":"zzz"}', method="POST", path="/v1/chat/completions"), bench)
    assert "secret-*" in error["message"]
