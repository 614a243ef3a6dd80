"""What SDKs raise when no attempt found room at its provider."""

import asyncio

import anthropic
import openai
import pytest
from sdks import ASK, OVERLOADED, TWO, claude, gpt
from stage import stage, whole
from test_ladders_served import overloaded


def test_where_nobody_has_room_an_sdk_raises_what_its_provider_would_make_it_raise():
    async def play():
        async with stage(overloaded, TWO) as on, claude(on.port) as theirs, gpt(on.port) as ours:
            with pytest.raises(anthropic.APIStatusError) as caught:
                await theirs.messages.create(**ASK)
            assert type(caught.value).__name__ == "OverloadedError"
            assert caught.value.status_code == 529
            assert caught.value.body["error"]["type"] == "overloaded_error"
            with pytest.raises(openai.InternalServerError) as raised:
                await ours.chat.completions.create(**ASK)
            assert raised.value.status_code == 503
            for error in (caught.value, raised.value):
                assert error.response.headers["x-should-retry"] == "false"
            assert len(on.stand_in.hits) == 8  # four of each call, and no more by an SDK

    asyncio.run(play())


def test_one_attempt_that_failed_otherwise_makes_it_a_failure_of_the_gate_s_targets():
    async def mixed(_stand_in, hit, writer):
        is_first = hit.path.startswith("/first")
        writer.write(whole(OVERLOADED, "529 Overloaded" if is_first else "500 Internal Server Error"))

    async def play():
        async with stage(mixed, TWO) as on, claude(on.port) as client:
            with pytest.raises(anthropic.APIStatusError) as caught:
                await client.messages.create(**ASK)
            assert caught.value.status_code != 529

    asyncio.run(play())
