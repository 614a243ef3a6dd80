"""Errors in the caller's own form: what each SDK raises, and what stands in the exception."""

import asyncio
import json

import anthropic
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sdks import ASK, claude, gpt
from stage import STREAM_HEAD, TARGET, event, framed, stage
from test_front import TEXT, request
from wires import Bench

from swarmgate.core.reasons import Reason
from swarmgate.gate import answers
from swarmgate.gate.shapes import ANTHROPIC, OPENAI, PROBLEM, RESPONSES, shape_of

NOW = {"x-swarmgate-wait": "0s"}
FULL = TARGET + 'limits = ["1 per 60s"]\n'


@pytest.mark.parametrize(
    ("path", "fields", "shape"),
    [
        (b"/v1/messages", {}, ANTHROPIC),
        (b"/v1/messages/count_tokens", {}, ANTHROPIC),
        (b"/v1/chat/completions", {}, OPENAI),
        (b"/v1/responses", {}, RESPONSES),
        (b"/v1/models", {}, OPENAI),
        (b"/v1/models", {b"anthropic-version": b"2023-06-01"}, ANTHROPIC),
    ],
)
def test_whose_form_a_path_has(path, fields, shape):
    assert shape_of(path, fields) is shape


@given(st.sampled_from(Reason), st.text(max_size=40), st.sampled_from([OPENAI, RESPONSES, ANTHROPIC, PROBLEM]))
def test_every_reason_can_be_told_in_every_form(reason, detail, shape):
    reply = answers.refusal(reason, detail, shape=shape)
    said = json.loads(reply.body)
    error = said.get("error", said)
    assert error["code"] == reason
    assert error.get("message", error.get("detail")).startswith(answers.SENTENCES[reason])
    assert 400 <= reply.status <= 599
    assert dict(reply.headers)[b"content-type"] == shape.media_type


@pytest.mark.parametrize(
    ("ask", "raises", "kind"),
    [
        ({"extra_body": {"max_tokens": -1}}, anthropic.BadRequestError, "invalid_request_error"),
        ({"model": "nobody"}, anthropic.NotFoundError, "not_found_error"),
    ],
)
def test_an_anthropic_client_is_refused_in_its_own_words(ask, raises, kind):
    async def play():
        text = TARGET + '[routes]\nm = "up/m"\n'
        async with stage(text=text) as on, claude(on.port) as client:
            with pytest.raises(raises) as caught:
                await client.messages.create(**ASK | ask)
            assert caught.value.body["type"] == "error"
            assert caught.value.body["error"]["type"] == kind
            assert on.stand_in.hits == []

    asyncio.run(play())


def test_a_deferral_is_a_rate_limit_error_of_either_sdk():
    async def play():
        async with stage(text=FULL) as on, claude(on.port) as theirs, gpt(on.port) as ours:
            await ours.chat.completions.create(**ASK, extra_headers=NOW)
            with pytest.raises(anthropic.RateLimitError) as first:
                await theirs.messages.create(**ASK, extra_headers=NOW)
            with pytest.raises(openai.RateLimitError) as second:
                await ours.responses.create(model="m", input="hi", extra_headers=NOW)
            assert first.value.body["error"]["type"] == "rate_limit_error"
            one, other = first.value.body["error"]["deferral"], second.value.body["deferral"]
            assert one.keys() == other.keys()
            assert one["reason"] == other["reason"] == "policy_rate"
            assert on.ends == ["answered", "deferred", "deferred"]

    asyncio.run(play())


CHAT = event({"choices": [{"index": 0, "delta": {"content": "a"}}]})
CLAUDE = (
    b"event: content_block_delta\ndata: "
    + json.dumps({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}}).encode()
)
REPLY = (
    b"event: response.output_text.delta\ndata: "
    + json.dumps({"type": "response.output_text.delta", "delta": "a", "sequence_number": 1}).encode()
)


@pytest.mark.parametrize(
    ("path", "content", "sent"),
    [
        ("/v1/chat/completions", CHAT, b'data: {"error":{"message":"The target\'s answer'),
        ("/v1/messages", CLAUDE + b"\n\n", b'event: error\ndata: {"type":"error","error":{"type":"api_error"'),
        ("/v1/responses", REPLY + b"\n\n", b'event: error\ndata: {"type":"error","code":"target_cut"'),
    ],
)
def test_a_stream_that_breaks_ends_with_its_own_kind_of_error(path, content, sent):
    bench = Bench(TEXT)
    bench.client.data_received(request(path, b'{"model":"fast","stream":true}'))
    bench.dialler.succeed()
    end, wire = bench.dialler.opened[0]
    end.data_received(STREAM_HEAD + framed(content))
    wire.closing = True
    end.connection_lost(None)
    said = b"".join(bench.wire.written)
    assert sent in said
    assert b"[DONE]" not in said
    assert bench.wire.closing
    assert not said.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("client", ["chat", "responses", "messages"])
def test_sdks_raise_on_an_error_in_a_stream(client):
    contents = {"chat": CHAT, "messages": CLAUDE + b"\n\n", "responses": REPLY + b"\n\n"}

    async def cut(_stand_in, _hit, writer):
        writer.write(STREAM_HEAD + framed(contents[client]))
        await writer.drain()
        writer.close()

    async def play():
        async with stage(cut) as on, claude(on.port) as theirs, gpt(on.port) as ours:
            if client == "messages":
                stream = await theirs.messages.create(**ASK, stream=True)
            elif client == "chat":
                stream = await ours.chat.completions.create(**ASK, stream=True)
            else:
                stream = await ours.responses.create(model="m", input="hi", stream=True)
            with pytest.raises((openai.APIError, anthropic.APIError), match="ended before it was whole"):
                async for _ in stream:
                    pass

    asyncio.run(play())
