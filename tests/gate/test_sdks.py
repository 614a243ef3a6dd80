"""The official SDKs unchanged, end to end: plain, streamed, tools, and the exception that each error must raise."""

import asyncio
import json

import anthropic
import openai
import pytest
from sdks import ASK, claude, gpt
from stage import DONE, FINISH, LAST, STREAM_HEAD, TARGET, UNARY, event, framed, stage, whole

TOOL = {
    "type": "function",
    "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
}
CALLS = [{"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}]
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 2}}],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 9, "output_tokens": 3},
}


def named(kind, **said):
    return b"event: " + kind.encode() + b"\ndata: " + json.dumps({"type": kind, **said}).encode() + b"\n\n"


CLAUDE_EVENTS = (
    named("message_start", message=MESSAGE | {"content": [], "stop_reason": None}),
    named("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    named("content_block_delta", index=0, delta={"type": "text_delta", "text": "fo"}),
    named("ping"),
    named("content_block_delta", index=0, delta={"type": "text_delta", "text": "ur"}),
    named("content_block_stop", index=0),
    named("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 7}),
    named("message_stop"),
)


async def anthropic_like(_stand_in, hit, writer):
    if not hit.said.get("stream"):
        writer.write(whole(MESSAGE))
        return
    writer.write(STREAM_HEAD)
    for piece in CLAUDE_EVENTS:
        writer.write(framed(piece))
        await writer.drain()
    writer.write(LAST)


async def with_tools(_stand_in, hit, writer):
    if hit.said.get("stream"):
        delta = {"tool_calls": [CALLS[0] | {"index": 0}]}
        writer.write(STREAM_HEAD)
        for piece in (event({"choices": [{"index": 0, "delta": delta}]}), FINISH, DONE):
            writer.write(framed(piece))
        writer.write(LAST)
    else:
        message = {"role": "assistant", "content": None, "tool_calls": CALLS}
        writer.write(whole(UNARY | {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}))


def test_anthropic_plain_streamed_and_with_tools():
    async def play():
        async with stage(anthropic_like) as on, claude(on.port) as client:
            tools = [{"name": "add", "input_schema": {"type": "object"}}]
            answer = await client.messages.create(**ASK, tools=tools)
            assert (answer.content[0].name, answer.content[0].input) == ("add", {"a": 2})
            async with client.messages.stream(**ASK) as stream:
                assert "".join([text async for text in stream.text_stream]) == "four"
                assert (await stream.get_final_message()).usage.output_tokens == 7
            assert (await client.beta.messages.create(**ASK, extra_query={"beta": "true"})).id == "msg_1"
            assert [hit.said.get("tools") for hit in on.stand_in.hits] == [tools, None, None]
            assert [hit.path for hit in on.stand_in.hits] == ["/v1/messages"] * 2 + ["/v1/messages?beta=true"]
            assert on.ends == ["answered"] * 3

    asyncio.run(play())


def test_openai_tools_plain_and_streamed():
    async def play():
        async with stage(with_tools) as on, gpt(on.port) as client:
            answer = await client.chat.completions.create(**ASK, tools=[TOOL])
            assert answer.choices[0].message.tool_calls[0].function.arguments == '{"a": 2}'
            stream = await client.chat.completions.create(**ASK, tools=[TOOL], stream=True)
            names = [
                c.choices[0].delta.tool_calls[0].function.name async for c in stream if c.choices[0].delta.tool_calls
            ]
            assert names == ["add"]
            assert [hit.said["tools"] for hit in on.stand_in.hits] == [[TOOL]] * 2

    asyncio.run(play())


RAISES = {
    "400 Bad Request": "BadRequestError",
    "403 Forbidden": "PermissionDeniedError",
    "404 Not Found": "NotFoundError",
    "409 Conflict": "ConflictError",
    "422 Unprocessable": "UnprocessableEntityError",
    "429 Too Many Requests": "RateLimitError",
    "401 Unauthorized": "InternalServerError",  # of the gate's key: nothing that the caller can mend
}


@pytest.mark.parametrize("status", RAISES)
@pytest.mark.parametrize("sdk", [openai, anthropic])
def test_each_status_raises_its_own_exception_and_is_sent_once(status, sdk):
    async def refuses(_stand_in, _hit, writer):
        said = {"type": "error", "error": {"type": "some_error", "message": "because", "code": "x"}}
        writer.write(whole(said, status, "retry-after: 60\r\n"))

    async def play():
        async with stage(refuses) as on, gpt(on.port, 2) as ours, claude(on.port, 2) as theirs:
            create = ours.chat.completions.create if sdk is openai else theirs.messages.create
            with pytest.raises(sdk.APIStatusError) as caught:
                await create(**ASK, extra_headers={"x-swarmgate-wait": "0s"})
            assert type(caught.value).__name__ == RAISES[status]
            assert len(on.stand_in.hits) == 1
            assert len(on.ends) == 1

    asyncio.run(play())


def test_a_default_deferral_is_a_rate_limit_error_after_what_the_sdk_bears():
    async def play():
        text = TARGET + 'limits = ["1 per 60s"]\n'
        async with stage(anthropic_like, text) as on, gpt(on.port).with_options(timeout=0.4) as client:
            await client.post("/messages", cast_to=object, body=dict(ASK))
            with pytest.raises(openai.RateLimitError) as caught:
                await client.chat.completions.create(**ASK)
            assert caught.value.body["deferral"]["waited_ms"] >= 190  # half of what it reads for
            assert len(on.stand_in.hits) == 1

    asyncio.run(play())
