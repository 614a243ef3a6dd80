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


SAID = {"type": "output_text", "text": "four", "annotations": []}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m",
    "output": [{"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [SAID]}],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12}
    | {"input_tokens_details": {"cached_tokens": 4}, "output_tokens_details": {"reasoning_tokens": 1}},
}
DELTA = {"item_id": "m1", "output_index": 0, "content_index": 0, "sequence_number": 1, "logprobs": []}
RESPONSE_EVENTS = (
    named("response.created", response=RESPONSE | {"status": "in_progress", "usage": None}, sequence_number=0),
    named("response.output_text.delta", delta="fo", **DELTA),
    named("response.output_text.delta", delta="ur", **DELTA),
    named("response.completed", response=RESPONSE, sequence_number=3),
)
ANSWERS = {
    "/v1/responses": RESPONSE,
    "/v1/embeddings": {
        "object": "list",
        "model": "m",
        "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}],
        "usage": {"prompt_tokens": 9, "total_tokens": 9},
    },
    "/v1/completions": UNARY | {"object": "text_completion", "choices": [{"index": 0, "text": "four"}]},
    "/v1/messages/count_tokens": {"input_tokens": 9},
    "/v1/audio/transcriptions": {"text": "four"},
    "/v1/images/generations": {"created": 1, "data": [{"url": "https://i.example/1"}]},
    "/v1/files": {"id": "f1", "object": "file", "bytes": 3, "created_at": 1, "filename": "a", "purpose": "batch"},
}


async def every_route(_stand_in, hit, writer):
    if b'"stream":true' in hit.body or b'"stream": true' in hit.body:
        writer.write(STREAM_HEAD)
        for piece in RESPONSE_EVENTS:
            writer.write(framed(piece))
            await writer.drain()
        writer.write(LAST)
    else:
        writer.write(whole(ANSWERS[hit.path]))


def test_every_route_of_both_sdks():
    async def play():
        async with stage(every_route) as on, gpt(on.port) as ours, claude(on.port) as theirs:
            assert (await ours.responses.create(model="m", input="2 + 2?")).output_text == "four"
            events = [event async for event in await ours.responses.create(model="m", input="hi", stream=True)]
            assert "".join(one.delta for one in events if one.type == "response.output_text.delta") == "four"
            assert events[-1].response.usage.output_tokens == 3
            vectors = await ours.embeddings.create(model="m", input="x", encoding_format="float")
            assert vectors.data[0].embedding == [0.5, 0.25]
            assert (await ours.completions.create(model="m", prompt="2 + 2?")).choices[0].text == "four"
            messages = [{"role": "user", "content": "hi"}]
            assert (await theirs.messages.count_tokens(model="m", messages=messages)).input_tokens == 9
            read = [usage for _, usage, _ in on.gate.callers.ended]
            assert read == [(9, 3), (9, 3), (9, 0), (9, 3), (-1, -1)]
            assert (await ours.audio.transcriptions.create(file=("a.wav", b"\0" * 99), model="m")).text == "four"
            assert (await ours.images.generate(prompt="x")).data[0].url == "https://i.example/1"
            assert (await ours.files.create(file=("a.jsonl", b"{}\n"), purpose="batch")).id == "f1"
            assert [hit.path for hit in on.stand_in.hits] == ["/v1/responses", *ANSWERS]
            assert "multipart/form-data" in on.stand_in.hits[-1].headers["content-type"]
            assert on.ends == ["answered"] * 8

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
        async with stage(anthropic_like, text) as on, gpt(on.port).with_options(timeout=2.0) as client:
            await client.post("/messages", cast_to=object, body=dict(ASK))
            with pytest.raises(openai.RateLimitError) as caught:
                await client.chat.completions.create(**ASK)
            assert caught.value.body["deferral"]["waited_ms"] >= 990  # half of what it reads for
            assert len(on.stand_in.hits) == 1

    asyncio.run(play())
